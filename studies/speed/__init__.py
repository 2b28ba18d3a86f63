"""Benchmarks of speed, beside other packages in the same run."""
