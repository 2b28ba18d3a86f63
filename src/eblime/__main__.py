"""`python -m eblime` is the `eblime` command."""

from eblime.cli.app import main

if __name__ == "__main__":
    main()
