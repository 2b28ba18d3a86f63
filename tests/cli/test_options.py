"""Commands of domains and methods that another package adds by entry points."""

import json
import os
import sys
from pathlib import Path

import pytest
from click import Context
from commands import run_command
from many import part_file

import eblime
from eblime import registry
from eblime.batch.folder import with_checksum
from eblime.cli.app import app
from eblime.domains import Domain, Item

PACKAGE = '''
"""Numbers in a file, cut into windows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eblime import BayesLIME
from eblime.domains import Command, Domain, Item, Option


@dataclass(frozen=True, eq=False)
class Windows:
    values: np.ndarray
    width: int
    domain = "windows"
    sizes = (64,)

    @property
    def n_features(self):
        return len(self.values) // self.width

    @property
    def features(self):
        return [f"window {j}" for j in range(self.n_features)]

    def inputs(self, masks):
        return np.repeat(masks, self.width, axis=1) * self.values


def read(values, width=4):
    if width > len(values):
        raise ValueError(f"`width` must be at most {len(values)}; got {width}.")
    return Windows(np.asarray(values), width)


def items(argument, model, options):
    path = Path(argument)
    files = sorted(path.glob("*.num")) if path.is_dir() else [path]
    return [Item(file.name, file.stem, np.loadtxt(file), file) for file in files]


class Robust(BayesLIME):
    pass


WINDOWS = Domain(
    name="windows",
    feature="window",
    scene=Windows,
    read=read,
    command=Command(
        argument="A .num file, or a folder of them.",
        example="eblime explain windows a.num --model m:f",
        items=items,
        options=[
            Option(name="width", help="Numbers per window.", type=int, minimum=1),
            Option(name="unit", help="Unit of the numbers.", choices=("V", "A"), used_by="inputs"),
            Option("offset", "Where to begin.", type=int, default=0, used_by="inputs"),
        ],
    ),
)
'''
ENTRY_POINTS = """
[eblime.domains]
windows = windows_package:WINDOWS
broken = package_that_cannot_be_imported:BROKEN

[eblime.methods]
robust = windows_package:Robust
"""
MODEL = "def last(rows):\n    return rows[:, -4:].sum(axis=1)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two inputs and a model, and the package installed beside it."""
    packages = tmp_path / "packages"
    about = packages / "windows_package-0.1.dist-info"
    about.mkdir(parents=True)
    (packages / "windows_package.py").write_text(PACKAGE)
    (packages / "package_that_cannot_be_imported.py").write_text("raise ImportError('no luck')")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: windows-package\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    here = tmp_path / "here"
    (here / "data").mkdir(parents=True)
    for name in ("a", "b"):
        (here / "data" / f"{name}.num").write_text("\n".join(map(str, range(16))))
    (here / "sums.py").write_text(MODEL)
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(packages), known]))
    registry.refresh()
    yield here
    monkeypatch.undo()
    registry.refresh()


def run(capsys, words):
    """Exit code, standard output and standard error of a command."""
    return run_command(capsys, *words.split())


@pytest.mark.parametrize("group", ["explain", "batch"])
def test_help_lists_the_options_and_names_of_a_package(folder, capsys, group):
    """The domain's own options, the shared ones, and the methods of the package."""
    code, out, _ = run(capsys, f"{group} windows --help")
    text = " ".join(out.split())

    assert code == 0
    for part in ("--width", "Numbers per window", "--model", "--seed", "or robust"):
        assert part in text
    assert f"Example: eblime {group} windows a.num --model m:f" in text
    assert "windows" in run(capsys, f"{group} --help")[1]


@pytest.mark.parametrize(
    ("group", "sections"),
    [
        ("explain", ["Input:", "Model:", "Question:", "Result:", "Other:"]),
        ("batch", ["Input:", "Model:", "Question:", "Result:", "Run:", "Other:"]),
    ],
)
def test_help_lists_options_by_section(folder, capsys, group, sections):
    """An option of a package stands with what uses it."""
    _, out, _ = run(capsys, f"{group} windows --help")
    found = [line for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    question = out.partition("Question:\n")[2].partition("\n\n")[0]

    assert found == sections
    assert "--width" in question
    assert "--method" in question
    assert "--unit" not in question
    assert "--unit" in out.partition("Input:\n")[2].partition("\n\n")[0]


def test_explain_works_for_a_domain_of_a_package(folder, capsys):
    """The option reaches the domain's reader, and the package's method is used."""
    words = "explain windows data --model sums:last --masks 50 --width 8 --method robust --out out"
    code, out, err = run(capsys, words)
    found = eblime.load(folder / "out" / "a.eblime")

    assert (code, err) == (0, "")
    assert out.count("window 1") == 2
    assert list(found.features) == ["window 0", "window 1"]
    assert (folder / "out" / "b.html").exists()


def test_an_option_that_is_left_out_keeps_the_default_of_the_reader(folder, capsys):
    """Without --width there are windows of 4."""
    code, _, _ = run(capsys, "explain windows data/a.num --model sums:last --masks 50 --out out")

    assert code == 0
    assert len(eblime.load(folder / "out" / "a.eblime").features) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--width 99", "--width must be at most 16; got 99"),
        ("--width 0", "--width"),
        ("--unit kg", "'kg' is not one of 'V', 'A'"),
        ("--kernel magic", "--kernel must be one of"),
        ("--design magic", "--design must be one of"),
    ],
)
def test_errors_name_the_options_of_the_domain(folder, capsys, words, message):
    """Not the parameters of its functions."""
    code, _, err = run(capsys, f"explain windows data/a.num --model sums:last {words}")

    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_batch_works_for_a_domain_of_a_package(folder, capsys, workers):
    """`items` also serves `eblime batch`, in worker processes too; the run can be resumed."""
    pytest.importorskip("pyarrow")
    words = f"batch windows data --model sums:last --masks 50 --width 8 --workers {workers}"
    words += " --offset -2"
    code, out, err = run(capsys, f"{words} --part-size 1 --out run")
    frame = eblime.open_run("run").frame()

    assert (code, err) == (0, "")
    assert "2 explained, 0 failed" in out
    assert sorted(set(frame["name"])) == ["a.num", "b.num"]
    assert set(frame["feature"]) == {"window 0", "window 1"}
    part_file(folder / "run", 1).unlink()
    code, _, err = run(capsys, "batch --resume run --workers 1 --model sums:last --inputs data")
    assert (code, err) == (0, "")


