"""Folders for results, and what is printed."""

import re
import threading

import eblime
from eblime.cli.output import make_folder, print_explanation


def test_commands_may_write_to_one_folder_at_once(tmp_path):
    """Each of them checks that it is writable, and leaves nothing there."""
    failures, together = [], threading.Barrier(4)

    def check():
        together.wait(60)
        for _ in range(100):
            try:
                make_folder(tmp_path / "out")
            except OSError as error:
                failures.append(error)

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert list((tmp_path / "out").iterdir()) == []


def test_sentences_are_broken_between_words_and_only_on_a_terminal(monkeypatch, capsys):
    """A script finds each of them on one line."""
    e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one or three")
    print_explanation(e, prob=0.95, top=3)

    assert e.estimand in capsys.readouterr().out.splitlines()

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    print_explanation(e, prob=0.95, top=3)
    shown = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)

    assert max(map(len, shown.splitlines())) <= 60
    assert e.estimand in " ".join(shown.split())
