"""The studies behind the documentation: `python -m studies` lists them. Not part of the wheel."""
