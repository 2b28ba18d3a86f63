"""Asking the model: the loop, its questions, batches and model calls, and the cache."""
