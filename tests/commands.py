"""Commands of the `eblime` command line, run in this process."""

import pytest

from eblime.cli.app import main


def run_command(capsys, *words):
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    seen = capsys.readouterr()
    return ended.value.code, seen.out, seen.err
