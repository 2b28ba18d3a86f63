"""The command line: parse, call the public API, write files. No numerics here."""
