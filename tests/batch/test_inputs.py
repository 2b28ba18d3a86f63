"""Every kind of input gives the same run, and changed inputs are refused."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from many import ROWS, part_file

import eblime
from eblime._text import csv_text
from eblime.batch import inputs as inputs_module
from eblime.batch.inputs import as_inputs
from eblime.batch.location import Location

NAMES = ["age", "debt", "job", "sex", "town"]
FRAME = pd.DataFrame(ROWS, columns=NAMES)


def store(stream, folder):
    """Store a stream in a run folder."""
    return inputs_module.store_inputs(iter(stream), folder)


@pytest.fixture
def explainer():
    """An explainer of a model that takes frames."""
    return quick()


def quick():
    """A method without numerical integration: these tests are about reading, not fitting."""
    return eblime.TabularExplainer(
        lambda t: t["age"] * t["debt"], FRAME, n_masks=60, method="bayeslime"
    )


@pytest.fixture(scope="module")
def of_frame(tmp_path_factory):
    """The rows of a run over the frame."""
    return eblime.explain_many(quick(), FRAME, tmp_path_factory.mktemp("f") / "r").frame()


def csv(folder):
    """A .csv file."""
    FRAME.to_csv(folder / "x.csv", index=False)
    return folder / "x.csv"


def tsv(folder):
    """A .tsv file."""
    FRAME.to_csv(folder / "x.tsv", index=False, sep="\t")
    return str(folder / "x.tsv")


def parquet(folder):
    """A .parquet file of small row groups."""
    FRAME.to_parquet(folder / "x.parquet", row_group_size=5)
    return folder / "x.parquet"


def parquets(folder):
    """A folder of .parquet files."""
    (folder / "many").mkdir()
    for k, first in enumerate((0, 10, 11)):
        last = [10, 11, 24][k]
        FRAME[first:last].reset_index(drop=True).to_parquet(folder / "many" / f"{k}.parquet")
    return folder / "many"


def lines(folder):
    """A .jsonl file with an object per line."""
    rows = [json.dumps(dict(row)) for _, row in FRAME.iterrows()]
    (folder / "x.jsonl").write_text("\n".join(rows) + "\n\n")
    return folder / "x.jsonl"


def dictionaries(folder):
    """Rows as dictionaries, from a generator."""
    return (dict(row) for _, row in FRAME.iterrows())


def arrays(folder):
    """Rows without column names, from an iterator."""
    return iter(ROWS)


def arrow(folder):
    """An Arrow table."""
    return pa.Table.from_pandas(FRAME)


KINDS = [csv, tsv, parquet, parquets, lines, dictionaries, arrays, arrow]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_input_gives_the_same_run(tmp_path, explainer, of_frame, kind, monkeypatch):
    """Read at once, in chunks or by row group; also when the run is resumed."""
    monkeypatch.setattr(inputs_module, "_COUNT", 5)
    given = kind(tmp_path)
    run = eblime.explain_many(explainer, given, tmp_path / "r", part_size=8)
    pd.testing.assert_frame_equal(run.frame(), of_frame, check_exact=True)

    part_file(tmp_path / "r", 2).unlink()
    given = kind(tmp_path) if hasattr(given, "__next__") else given
    run = eblime.explain_many(explainer, given, tmp_path / "r")
    pd.testing.assert_frame_equal(run.frame(), of_frame, check_exact=True)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_other_inputs_are_refused(tmp_path, explainer, kind):
    """A single different number is enough."""
    eblime.explain_many(explainer, kind(tmp_path), tmp_path / "r")
    changed = FRAME.copy()
    changed.iloc[20, 2] += 0.25
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "FRAME", changed)
        patch.setitem(globals(), "ROWS", changed.to_numpy())
        (tmp_path / "new").mkdir()
        given = kind(tmp_path / "new")
        with pytest.raises(ValueError, match=r"other inputs|created with inputs="):
            eblime.explain_many(explainer, given, tmp_path / "r")


def test_a_run_in_a_store(explainer, of_frame):
    """Any store that fsspec can open; here the memory of this process."""
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    run = eblime.explain_many(explainer, iter(ROWS), "memory://runs/a", keep=True)
    pd.testing.assert_frame_equal(run.frame(), of_frame, check_exact=True)

    again = eblime.open_run("memory://runs/a")
    assert again.explanation(3).label == "output"
    assert again.folder == "memory://runs/a"
    with pytest.raises(ValueError, match="Protocol not known"):
        eblime.open_run("nothing://runs/a")


def test_stored_inputs_are_read_unchanged(tmp_path, rng):
    """Texts, paths, images of any size, and names."""
    folder = Location.of(tmp_path)
    images = [rng.integers(0, 255, (4 + k, 5, 3), dtype=np.uint8) for k in range(3)]
    found = store(images, folder)

    assert len(found) == 3
    assert found.name(2) == "2"
    for k, image in enumerate(images):
        np.testing.assert_array_equal(found.get(k), image)
    for name, entries in (("t", ["a", "b"]), ("p", [tmp_path / "a", tmp_path / "b"])):
        (tmp_path / name).mkdir()
        stream = entries
        found = store(stream, Location.of(tmp_path / name))
        assert [found.get(k) for k in range(2)] == entries
        assert found.name(1) == "1"
    found = store(["a", images[0]], Location.of(tmp_path / "x"))
    assert [found.get(0), found.get(1).shape] == ["a", (4, 5, 3)]
    with pytest.raises(ValueError, match="the iterator was empty"):
        store(iter([]), Location.of(tmp_path / "y"))


def test_pictures_and_invalid_texts_are_stored_unchanged(tmp_path):
    """A picture with a palette, half an emoji, rows whose values have several types."""
    from PIL import Image

    picture = Image.new("RGB", (6, 5), (200, 30, 60)).convert("P")
    found = store([picture], Location.of(tmp_path / "a"))
    np.testing.assert_array_equal(found.get(0), np.asarray(picture.convert("RGB")))
    found = store(["cut \ud83d"], Location.of(tmp_path / "b"))
    assert found.get(0) == "cut \ud83d"
    found = store([{"age": 1}, {"age": 2.5}], Location.of(tmp_path / "c"))
    assert [found.get(k)["age"] for k in range(2)] == [1.0, 2.5]
    (tmp_path / "x.csv").write_text('a\nTrue\n""\nFalse\n')
    assert as_inputs(tmp_path / "x.csv").get(0)["a"] is True
    (tmp_path / "x.jsonl").write_text('{"text": null}\n')
    with pytest.raises(ValueError, match="line 1, must be JSON"):
        store(as_inputs(tmp_path / "x.jsonl"), Location.of(tmp_path / "e"))


def test_a_column_has_one_dtype(tmp_path):
    """Whole numbers followed by fractions are floats; a column with a word holds strings."""
    (tmp_path / "x.csv").write_text("a,b,c\n1,1,x\n2,2,\n3,3.5,y\n4,,z\n5,word,\n")
    found = as_inputs(tmp_path / "x.csv")

    rows = [found.get(k) for k in range(5)]
    assert [row["a"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["b"] for row in rows[:3]] == ["1", "2", "3.5"]
    assert rows[4]["b"] == "word"
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n1,2,3,4\n")
    with pytest.raises(ValueError, match="cannot be read as a table"):
        as_inputs(tmp_path / "bad.csv")


def test_folders_and_files_are_inputs(tmp_path):
    """Text files in folders and subfolders, lines of JSON, a column of a table."""
    (tmp_path / "t" / "in").mkdir(parents=True)
    for k in range(3):
        folder = tmp_path / "t" / ("in" if k else "")
        (folder / f"{k}.txt").write_text(f"a good day {k}")
    (tmp_path / "lines.jsonl").write_text('{"text": "a good day"}\n"another"\n')
    pd.DataFrame({"text": ["a good day"] * 4, "n": 1}).to_csv(tmp_path / "x.csv", index=False)
    explainer = eblime.TextExplainer(lambda texts: ["good" in text for text in texts])
    for name, count in (("t", 3), ("lines.jsonl", 2), ("x.csv", 4)):
        run = eblime.explain_many(explainer, tmp_path / name, tmp_path / f"run{count}")
        assert run.frame()["input"].nunique() == count, run.failures()
    names = eblime.open_run(tmp_path / "run3").frame()["name"].unique().tolist()
    assert names == ["0.txt", "in/1.txt", "in/2.txt"]
    with pytest.raises(FileNotFoundError, match="no folder or file"):
        eblime.explain_many(explainer, tmp_path / "gone", tmp_path / "x")
    with pytest.raises(ValueError, match="must not be empty"):
        eblime.explain_many(explainer, [], tmp_path / "x")
    with pytest.raises(TypeError, match=r"`inputs` must be a folder, .* got dict"):
        eblime.explain_many(explainer, {"first": ROWS[0]}, tmp_path / "x")
    (tmp_path / "bad.jsonl").write_text('"a"\n{nothing\n')
    with pytest.raises(ValueError, match="line 2, must be JSON"):
        eblime.explain_many(explainer, tmp_path / "bad.jsonl", tmp_path / "x")
    (tmp_path / "bad.parquet").write_text("nothing")
    with pytest.raises(ValueError, match="cannot be read as a Parquet file"):
        eblime.explain_many(explainer, tmp_path / "bad.parquet", tmp_path / "x")


def test_photos_of_a_folder(tmp_path, rng):
    """Broken photos are reported; files with other endings are ignored."""
    from PIL import Image

    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for name in ("b.png", "more/a.PNG"):
        image = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(image).save(folder / name)
    (folder / "c.jpg").write_text("no photo")
    (folder / "notes.md").write_text("no photo")
    explainer = eblime.ImageExplainer(
        lambda batch: batch[:, :6].mean(axis=(1, 2, 3)),
        segmentation=("grid", {"rows": 2, "columns": 2}),
    )
    run = eblime.explain_many(explainer, folder, tmp_path / "r")

    assert run.frame()["name"].unique().tolist() == ["b.png", "more/a.PNG"]
    assert run.failures()["name"].tolist() == ["c.jpg"]
    assert run.settings["part_size"] == 8


def test_caches_do_not_mix_inputs(tmp_path, explainer):
    """A run that is deleted and repeated in the same process reads the new inputs."""
    import shutil

    for shift in (0.0, 0.25):
        rows = ROWS[:8] + shift
        for kind in ("stream", "file"):
            out = tmp_path / kind
            shutil.rmtree(out, ignore_errors=True)
            pd.DataFrame(rows, columns=NAMES).to_parquet(tmp_path / "x.parquet")
            given = iter(rows) if kind == "stream" else tmp_path / "x.parquet"
            run = eblime.explain_many(explainer, given, out)
            found = run.frame().drop_duplicates("input")["prediction"]
            np.testing.assert_allclose(found, rows[:, 0] * rows[:, 1])


def test_a_row_group_is_read_once(tmp_path, monkeypatch):
    """Two are kept in memory, so rows in order open the file once per group."""
    import pyarrow.parquet as pq

    frame = pd.DataFrame({"n": np.arange(300), "t": [f"text {k}" for k in range(300)]})
    frame.to_parquet(tmp_path / "x.parquet", index=False, row_group_size=64)
    opened, real = [], pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda *a, **b: opened.append(a) or real(*a, **b))
    given = as_inputs(tmp_path / "x.parquet")

    assert [given.get(k)["t"] for k in range(300)] == frame["t"].tolist()
    assert [given.name(k) for k in (298, 299)] == ["298", "299"]
    assert len(opened) == 5
    assert [given.get(k)["n"] for k in (299, 3, 200, 64, 63)] == [299, 3, 200, 64, 63]


def test_other_files_are_not_changed(tmp_path, explainer):
    """Only files of the run are deleted or read."""
    out = tmp_path / "r"
    (out / "deep").mkdir(parents=True)
    for name in (".theirs.tmp", "deep/.theirs.tmp", "part-of-mine.txt"):
        (out / name).write_text("theirs")
    (out / ".part-000000.parquet.abc.tmp").write_text("ours, half written")
    run = eblime.explain_many(explainer, ROWS[:4], out)

    assert run.frame()["input"].nunique() == 4
    assert {path.name for path in out.rglob("*theirs*")} == {".theirs.tmp"}
    assert len(list(out.rglob("*theirs*"))) == 2
    assert not list(out.glob(".part-*"))
    (out / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError, match="has no manifest"):
        eblime.explain_many(explainer, ROWS[:4], out)


def test_the_content_of_an_input_is_the_same_in_every_process():
    """Objects are compared by value, not by address."""
    code = (
        "import numpy as np; from eblime.batch.inputs import as_inputs; "
        "table = np.array([['x', 1.5], ['y', None]], dtype=object); "
        "print(as_inputs([1, object, open('/dev/null'), table]).fingerprint)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", f"junk = {junk}; {code}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for junk in ("1", "[object() for _ in range(100_000)]")
    }

    assert len(found) == 1


def test_circular_links_do_not_stop_a_run(tmp_path):
    """A link to itself, a broken link and a link to a parent; other links are followed."""
    folder, beside = tmp_path / "texts", tmp_path / "beside"
    (folder / "deep").mkdir(parents=True)
    beside.mkdir()
    (folder / "a.txt").write_text("a good day")
    (beside / "b.txt").write_text("another good day")
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    (folder / "gone.txt").symlink_to(folder / "nothing.txt")
    (folder / "deep" / "up").symlink_to(folder)
    (folder / "here").symlink_to(".")
    (folder / "linked").symlink_to(beside)
    (beside / "back").symlink_to(folder)
    explainer = eblime.TextExplainer(lambda texts: ["good" in text for text in texts])
    run = eblime.explain_many(explainer, folder, tmp_path / "r")

    assert run.frame()["name"].unique().tolist() == ["a.txt", "linked/b.txt"]


def test_no_cell_of_a_csv_file_is_a_formula():
    """Names and messages may come from others; numbers are unchanged."""
    cells = ["=1+1", "+a", "-b", "@c", "\tcmd", "\rcmd", "plain=d", None]
    mixed = pd.DataFrame({"x": cells, "y": range(-1, 7)})
    found = pd.read_csv(io.StringIO(csv_text(mixed)), keep_default_na=False)

    quoted = ["'=1+1", "'+a", "'-b", "'@c", "'\tcmd", "'\rcmd", "plain=d", ""]
    assert found["x"].tolist() == quoted
    assert found["y"].tolist() == [*range(-1, 7)]


def test_a_sparse_matrix_is_converted_once():
    """Its rows are read one by one; a conversion for each would take quadratic time."""
    from scipy import sparse

    class Counted(sparse.csc_matrix):
        """Counts its conversions."""

        conversions = 0

        def tocsr(self, *args, **settings):
            """Convert."""
            Counted.conversions += 1
            return super().tocsr(*args, **settings)

    inputs = as_inputs(Counted(np.eye(5)))

    assert [inputs.get(k).toarray().argmax() for k in range(5)] == list(range(5))
    assert Counted.conversions == 1


@pytest.mark.parametrize("kind", [np.copy, lambda row: dict(zip(NAMES, row, strict=True))])
def test_an_iterable_may_yield_one_object_again(tmp_path, kind):
    """As one that fills a buffer for each input: every input is stored as it was."""
    held = kind(ROWS[0])

    def refilled():
        for row in ROWS[:4]:
            if isinstance(held, dict):
                held.update(kind(row))
            else:
                held[:] = row
            yield held

    stored = store(refilled(), Location.of(tmp_path))

    for number in range(4):
        np.testing.assert_array_equal(list(stored.get(number)), ROWS[number])


def test_an_iterable_may_refill_a_tensor(tmp_path):
    """Whose shallow copy would share its memory."""
    torch = pytest.importorskip("torch")
    held = torch.zeros(3)
    entries = (held.fill_(number) for number in range(3))
    stored = store(entries, Location.of(tmp_path))

    for number in range(3):
        np.testing.assert_array_equal(stored.get(number), np.full(3, number))


def test_inputs_that_cannot_be_copied_are_refused_like_others(tmp_path):
    """The message says which inputs can be stored."""
    stream = iter([(letter for letter in "ab")])
    with pytest.raises(TypeError, match="generator cannot be stored"):
        store(stream, Location.of(tmp_path))


def test_paths_may_have_any_bytes(tmp_path):
    """Also bytes that are not valid characters."""
    strange = Path(os.fsdecode(b"/nowhere/\xff.png"))
    stored = store([strange], Location.of(tmp_path))

    assert stored.get(0) == strange
    assert as_inputs([strange]).fingerprint


@pytest.mark.parametrize("way", ["itself", "link"])
def test_a_run_is_not_written_among_its_inputs(tmp_path, way):
    """Its own files would be inputs of the next call."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("a good film")
    (tmp_path / "link").symlink_to(folder)
    explainer = eblime.TextExplainer(lambda texts: [len(text) for text in texts])
    with pytest.raises(ValueError, match="`out` must not be the folder of the inputs"):
        eblime.explain_many(explainer, folder, tmp_path / "link" if way == "link" else folder)

    assert [file.name for file in folder.iterdir()] == ["a.txt"]


def test_inputs_that_are_not_texts_are_named(tmp_path):
    """As `explain` names them."""
    explainer = eblime.TextExplainer(lambda texts: [len(text) for text in texts])
    run = eblime.explain_many(explainer, ["a good film", 5, None], tmp_path)

    assert run.failures()["error"].tolist() == [
        f"TypeError: `text` must be a string; got {kind}." for kind in ("int", "NoneType")
    ]
