"""What is printed."""

import re
import sys

import eblime
from eblime.cli.show import print_explanation


def test_sentences_are_broken_between_words_and_only_on_a_terminal(monkeypatch, capsys):
    """A script finds each of them on one line."""
    e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    print_explanation(e, prob=0.95, top=3)

    assert e.estimand in capsys.readouterr().out.splitlines()

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    print_explanation(e, prob=0.95, top=3)
    shown = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)

    assert max(map(len, shown.splitlines())) <= 60
    assert e.estimand in " ".join(shown.split())
