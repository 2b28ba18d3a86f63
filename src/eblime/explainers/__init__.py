"""Explainers: settings, a way to read an input, and the loop that explains it."""
