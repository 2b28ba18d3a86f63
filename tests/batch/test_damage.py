"""Flipped bits in the files of a run never give other numbers."""

import hashlib
import io
import json
import random
import re
import shutil
from contextlib import suppress

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from many import ROWS, part_file

import eblime
from eblime.batch.folder import (
    DamagedFileError,
    read_checked,
    read_table,
    with_checksum,
)
from eblime.batch.location import Location, arrow

FLIPS = 300


@pytest.fixture(scope="module")
def explainer():
    """A fast one."""
    return eblime.TabularExplainer(lambda rows: rows[:, 0] * rows[:, 1], ROWS, n_masks=20)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, explainer):
    """A finished run of a stream, whose inputs are stored, and its numbers."""
    out = tmp_path_factory.mktemp("damage") / "r"
    run = eblime.explain_many(explainer, iter(ROWS[:8]), out, part_size=4)
    return out, run.frame()


@pytest.fixture
def run(finished, tmp_path):
    """A copy of it, to be damaged."""
    shutil.copytree(finished[0], tmp_path / "r")
    return tmp_path / "r"


def flip(path, chance):
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def run_id(run):
    """The id of a run."""
    return json.loads((run / "manifest.json").read_text())["run"]


def forge(run, table, **settings):
    """Write a table as part 1, with a digest that fits."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **settings)
    digest = hashlib.sha256(f"{run_id(run)} part-000001 ".encode() + sink.getvalue()).hexdigest()
    name = f"part-000001-{digest[:16]}.parquet"
    (run / name).write_bytes(sink.getvalue())
    return name


def test_a_flipped_bit_in_a_part_is_detected(run):
    """Reading raises an error, wherever the bit is."""
    part, chance = part_file(run, 1), random.Random(0)
    good = part.read_bytes()
    for _ in range(FLIPS):
        flip(part, chance)
        with pytest.raises(DamagedFileError, match=r"part-000001-\w+\.parquet is damaged"):
            read_checked(Location.of(part), run_id(run))
        part.write_bytes(good)
    assert read_checked(Location.of(part), run_id(run)) == good


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 40, 500, -1])
def test_a_truncated_part_is_detected(run, cut):
    """Including an empty file."""
    part = part_file(run, 1)
    part.write_bytes(part.read_bytes()[:cut])
    with pytest.raises(DamagedFileError):
        read_checked(Location.of(part), run_id(run))


@pytest.mark.parametrize("read", ["frame", "failures", "summary", "scan"])
def test_every_way_to_read_a_damaged_run_raises(run, read):
    """The message has the file name and says what to do."""
    flip(part_file(run, 1), random.Random(1))
    with pytest.raises(DamagedFileError, match=r"part-000001-\w+\.parquet is damaged.*again"):
        getattr(eblime.open_run(run), read)()


def test_damaged_parts_are_done_again(run, finished, explainer):
    """The next call gives the numbers of an undamaged run."""
    chance = random.Random(2)
    for _ in range(10):
        for part in run.glob("part-*.parquet"):
            if chance.random() < 0.6:
                flip(part, chance)
        again = eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
        pd.testing.assert_frame_equal(again.frame(), finished[1], check_exact=True)


def chunk_file(run):
    """The only file of stored inputs."""
    [found] = (run / "inputs").iterdir()
    return found


@pytest.mark.slow
def test_damaged_inputs_are_stored_again(run, finished, explainer):
    """From the same stream, with the same results."""
    chance, file = random.Random(3), chunk_file(run)
    good = file.read_bytes()
    for _ in range(25):
        flip(file, chance)
        part_file(run, 1).unlink()
        again = eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
        pd.testing.assert_frame_equal(again.frame(), finished[1], check_exact=True)
        assert chunk_file(run).read_bytes() == good


def test_other_inputs_never_replace_damaged_ones(run, finished, explainer):
    """A different stream is refused, and the original one still resumes the run."""
    flip(chunk_file(run), random.Random(4))
    part_file(run, 1).unlink()
    with pytest.raises(ValueError, match="was created with inputs="):
        eblime.explain_many(explainer, iter(ROWS[1:9]), run, part_size=4)
    assert chunk_file(run).exists()
    again = eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
    pd.testing.assert_frame_equal(again.frame(), finished[1], check_exact=True)


def test_a_damaged_input_is_never_read(run):
    """Also if it is damaged after it was checked."""
    from eblime.batch import inputs

    stored = inputs.store_inputs(iter(ROWS[:8]), Location.of(run))
    chance, file = random.Random(5), chunk_file(run)
    good = file.read_bytes()
    for _ in range(25):
        inputs._read_chunk.cache_clear()
        flip(file, chance)
        with pytest.raises(DamagedFileError):
            stored.get(3)
        file.write_bytes(good)


def test_parts_are_plain_parquet_files(run, finished):
    """Every reader can read them."""
    path = part_file(run, 1)
    wanted = finished[1].query("input >= 4")["mean"].tolist()

    pl = pytest.importorskip("polars", reason="polars is not installed")
    assert pl.read_parquet(path)["mean"].to_list() == wanted
    assert pd.read_parquet(path)["mean"].tolist() == wanted
    assert pq.ParquetFile(path).read_row_group(0)["mean"].to_pylist() == wanted


READS = {
    "frame": lambda run: eblime.open_run(run).frame(),
    "failures": lambda run: eblime.open_run(run).failures(),
    "scan": lambda run: eblime.open_run(run).scan(),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("origin", ["another seed", "another part"])
def test_a_part_that_belongs_elsewhere_is_refused(tmp_path, run, finished, explainer, origin, read):
    """A part of a run with another seed, and a part of this run under another number."""
    eblime.explain_many(explainer, iter(ROWS[:8]), tmp_path / "other", part_size=4, rng=1)
    source = part_file(tmp_path / "other", 1) if origin == "another seed" else part_file(run, 0)
    part_file(run, 1).unlink()
    shutil.copy(source, run / source.name.replace("part-000000", "part-000001"))
    with pytest.raises(ValueError, match="was copied from another run or renamed"):
        READS[read](run)
    again = eblime.explain_many(explainer, iter(ROWS[:8]), run)  # does it again
    pd.testing.assert_frame_equal(again.frame(), finished[1], check_exact=True)


def test_missing_parts_are_reported(run, explainer):
    """Never fewer inputs without a message; the next call does them."""
    part_file(run, 0).unlink()
    with pytest.warns(UserWarning, match="has 4 of 8 inputs: 1 of 2 parts are missing"):
        opened = eblime.open_run(run)
    assert opened.frame()["input"].nunique() == 4
    eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)

    assert eblime.open_run(run).frame()["input"].nunique() == 8


def test_an_explanation_of_another_input_is_refused(run):
    """After two files were swapped; also one of another output."""
    home, opened = run / "explanations", eblime.open_run(run)
    first, second = home / "0-0.eblime", home / "1-0.eblime"
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.rename(home / "1-1.eblime")
    for wanted in ((0, None), (0, 0), (1, 1)):
        with pytest.raises(ValueError, match=r"must be the explanation of input \d of this run"):
            opened.explanation(*wanted)
    first.write_bytes(content)

    assert opened.explanation(0).prediction == opened.frame()["prediction"][0]


def test_a_manifest_may_claim_any_number_of_inputs(run):
    """Parts that are missing are counted, not listed."""
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["settings"] |= {"count": 10**12, "part_size": 1}
    path.write_text(json.dumps(with_checksum(manifest)))

    with pytest.warns(UserWarning, match=r"has 2 of 10{12} inputs: 9{11}8 of 10{12} parts are"):
        eblime.open_run(run)
    manifest["settings"]["count"] = 10**300
    path.write_text(json.dumps(with_checksum(manifest)))
    with pytest.raises(ValueError, match="`count` must be a whole number >= 1 and <="):
        eblime.open_run(run)


@pytest.mark.slow
def test_a_small_part_that_unpacks_to_too_much_is_refused(run, monkeypatch):
    """By the number of its rows, before one is read."""
    part = part_file(run, 1)
    table = pq.read_table(part)
    table = table.take([0] * 2_000_000)
    part.unlink()
    name = forge(run, table, compression="zstd")
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("read"))

    with pytest.raises(ValueError, match=r"must unpack to at most .* it has 2000000 rows"):
        read_table(Location.of(run), run_id(run), name)


@pytest.mark.slow
def test_a_large_value_in_many_rows_is_refused(run):
    """It is stored once, but takes memory in every row."""
    part = part_file(run, 1)
    table = pq.read_table(part).slice(0, 1).take([0] * 40)
    part.unlink()
    names = pa.array(["x" * (1 << 25)] * 40)
    name = forge(run, table.set_column(1, "name", names), compression="zstd")

    assert (run / name).stat().st_size < 1 << 20
    with pytest.raises(ValueError, match=r"must unpack to at most .* it has 40 rows"):
        read_table(Location.of(run), run_id(run), name)


def test_an_old_pyarrow_is_refused(run, monkeypatch):
    """Before version 14.0.1, reading a file could run code from it."""
    arrow.cache_clear()
    monkeypatch.setattr("pyarrow.__version__", "14.0.0")
    with pytest.raises(ImportError, match=r"pyarrow must be 14\.0\.1 or later, .* got 14\.0\.0"):
        eblime.open_run(run).frame()
    monkeypatch.setattr("pyarrow.__version__", "14.0.1")

    assert len(eblime.open_run(run).frame()) > 0


def test_a_flipped_bit_in_the_manifest_is_detected(run):
    """Settings are either unchanged or refused."""
    path, chance = run / "manifest.json", random.Random(6)
    good, known = path.read_bytes(), json.loads(path.read_bytes())
    for _ in range(FLIPS):
        flip(path, chance)
        with suppress(ValueError):
            assert eblime.open_run(run).settings == known["settings"]  # a flip in white space
        path.write_bytes(good)


def wrong_manifests(manifest):
    """Manifests with missing keys, wrong types and values, and valid checksums."""
    wrong = (None, True, -1, 0, 1.5, float("nan"), 10**30, "x", [], ["x"], {}, {"x": 1})
    for name in manifest:
        yield {key: value for key, value in manifest.items() if key != name}
        yield from ({**manifest, name: value} for value in wrong)
    settings = manifest["settings"]
    for name in settings:
        fewer = {key: value for key, value in settings.items() if key != name}
        yield {**manifest, "settings": fewer}
        for value in wrong:
            yield {**manifest, "settings": {**settings, name: value}}


@pytest.mark.slow
def test_an_invalid_manifest_gives_a_clear_error(run, explainer):
    """A ValueError with the file or the setting, for every kind of mistake."""
    path = run / "manifest.json"
    good = path.read_bytes()
    bad = [json.dumps(with_checksum(m)).encode() for m in wrong_manifests(json.loads(good))]
    bad += [good[:cut] for cut in range(0, len(good) - 2, 7)]
    bad += [b"[]", b"3", b"null", b"\xff\xfe", b"[" * 100_000, b'{"schema": 1}', b'{"a": ' * 900]
    messages = []
    for content in bad:
        path.write_bytes(content)
        try:
            eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
        except ValueError as error:
            messages.append(str(error))
    assert [
        text
        for text in messages
        if not re.search("manifest.json|was created with|of this run", text)
    ] == []
    assert len(messages) > 0.85 * len(bad)  # `versions` may hold anything


def test_a_part_with_other_columns_gives_a_clear_error(run):
    """Even with a valid checksum."""
    table = pq.read_table(part_file(run, 1)).drop_columns(["mean"])
    part_file(run, 1).unlink()
    forge(run, table)
    with pytest.raises(ValueError, match="does not have the columns of a part"):
        eblime.open_run(run).frame()
