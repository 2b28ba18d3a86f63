"""Asking the model: the loop, batches and their sizes, targets. Only the loop asks."""
