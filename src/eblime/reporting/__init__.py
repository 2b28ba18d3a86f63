"""Explanations as one self-contained web page, and as HTML in notebooks."""
