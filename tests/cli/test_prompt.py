"""`eblime explain prompt`: questions, sources and answers."""

import json
import sys

import pytest
from commands import run_command

import eblime

MODEL = '''
import numpy as np

def score(prompts):
    """The year decides."""
    return [2.0 * ("1889" in prompt) + ("Paris" in prompt) for prompt in prompts]

class Parrot:
    """A language model that finds words likely if they are in the prompt."""

    def generate(self, prompts):
        return ["In 1889. In Paris."] * len(prompts)

    def token_spans(self, answer):
        return [(0, 8), (8, len(answer))]

    def token_log_probs(self, prompts, answer):
        return [np.array([-2.0 + ("1889" in p), -1.0 + ("Paris" in p)]) for p in prompts]
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a question, sources and models in Python."""
    (tmp_path / "question.txt").write_text("When did it open?\n")
    (tmp_path / "models.py").write_text(MODEL)
    sources = tmp_path / "notes"
    sources.mkdir()
    for name, text in (("a.txt", "It opened in 1889."), ("b.md", "In Paris."), ("c.txt", "Cats.")):
        (sources / name).write_text(f"{text}\n")
    (sources / "data.csv").write_text("not a source")
    (tmp_path / "whole.txt").write_text("It opened in 1889.\n\nIn Paris.\n\nCats.")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "models", raising=False)
    return tmp_path


def explain(capsys, *words, sources="notes", model="models:Parrot()"):
    """Run `eblime explain prompt`: exit code and output."""
    return run_command(
        capsys, "explain", "prompt", "question.txt", "--sources", sources, "--model", model, *words
    )


def test_the_files_of_a_folder_are_the_sources(folder, capsys):
    """The answer is that of the model; page, picture, JSON and file are written."""
    code, out, err = explain(capsys)
    e = eblime.load("eblime-out/question.eblime")
    page = (folder / "eblime-out" / "question.html").read_text(encoding="utf8")

    assert code == 0, err
    assert list(e.features) == ["a.txt", "b.md", "c.txt"]
    assert e.scene.answer == "In 1889. In Paris."
    assert e.scene.question == "When did it open?\n"
    assert "a.txt" in out
    assert "In 1889. In Paris." in page
    assert json.loads((folder / "eblime-out" / "question.json").read_text())["features"]


def test_a_text_file_is_cut_and_a_function_needs_no_answer(folder, capsys):
    """The answer is only shown."""
    code, _, err = explain(
        capsys, "--answer", "In 1889.", sources="whole.txt", model="models:score"
    )
    e = eblime.load("eblime-out/question.eblime")

    assert code == 0, err
    assert [name.split(" '")[0] for name in e.features] == [f"paragraph {k}" for k in (1, 2, 3)]
    assert e.scene.answer == "In 1889."
    assert e.as_list(top=1)[0][0] == "paragraph 1 'It opened in 1889.'"


def test_targets_are_sentences_of_the_answer(folder, capsys):
    """By number, and by text."""
    assert explain(capsys, "--target", "2")[0] == 0
    assert eblime.load("eblime-out/question.eblime").label == "sentence 2 'In Paris.'"
    assert explain(capsys, "--target", "Paris", "--score", "total")[0] == 0
    assert eblime.load("eblime-out/question.eblime").label == "part 'Paris'"
    assert explain(capsys, "--targets", "3")[0] == 0
    assert (folder / "eblime-out" / "question-sentence-1-In-1889.eblime").exists()


@pytest.mark.parametrize(
    ("words", "sources", "message"),
    [
        (["--prompt", "question.txt"], "notes", "--prompt must contain {sources} once"),
        (["--prompt", "no place"], "notes", "No such file or directory: 'no place'"),
        (["--score", "likely"], "notes", "--score must be one of 'mean'"),
        (["--segmentation", "page"], "notes", "--segmentation must be one of 'sentence'"),
        ([], "nothing", "--sources must be a file of texts, or a folder"),
        ([], ".", "--answer"),
    ],
)
def test_options_that_cannot_work_are_refused(folder, capsys, words, sources, message):
    """The message names the option."""
    if sources == ".":
        (folder / "notes" / "a.txt").unlink()
        (folder / "notes" / "b.md").unlink()
        (folder / "notes" / "c.txt").unlink()
        sources, message = "notes", "with files that end in .txt or .md"
    code, _, err = explain(capsys, *words, sources=sources)

    assert code != 0
    assert message in err


def test_a_json_lines_file_has_a_source_on_each_line(folder, capsys):
    """Not one paragraph with quotation marks in it."""
    (folder / "notes.jsonl").write_text('{"text": "It opened in 1889."}\n"In Paris."\n')
    code, _, err = explain(capsys, sources="notes.jsonl")

    assert code == 0, err
    assert eblime.load("eblime-out/question.eblime").scene.sources == [
        "It opened in 1889.",
        "In Paris.",
    ]


def test_a_damaged_json_file_is_refused_by_the_name_of_the_option(folder, capsys):
    """With the line."""
    (folder / "notes.jsonl").write_text('"It opened in 1889."\n{"text": \n')
    code, _, err = explain(capsys, sources="notes.jsonl")

    assert code == 2
    assert "--sources: 'notes.jsonl', line 2, must be JSON" in err


def test_levels_open_the_files_that_count(folder, capsys):
    """Each file is a document of paragraphs."""
    (folder / "notes" / "a.txt").write_text("Cats.\n\nIt opened in 1889.\n\nDogs.")
    code, _, err = explain(capsys, "--levels", "2")
    e = eblime.load("eblime-out/question.eblime")

    assert code == 0, err
    assert "a.txt, chunk 2 'It opened in 1889.'" in e.features
    assert "b.md" in e.features
