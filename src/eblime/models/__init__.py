"""Models: anything that answers -> one signature, a batch in and (n, outputs) scores out."""
