"""The files of a run folder, without a run."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import eblime
from eblime.batch import folder as folders
from eblime.batch.folder import (
    DamagedFileError,
    _least_squares,
    map_ahead,
    part_files,
    part_numbers,
    read_checked,
    read_manifest,
    read_parquet,
    read_table,
    refuse_difference,
    remove_leftovers,
    with_checksum,
    write_manifest,
    write_part,
)
from eblime.batch.location import Location

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
SETTINGS = {"targets": 1, "seed": 0, "count": 10, "inputs": "rows", "part_size": 4}


@pytest.fixture
def folder(tmp_path):
    """An empty folder."""
    return Location.of(tmp_path)


def failed(number):
    """The row of a failed input."""
    return {"input": number, "name": f"row {number}", "error": "ValueError: no"}


def test_the_inputs_of_all_parts_are_all_inputs():
    """The last part may be smaller."""
    assert [part_numbers(SETTINGS, k) for k in range(3)] == [range(4), range(4, 8), range(8, 10)]
    assert part_numbers(SETTINGS | {"count": 8}, 1) == range(4, 8)


def test_a_manifest_is_read_as_it_was_written(folder):
    """With the version of the format, the id of the run and its settings."""
    write_manifest(folder, "abc", SETTINGS)
    found = read_manifest(folder)

    assert found["run"] == "abc"
    assert found["settings"] == SETTINGS
    assert found == with_checksum(found)
    assert with_checksum(found | {"run": "abcd"})["sha256"] != found["sha256"]
    assert {"eblime", "python", "numpy", "scipy", "pyarrow"} == set(found["versions"])


@pytest.mark.parametrize(
    "change",
    [{"count": 0}, {"count": 2**53 + 1}, {"part_size": 0}, {"seed": -1}, {"targets": -1}],
)
def test_a_manifest_with_impossible_settings_is_refused(folder, change):
    """Although its checksum is right."""
    write_manifest(folder, "abc", SETTINGS | change)

    with pytest.raises(ValueError, match=rf"is damaged: `{next(iter(change))}"):
        read_manifest(folder)


def test_a_manifest_that_is_a_link_is_not_read(folder, tmp_path):
    """It may lead out of the folder."""
    write_manifest(folder, "abc", SETTINGS)
    (tmp_path / "manifest.json").rename(tmp_path / "elsewhere.json")
    (tmp_path / "manifest.json").symlink_to(tmp_path / "elsewhere.json")

    with pytest.raises(PermissionError, match="symbolic link"):
        read_manifest(folder)


def test_settings_that_differ_are_named(folder):
    """Also inside other settings; an explainer or a model may be unknown until later."""
    before = {"seed": 0, "explainer": {"n_masks": 10, "model": None}, "model": "a"}
    now = {"seed": 0, "explainer": {"n_masks": 10, "model": "b"}, "model": None}
    refuse_difference(folder, before, now)

    with pytest.raises(ValueError, match=r"created with n_masks=10; this call has n_masks=11"):
        refuse_difference(folder, before, {**now, "explainer": {"n_masks": 11}})
    with pytest.raises(ValueError, match=r"created with model='a'; this call has model='b'"):
        refuse_difference(folder, before, {**now, "model": "b"})
    with pytest.raises(ValueError, match=r"created with seed=0; this call has seed=None"):
        refuse_difference(folder, before, {**now, "seed": None})


def test_a_part_is_found_and_read(folder):
    """By its number, in order; the other columns of a failed input are null."""
    for part in (2, 0):
        write_part(folder, "run", part, [failed(4 * part), failed(4 * part + 1)])
    (folder / "part-1.parquet").write(b"")
    files = part_files(folder)
    table = read_table(folder, "run", files[2])

    assert list(files) == [0, 2]
    assert table.column("input").to_pylist() == [8, 9]
    assert table.column("error").to_pylist() == ["ValueError: no"] * 2
    assert table.column("feature").null_count == 2
    assert read_table(folder, "run", files[0], ["name"]).column_names == ["name"]


def test_a_part_of_another_run_or_place_is_not_read(folder):
    """Its name ends with a digest of run, number and content."""
    write_part(folder, "run", 0, [failed(0)])
    name = part_files(folder)[0]
    content = read_checked(folder / name, "run")
    moved = name.replace("000000", "000001")
    (folder / moved).write(content)

    with pytest.raises(DamagedFileError, match="is damaged"):
        read_checked(folder / name, "other")
    with pytest.raises(DamagedFileError, match="copied from another run or renamed"):
        read_checked(folder / moved, "run")
    (folder / name).write(content + b"x")
    with pytest.raises(DamagedFileError, match="is damaged"):
        read_checked(folder / name, "run")


def test_temporary_files_are_removed_and_no_others(folder, tmp_path):
    """Those of parts, manifests, explanations and inputs."""
    (tmp_path / "explanations").mkdir()
    (tmp_path / "inputs").mkdir()
    left = [".manifest.json.1.tmp", ".part-1.tmp", "explanations/.a.eblime.1.tmp", "inputs/.b.tmp"]
    kept = ["mine.tmp", "explanations/a.eblime", "inputs/b.tmp"]
    for name in (*left, *kept):
        (tmp_path / name).touch()
    remove_leftovers(folder)

    assert not [name for name in left if (tmp_path / name).exists()]
    assert all((tmp_path / name).exists() for name in kept)


def test_a_file_that_unpacks_to_far_more_is_refused(monkeypatch):
    """The limit is some bytes, and 50 for each byte of the file: one value may be there often."""
    from pyarrow import parquet

    def content_of(values):
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.table({"a": values}), sink)
        return sink.getvalue().to_pybytes()

    monkeypatch.setattr(folders, "_SPARE_BYTES", 1000)
    small, large = list(map(str, range(1000))), content_of(["x" * 10**4] * 1000)

    assert read_parquet(content_of(small)).column("a").to_pylist() == small
    with pytest.raises(ValueError, match=f"must unpack to at most {1000 + 50 * len(large)}"):
        read_parquet(large)


def test_results_come_in_order_and_few_wait():
    """An item is drawn when there is room for its result, not before."""
    drawn = []

    def items():
        for number in range(6):
            drawn.append(number)
            yield number

    with ThreadPoolExecutor(2) as pool:
        found = map_ahead(pool, 2, lambda number: number**2, items())
        assert next(found) == 0
        assert drawn == [0, 1, 2]
        assert list(found) == [1, 4, 9, 16, 25]


def test_fixed_features_are_exactly_zero(rng):
    """A column with one value in the whole background; the others keep their estimates."""
    rows = rng.normal(size=(30, 9))
    fixed = np.insert(rows, 2, 3.0, axis=1)
    model = lambda table: table[:, 0] * table[:, 1] - table[:, -1]  # noqa: E731
    varying = eblime.TabularExplainer(model, rows, n_masks=200)
    with pytest.warns(UserWarning, match="the same in all rows"):
        explainer = eblime.TabularExplainer(model, fixed, n_masks=200)
    found = _least_squares(explainer.explain(fixed[0], rng=0))
    alone = _least_squares(varying.explain(rows[0], rng=0))

    assert found["estimate"][2] == found["se"][2] == 0
    assert alone["se"].min() > 0
    np.testing.assert_allclose(np.delete(found["estimate"], 2), alone["estimate"])
    np.testing.assert_allclose(np.delete(found["se"], 2), alone["se"])


def test_only_the_linear_fit_has_least_squares_estimates():
    """Shapley values estimate something else."""
    explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], method="bayesshap")

    assert _least_squares(explainer.explain("one two three four five")) == {}
