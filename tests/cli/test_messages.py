"""Errors of the command line: one or two sentences that name the option and what was given."""

import sys

import pytest

from eblime.cli.app import main

MODEL = """
def score(texts):
    return [float("good" in text) for text in texts]

def make():
    raise RuntimeError("no GPU")

def interrupted(texts):
    raise KeyboardInterrupt
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model in Python."""
    (tmp_path / "mood.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def message(capsys, *words):
    """What a command that fails prints."""
    with pytest.raises(SystemExit) as ended:
        main([*words])
    seen = capsys.readouterr()

    assert ended.value.code == 2
    assert seen.out == ""
    return seen.err.strip()


def explained(capsys, *words, model="mood:score"):
    """What `eblime explain text` prints if it fails."""
    return message(capsys, "explain", "text", "a good film", "--model", model, *words)


@pytest.mark.parametrize("words", [("--masks", "many"), ("--masks=many",)])
def test_a_wrong_value_is_shown_and_the_right_help_named(folder, capsys, words):
    """The value of a numeric option is not a number."""
    found = explained(capsys, *words)

    assert "'--masks'" in found
    assert found.count("many") == 1  # the parser's message has the value in some versions
    assert found.endswith(". See eblime explain text --help.")


def test_an_unknown_command_ends_with_sentences(capsys):
    """The parser's message has its own full stop."""
    assert message(capsys, "explain", "txt").endswith("'txt'. See eblime explain --help.")


def test_a_probability_is_named_like_the_other_options(folder, capsys):
    """Without backticks."""
    found = explained(capsys, "--prob", "95")

    assert found == "Error: --prob must be > 0 and < 1; got 95.0."


def test_an_error_while_the_model_is_created_says_where(folder, capsys):
    """The function that failed, and how."""
    found = explained(capsys, model="mood:make()")

    assert found == "Error: --model mood:make() raised RuntimeError: no GPU"


def test_a_file_name_instead_of_a_module_is_corrected(folder, capsys):
    """`mood.py:score` is not a module."""
    found = explained(capsys, model="mood.py:score")

    assert found.endswith("A module is named without .py.")


def test_an_interrupted_command_says_so(folder, capsys):
    """Ctrl-C while the model runs."""
    with pytest.raises(SystemExit) as ended:
        main(["explain", "text", "a good film", "--model", "mood:interrupted"])

    assert ended.value.code == 130
    assert capsys.readouterr().err.endswith("Stopped.\n")


def test_a_missing_file_is_named_without_an_error_number(folder, capsys):
    """The message of the operating system."""
    found = message(capsys, "show", "none.eblime")

    assert found == "Error: No such file or directory: 'none.eblime'."
