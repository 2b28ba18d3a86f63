"""Real inputs and models to try eblime on, and those of the paper."""
