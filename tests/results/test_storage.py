import dataclasses
import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.results.storage import FORMAT

GRID = ("grid", {"rows": 3, "columns": 3})
IMAGE = np.random.default_rng(0).integers(1, 256, size=(12, 15, 3), dtype=np.uint8)


def explained(method="eblime", image=IMAGE, rng=None):
    """A quick explanation with any method."""
    explainer = eblime.ImageExplainer(
        lambda batch: batch.reshape(len(batch), -1)[:, ::7].mean(axis=1) / 255,
        segmentation=GRID,
        hide=0,
        n_masks=60,
        method=method,
    )
    return explainer.explain(image, rng=rng)


@pytest.mark.parametrize(
    "method",
    [
        "eblime",
        "eblime-ridge",
        eblime.EBLIME(noise="unequal"),
        "eblime-paper",
        "bayeslime",
        "lime",
    ],
)
def test_a_saved_explanation_comes_back_whole(tmp_path, method):
    """Every number, the image, the masks and the provenance; saved again it is the same."""
    e = explained(method)
    again = eblime.load(e.save(tmp_path / "e.eblime"))

    assert_array_equal(again.posterior.mean, e.posterior.mean)
    assert_array_equal(again.scene.shown, e.scene.shown)
    assert_array_equal(again.masks, e.masks)
    assert again.provenance == e.provenance
    assert (again.label, again.target, again.prediction) == (e.label, e.target, e.prediction)
    assert str(again) == str(e)
    if method != "lime":
        assert_allclose(again.posterior.interval(), e.posterior.interval(), rtol=0)
        assert_array_equal(again.posterior.sample(5, rng=1), e.posterior.sample(5, rng=1))
        assert again.posterior.lam.median == e.posterior.lam.median
    batch = again.scene.batch(1)
    again.scene.renderer().render(np.ones((1, 9)), batch)
    assert_array_equal(batch[0], IMAGE)


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
@pytest.mark.parametrize("method", ["eblime-paper", "quadrature"])
def test_a_generator_of_any_kind_comes_back(tmp_path, kind, method):
    """The draws of the fit are made again from its state."""
    e = explained(method, rng=np.random.Generator(getattr(np.random, kind)(5)))
    again = eblime.load(e.save(tmp_path / "e.eblime"))

    assert_array_equal(again.posterior.mean, e.posterior.mean)
    assert_array_equal(again.importances("lime").mean, e.importances("lime").mean)


def test_no_pickle_is_in_the_file(tmp_path):
    """Plain JSON and plain arrays."""
    with zipfile.ZipFile(explained().save(tmp_path / "e.eblime")) as archive:
        names = archive.namelist()
        json.loads(archive.read("explanation.json"))
        heads = [archive.read(name)[:6] for name in names if name.endswith(".npy")]

    assert set(heads) == {b"\x93NUMPY"}
    assert all(name == "explanation.json" or name.endswith(".npy") for name in names)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_cut_short_is_refused_clearly(tmp_path, share):
    """However much is missing."""
    path = explained().save(tmp_path / "e.eblime")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])

    with pytest.raises(ValueError, match=r"is not a whole eblime explanation"):
        eblime.load(path)


def test_a_damaged_file_is_refused_clearly(tmp_path, rng):
    """Bytes flipped anywhere: either the file still reads, or the error is ours."""
    path = explained().save(tmp_path / "e.eblime")
    data = np.frombuffer(path.read_bytes(), np.uint8)
    words = []
    for _ in range(60):
        bad = data.copy()
        bad[rng.integers(0, len(bad), 3)] ^= rng.integers(1, 256, 3, dtype=np.uint8)
        path.write_bytes(bad.tobytes())
        try:
            eblime.load(path)
        except ValueError as error:
            words.append(str(error))

    assert words
    assert all("eblime" in word for word in words)


def change_tree(path, change):
    """Rewrite the JSON part of a saved file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(parts["explanation.json"])
    change(tree)
    parts["explanation.json"] = json.dumps(tree).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def test_a_newer_format_is_refused_by_name(tmp_path):
    """What a later version wrote says so."""
    path = explained().save(tmp_path / "e.eblime")
    change_tree(path, lambda tree: tree.update(format=FORMAT + 1))

    with pytest.raises(ValueError, match=rf"format {FORMAT + 1}; this eblime reads up to"):
        eblime.load(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    """Writing is atomic: an error on the way changes nothing and leaves no litter."""
    path = explained().save(tmp_path / "e.eblime")
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("eblime.results.storage.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        explained("bayeslime").save(path)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_the_file(tmp_path):
    """The file has the rights that any new file has."""
    plain = tmp_path / "plain"
    plain.touch()

    assert explained().save(tmp_path / "e.eblime").stat().st_mode == plain.stat().st_mode


def test_only_results_can_be_saved(tmp_path):
    """A user's own scene class is refused by name, before anything is written."""
    e = explained()

    class Mine:
        pass

    object.__setattr__(e, "scene", Mine())
    with pytest.raises(TypeError, match=r"A Mine cannot be saved"):
        e.save(tmp_path / "e.eblime")
    assert not list(tmp_path.iterdir())


def test_missing_files_are_missing(tmp_path):
    """The usual error."""
    with pytest.raises(FileNotFoundError):
        eblime.load(tmp_path / "nothing.eblime")


class OtherMethod:
    """A method of another package, which the reader does not have."""

    name = "other"

    def fit(self, rng, answers):
        """A posterior whose held-out R^2 is known."""
        post = eblime.LIME().fit(rng, answers)
        return dataclasses.replace(post, method=self.name, held_out=0.25)


def test_a_missing_method_keeps_its_held_out_r2(tmp_path):
    """It is stored, because it cannot be computed again; a value above 1 is refused."""
    path = explained(OtherMethod()).save(tmp_path / "e.eblime")
    change = '"r2_held_out": 0.25', '"r2_held_out": 1.25'
    changed = rewritten(path, tmp_path / "f.eblime", change)

    assert eblime.load(path).posterior.r2_held_out == 0.25
    with pytest.raises(ValueError, match="r2_held_out` must be"):
        eblime.load(changed)


def rewritten(path, target, change):
    """A copy of a file with a change in its JSON."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "explanation.json":
                assert change[0] in content.decode()
                content = content.decode().replace(*change)
            new.writestr(name, content)
    return target
