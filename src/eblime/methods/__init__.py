"""Methods: (masks, scores, weights) -> Posterior. NumPy and SciPy only."""
