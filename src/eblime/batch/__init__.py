"""Many inputs at once: a run folder that survives crashes and can be resumed."""
