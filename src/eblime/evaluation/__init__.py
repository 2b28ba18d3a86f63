"""Studies: many explanations to one tidy table."""
