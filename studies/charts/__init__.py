"""The figures and numbers of the measurement pages, a module for each page."""