def edit_manifest(folder, changes, removed=()):
    """Change the settings that `eblime batch` stored, and remove a part so that work is left."""
    path = folder / "run" / "manifest.json"
    manifest = json.loads(path.read_text())
    settings = manifest["settings"]["about"] | changes
    manifest["settings"]["about"] = {k: v for k, v in settings.items() if k not in removed}
    path.write_text(json.dumps(with_checksum(manifest)))
    part_file(folder / "run", 1).unlink()


@pytest.fixture
def begun(folder, capsys):
    """A run of the package's domain."""
    pytest.importorskip("pyarrow")
    words = "batch windows data --model sums:last --masks 50 --width 8 --workers 1 --part-size 1"
    assert run(capsys, f"{words} --out run")[0] == 0
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": "8"}, "manifest.json is damaged: --width is '8'"),
        ({"width": True}, "--width"),
        ({"width": 0}, "manifest.json is damaged: --width is 0"),
        ({"width": [8, 8]}, "manifest.json is damaged: --width is [8, 8]"),
        ({"unit": "kg"}, "manifest.json is damaged: --unit is 'kg'"),
        ({"design": 3}, "manifest.json is damaged: --design is 3"),
        ({"kind": "intruder"}, "got 'intruder'"),
        ({"kind": "intruder:DOMAIN"}, "got 'intruder:DOMAIN'"),
    ],
)
def test_a_manifest_is_checked_against_the_options_of_its_domain(begun, capsys, changes, message):
    """Values of another type and unknown domains are refused, and nothing is imported."""
    (begun / "intruder.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    edit_manifest(begun, changes)
    code, _, err = run(capsys, "batch --resume run --workers 1 --trust-run")

    assert code == 2
    assert message in err
    assert "intruder" not in sys.modules
    assert not (begun / "ran").exists()


def test_a_missing_setting_is_reported(begun, capsys):
    """Every option of the domain is stored."""
    edit_manifest(begun, {}, removed=("unit",))
    code, _, err = run(capsys, "batch --resume run --workers 1 --model sums:last --inputs data")

    assert code == 2
    assert "manifest.json is damaged: --unit is 'missing'" in err


def test_a_package_that_cannot_be_imported_harms_only_its_own_command(folder, capsys):
    """It is listed, its command reports why it does not work, and the others work."""
    code, out, _ = run(capsys, "explain --help")
    assert code == 0
    assert "windows" in out

    code, _, err = run(capsys, "explain broken x --model m:f")
    assert code == 2
    assert "The command 'broken' cannot be loaded: no luck" in err


def test_a_domain_without_a_command_is_not_listed(monkeypatch, capsys):
    """Its name is not a command."""
    quiet = Domain(name="quiet", feature="part", scene=object)
    monkeypatch.setitem(registry._ADDED["domains"], "quiet", quiet)

    assert "quiet" not in run(capsys, "explain --help")[1]
    assert "No such command" in run(capsys, "explain quiet x")[2]


def test_completion_knows_the_names_of_packages(folder):
    """Registered names and choices of options that start with the letters typed."""
    group = app.get_command(Context(app), "explain")
    with group.make_context("explain", ["windows"], resilient_parsing=True) as context:
        options = {entry.name: entry for entry in group.get_command(context, "windows").params}
        found = {
            name: [item.value for item in options[name].shell_complete(context, letters)]
            for name, letters in (("method", "r"), ("kernel", "co"), ("unit", ""))
        }

    assert found == {"method": ["robust"], "kernel": ["cosine"], "unit": ["V", "A"]}


def test_results_next_to_an_input_have_another_name(folder, capsys):
    """An input file in the folder of the results is never overwritten."""
    run(capsys, "explain windows data/a.num --model sums:last --masks 50 --out data")

    assert (folder / "data" / "a-explained.eblime").exists()


def test_an_item_may_read_its_input_later():
    """A function without arguments is called, other inputs are returned."""
    assert Item("x", "x", lambda: 3).read() == 3
    assert Item("x", "x", Path("a")).read() == Path("a")
