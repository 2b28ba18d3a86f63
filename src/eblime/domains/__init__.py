"""Domains: one input -> Scene, the features it is cut into and how to hide them."""
