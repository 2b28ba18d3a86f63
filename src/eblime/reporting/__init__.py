"""Explanations as one self-contained web page, to look at, share and keep."""
