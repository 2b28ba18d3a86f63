"""Flipped bits in the files of a run never give other numbers."""

import json
import random
import re
import shutil
from contextlib import suppress

import pandas as pd
import pyarrow.parquet as pq
import pytest
from many import ROWS

import eblime
from eblime.batch.location import Location
from eblime.batch.manifest import with_checksum
from eblime.batch.seal import DamagedFileError, checked, sealed

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


def test_a_flipped_bit_in_a_part_is_detected(run):
    """Reading raises an error, wherever the bit is."""
    part, chance = run / "part-000001.parquet", random.Random(0)
    good = part.read_bytes()
    for _ in range(FLIPS):
        flip(part, chance)
        with pytest.raises(DamagedFileError, match=r"part-000001\.parquet is damaged"):
            checked(Location.of(part))
        part.write_bytes(good)
    assert checked(Location.of(part)) == good


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 40, 500, -1])
def test_a_truncated_part_is_detected(run, cut):
    """Including an empty file, and one without a checksum."""
    part = run / "part-000001.parquet"
    part.write_bytes(part.read_bytes()[:cut])
    with pytest.raises(DamagedFileError):
        checked(Location.of(part))


@pytest.mark.parametrize("read", ["frame", "failures", "summary", "scan"])
def test_every_way_to_read_a_damaged_run_raises(run, read):
    """The message has the file name and says what to do."""
    flip(run / "part-000001.parquet", random.Random(1))
    with pytest.raises(DamagedFileError, match=r"part-000001\.parquet is damaged.*again"):
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


@pytest.mark.slow
@pytest.mark.parametrize("file", ["inputs/000000.parquet", "inputs/index.json"])
def test_damaged_inputs_are_stored_again(run, finished, explainer, file):
    """From the same stream, with the same results."""
    chance, good = random.Random(3), (run / file).read_bytes()
    for _ in range(25):
        flip(run / file, chance)
        (run / "part-000001.parquet").unlink()
        again = eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
        pd.testing.assert_frame_equal(again.frame(), finished[1], check_exact=True)
        assert (run / file).read_bytes() == good


def test_other_inputs_never_replace_damaged_ones(run, finished, explainer):
    """A different stream is refused, and the original one still resumes the run."""
    flip(run / "inputs/000000.parquet", random.Random(4))
    (run / "part-000001.parquet").unlink()
    with pytest.raises(ValueError, match="was created with other inputs: 8 with"):
        eblime.explain_many(explainer, iter(ROWS[1:9]), run, part_size=4)
    (run / "inputs/index.json").unlink()
    with pytest.raises(DamagedFileError, match="call again"):
        eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
    again = eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
    pd.testing.assert_frame_equal(again.frame(), finished[1], check_exact=True)


def test_a_damaged_input_is_never_read(run, explainer, monkeypatch):
    """Also if it is damaged after it was checked."""
    from eblime.batch import stream_inputs

    (run / "part-000001.parquet").unlink()
    good = (run / "inputs/000000.parquet").read_bytes()
    monkeypatch.setattr(stream_inputs, "_intact", lambda folder, number: True)
    chance = random.Random(5)
    for _ in range(25):
        stream_inputs._chunk.cache_clear()
        flip(run / "inputs/000000.parquet", chance)
        stored = stream_inputs.store_inputs(((None, row) for row in ROWS[:8]), Location.of(run))
        with pytest.raises(DamagedFileError):
            stored.get(3)
        (run / "inputs/000000.parquet").write_bytes(good)


def test_sealed_files_are_readable_by_all_parquet_readers(run, finished):
    """Parquet readers ignore the checksum."""
    path = run / "part-000001.parquet"
    wanted = finished[1].query("input >= 4")["mean"].tolist()

    pl = pytest.importorskip("polars", reason="polars is not installed")
    assert pl.read_parquet(path)["mean"].to_list() == wanted
    assert pd.read_parquet(path)["mean"].tolist() == wanted
    assert pq.ParquetFile(path).read_row_group(0)["mean"].to_pylist() == wanted
    assert len(sealed(path.read_bytes())) > path.stat().st_size


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


def test_an_invalid_manifest_gives_a_clear_error(run, explainer):
    """A ValueError with the file or the setting, for every kind of mistake."""
    path = run / "manifest.json"
    good = path.read_bytes()
    bad = [json.dumps(with_checksum(m)).encode() for m in wrong_manifests(json.loads(good))]
    bad += [good[:cut] for cut in range(0, len(good) - 2, 7)]
    bad += [b"[]", b"3", b"null", b"\xff\xfe", b"[" * 100_000, b'{"schema": 2}', b'{"a": ' * 900]
    messages = []
    for content in bad:
        path.write_bytes(content)
        try:
            eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
        except ValueError as error:
            messages.append(str(error))
    assert [
        text for text in messages if not re.search("manifest.json|was created with", text)
    ] == []
    assert len(messages) > 0.9 * len(bad)  # `versions` may hold anything


BAD_INDEX = ("", "[]", "{}", '{"chunks": 3}', '{"chunks": [1]}', "[" * 9999)


@pytest.mark.parametrize("content", BAD_INDEX, ids=range(len(BAD_INDEX)))
def test_an_invalid_index_is_replaced(run, finished, explainer, content):
    """The same stream is passed again, so nothing is lost."""
    (run / "inputs/index.json").write_text(content)
    (run / "part-000001.parquet").unlink()
    again = eblime.explain_many(explainer, iter(ROWS[:8]), run, part_size=4)
    pd.testing.assert_frame_equal(again.frame(), finished[1], check_exact=True)


def test_a_part_with_other_columns_gives_a_clear_error(run):
    """Such as a file of another program, even with a valid checksum."""
    path = run / "part-000001.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["mean"]), path)
    path.write_bytes(sealed(path.read_bytes()))
    with pytest.raises(ValueError, match="does not have the columns of a part"):
        eblime.open_run(run).frame()


def test_an_old_pyarrow_is_refused(run, monkeypatch):
    """Before version 14.0.1, reading a file could run code from it."""
    monkeypatch.setattr("pyarrow.__version__", "14.0.0")
    with pytest.raises(ImportError, match=r"Runs need pyarrow 14\.0\.1 or later; version 14\.0\.0"):
        eblime.open_run(run).frame()
    monkeypatch.setattr("pyarrow.__version__", "14.0.1")

    assert len(eblime.open_run(run).frame()) > 0
