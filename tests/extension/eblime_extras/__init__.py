"""An example of a package that extends eblime through entry points."""
