"""Many inputs at once: a folder of results that survives whatever happens to the run."""
