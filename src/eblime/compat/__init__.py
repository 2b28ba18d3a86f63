"""Doors for code that was written for another library."""
