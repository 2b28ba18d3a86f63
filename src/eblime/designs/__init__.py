"""Designs: which masks to ask about, functions of (rng, n_masks, p) that return (N, p) 0s and 1s.

Every design here asks about the input itself, the mask of ones.
"""
