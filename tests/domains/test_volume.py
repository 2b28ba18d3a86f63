"""Volumes: scenes, rendering, readers of files, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.domains import readers
from eblime.domains.readers import read_scan
from eblime.domains.volume.scene import blocks, read_volume


@pytest.fixture
def volume(rng):
    """A small volume of float32."""
    return rng.random((8, 6, 10)).astype(np.float32)


def scene_of(volume, **settings):
    """A scene with four blocks, or other settings."""
    return read_volume(
        volume, **{"segmentation": ("blocks", {"n": (2, 1, 2)}), "hide": 0, **settings}
    )


@pytest.mark.parametrize("n", [4, (2, 3, 5), [8, 1, 2]])
def test_blocks_are_numbered_along_the_last_axis_first(volume, n):
    """The literal form."""
    counts = np.broadcast_to(n, 3)
    found = blocks(volume[..., None], n)

    for place in np.ndindex(volume.shape):
        block = [i * c // s for i, c, s in zip(place, counts, volume.shape, strict=True)]
        assert found[place] == np.ravel_multi_index(block, counts)


def test_blocks_are_four_along_an_axis_that_has_room(volume):
    """Of a thin volume each slice is a block."""
    assert blocks(volume[:3, ..., None]).max() + 1 == 3 * 4 * 4
    assert scene_of(volume[:3], segmentation="blocks").features[-1] == "block (2, 3, 3)"


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, bool])
@pytest.mark.parametrize("axis", [None, 0, 3])
@pytest.mark.parametrize("cut", ["blocks", "any"])
def test_rendered_volumes_are_those_of_where(rng, dtype, axis, cut):
    """Every layout and dtype."""
    shape = (6, 5, 7) if axis is None else (2, 6, 5, 7) if axis == 0 else (6, 5, 7, 2)
    volume = (
        (rng.random(shape) * 200).astype(dtype) if dtype is not bool else rng.random(shape) < 0.5
    )
    labels = rng.integers(0, 9, (6, 5, 7)) if cut == "any" else ("blocks", {"n": (2, 3, 2)})
    channels = "first" if axis == 0 else "last"
    scene = read_volume(volume, segmentation=labels, hide="mean", channels=channels)
    masks = rng.integers(0, 2, (5, scene.n_features)).astype(float)
    batch = scene.batch(5)
    scene.renderer().render(masks, batch)

    for mask, found in zip(masks, batch, strict=True):
        shown = mask[scene.labels] > 0.5
        shown = shown if axis is None else np.expand_dims(shown, axis)
        assert_array_equal(found, np.where(shown, scene.shown, scene.hidden))


def test_planted_blocks_have_their_exact_importances(volume):
    """A model that adds up two blocks; hidden blocks show their mean, zero or a background."""
    labels = blocks(volume[..., None], (2, 1, 2))
    mean = [volume[labels == j].mean(dtype=float) for j in range(4)]
    weight = (labels == 1) * 2.0 - (labels == 2)
    score = lambda batch: (batch * weight).sum(axis=(1, 2, 3)) / 120  # noqa: E731
    sizes = np.bincount(labels.ravel())
    for hide, left in ((0, 0 * sizes), (0.25, 0.25 + 0 * sizes), (np.full(volume.shape, 0.5), 0.5)):
        explainer = eblime.VolumeExplainer(score, ("blocks", {"n": (2, 1, 2)}), hide)
        e = explainer.explain(volume)
        expected = np.array([0, 2, -1, 0]) * (np.array(mean) - left) * sizes / 120

        assert e.exhaustive
        assert_allclose(e.posterior.mean, expected, atol=2e-3)
        assert e.features[1] == "block (0, 0, 1)"
        assert e.segments.shape == volume.shape
        assert e.mask(top=1).sum() == sizes[1]


def test_details_have_positions_and_sizes_in_voxels_and_in_units(volume):
    """Centre, box and size of a block by hand."""
    details = scene_of(volume, spacing=(0.5, 1, 2)).details()

    assert [details[f"centre_{axis}"][3] for axis in "zyx"] == [5.5, 2.5, 7.0]
    assert [details[f"start_{axis}"][3] for axis in "zyx"] == [4, 0, 5]
    assert [details[f"stop_{axis}"][3] for axis in "zyx"] == [8, 6, 10]
    assert [details[f"centre_{axis}_mm"][3] for axis in "zyx"] == [2.75, 2.5, 14.0]
    assert [details[f"extent_{axis}_mm"][3] for axis in "zyx"] == [2.0, 6.0, 10.0]
    assert (details["voxels"][3], details["volume_mm3"][3]) == (120, 120.0)
    assert "centre_z_mm" not in scene_of(volume).details()
    moved = scene_of(volume, spacing=2, origin=(10, 0, -4)).details()
    assert [moved[f"centre_{axis}_mm"][3] for axis in "zyx"] == [21.0, 5.0, 10.0]
    assert [moved[f"extent_{axis}_mm"][3] for axis in "zyx"] == [8.0, 12.0, 10.0]


def test_slic_follows_a_bright_ball_and_the_spacing(rng):
    """The regions are of one kind inside and outside; a spacing changes them."""
    grid = np.indices((24, 24, 24)) - 11.5
    ball = ((grid**2).sum(axis=0) < 60).astype(np.float32)
    scene = read_volume(ball, segmentation="slic", hide="blur")
    inside = np.bincount(scene.labels.ravel(), ball.ravel()) / np.bincount(scene.labels.ravel())
    other = read_volume(ball, segmentation="slic", hide="blur", spacing=(4, 1, 1))

    assert scene.features[0] == "region 0"
    assert ((inside < 0.35) | (inside > 0.65)).mean() > 0.8
    assert not np.array_equal(scene.labels, other.labels)


def test_a_large_volume_is_cut_on_a_smaller_copy(monkeypatch, rng):
    """The labels have the shape of the volume."""
    monkeypatch.setattr("eblime.domains.volume.scene._MOST_VOXELS", 500)
    volume = np.linspace(0, 1, 20 * 13 * 17).reshape(20, 13, 17)

    assert read_volume(volume, segmentation="slic", hide=0).labels.shape == volume.shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"volume": np.zeros((4, 4))}, r"one volume of shape \(D, H, W\).*got shape \(4, 4\)"),
        ({"volume": np.zeros((1, 1, 3, 4, 5))}, r"Pass `volume\[0\]`, without the batch axis"),
        ({"volume": np.full((3, 4, 5), np.nan)}, r"must be finite; got nan at \(0, 0, 0\)"),
        ({"volume": np.zeros((9, 8, 7, 6))}, r"channel axis of the volume .* is not clear"),
        ({"segmentation": np.zeros((3, 3, 3), int)}, r"volume's shape \(8, 6, 10\); got"),
        ({"segmentation": ("blocks", {"n": (2, 2)})}, "one number or 3"),
        ({"segmentation": ("blocks", {"n": 7})}, r"no larger than the sides .*10\); got 7"),
        ({"hide": np.zeros((2, 2, 2))}, r"the shape of the explained volume"),
        ({"hide": (1, 2)}, "one for each of the 1 channels"),
    ],
)
def test_bad_volumes_are_refused(volume, change, message):
    """Before the model is asked."""
    with pytest.raises(ValueError, match=message):
        scene_of(**{"volume": volume, **change})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spacing": (1, 2)}, "`spacing` must be 3 numbers"),
        ({"axes": ("x", "y")}, "`axes` must be 3 different names"),
        ({"axes": ("x", "y", "x")}, "`axes` must be 3 different names"),
        ({"spacing": (1, 2, -1)}, "`spacing` must be 3 numbers > 0"),
        ({"segmentation": "grid"}, "'slic', 'blocks'"),
        ({"segmentation": ("blocks", {"m": 2})}, "must be those of 'blocks', 'n'"),
        ({"segmentation": ("blocks", {"n": 0})}, "`n` must be"),
        ({"hide": "median"}, "`hide` must be"),
        ({"hide": True}, "`hide` must be 'auto', 'mean', 'blur', a number, .* function; got True"),
        ({"unit": 3}, "`unit` must be a string; got int"),
        ({"channels": 0}, "`channels` must be"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    """By the constructor."""
    with pytest.raises((ValueError, TypeError), match=message):
        eblime.VolumeExplainer(len, **settings)


def test_a_volume_that_does_not_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    """From the header of its file, and for an array that is not in memory yet."""
    path = tmp_path / "huge.npy"
    huge = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(50, 40, 30))
    monkeypatch.setattr(readers, "free_memory", lambda: 1 << 20)
    for source in (path, huge):
        with pytest.raises(ValueError, match=r"must fit into memory: shape \(50, 40, 30\) .* GB"):
            eblime.VolumeExplainer(len).subject(source)
    monkeypatch.setattr(readers, "free_memory", lambda: None)
    assert read_scan(path).values.shape == (50, 40, 30)


def save_all(folder, volume):
    """The volume in all formats, by file name."""
    import h5py
    import nibabel
    import tifffile
    from scipy import io

    np.save(folder / "a.npy", volume)
    np.savez(folder / "a.npz", scan=volume, time=np.arange(3))
    tifffile.imwrite(folder / "a.tif", volume)
    io.savemat(folder / "a.mat", {"scan": volume, "dx": 0.5})
    with h5py.File(folder / "a.h5", "w") as file:
        file["group/scan"] = volume
        file["positions"] = np.arange(3.0)
    image = nibabel.Nifti1Image(volume, np.diag([1.0, 2.0, 3.0, 1.0]))
    nibabel.save(image, folder / "a.nii.gz")
    return ["a.npy", "a.npz", "a.tif", "a.mat", "a.h5", "a.nii.gz"]


def test_files_are_read_with_what_they_know(tmp_path, volume):
    """Every format gives the same numbers; NIfTI its spacing."""
    for name in save_all(tmp_path, volume):
        scan = read_scan(tmp_path / name)

        assert_array_equal(scan.values, volume)
        nifti = name.endswith(".gz")
        assert scan.spacing == ([1.0, 2.0, 3.0] if nifti else None)
        assert tuple(scan.axes) == (("x", "y", "z") if nifti else ("z", "y", "x"))
    explainer = eblime.VolumeExplainer(len, spacing=(5, 5, 5), unit="um")
    scene = explainer.subject(tmp_path / "a.nii.gz").scene
    assert (scene.spacing, scene.unit) == ([5.0, 5.0, 5.0], "um")


def test_matlab_files_of_version_7_3_have_their_axes_turned_round(tmp_path, volume):
    """They are HDF5 with a header of their own."""
    import h5py

    path = tmp_path / "new.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["scan"] = volume.T
    with path.open("r+b") as opened:
        opened.write(b"MATLAB 7.3 MAT-file")

    assert_array_equal(read_scan(path).values, volume)


def external(file, secret):
    """A dataset whose bytes are in another file."""
    file.create_dataset("scan", (4, 5, 6), "u1", external=[(secret, 0, 120)])


def virtual(file, secret):
    """A dataset that is a view of one in another HDF5 file."""
    import h5py

    layout = h5py.VirtualLayout((4, 5, 6), "u1")
    layout[:] = h5py.VirtualSource(f"{secret}.h5", "scan", (4, 5, 6), "u1")
    file.create_virtual_dataset("scan", layout)


def linked(file, secret):
    """A link to a dataset of another HDF5 file."""
    import h5py

    file["group/scan"] = h5py.ExternalLink(f"{secret}.h5", "scan")
    file["other"] = h5py.ExternalLink(f"{secret}.h5", "scan")


@pytest.mark.parametrize("ending", [".h5", ".mat", ".nde"])
@pytest.mark.parametrize("store", [external, virtual, linked])
def test_an_hdf5_file_with_data_in_other_files_is_refused(tmp_path, store, ending):
    """Else a file from someone else would copy a local one into the explanation."""
    import h5py

    secret = str(tmp_path / "secret.txt")
    Path(secret).write_bytes(bytes(range(120)))
    with h5py.File(f"{secret}.h5", "w") as file:
        file["scan"] = np.zeros((4, 5, 6), "u1")
    path = tmp_path / f"scan{ending}"
    with h5py.File(path, "w", userblock_size=512) as file:
        store(file, secret)
        place = "group/scan" if store is linked else "scan"
        entry = {"dataClass": "AScanAmplitude", "path": place}
        file["Public/Setup"] = json.dumps({"groups": [{"datasets": [entry]}]})
    with path.open("r+b") as opened:
        opened.write(b"MATLAB 7.3 MAT-file")

    with pytest.raises(ValueError, match=r"data itself; '.*' is in another file|it has no arrays"):
        read_scan(path)
    with pytest.raises(ValueError, match=r"is in another file|must be an array in"):
        read_scan(path, place)


def test_a_tiff_file_whose_header_names_other_files_is_refused(tmp_path, volume):
    """They may be anywhere."""
    import tifffile

    small = volume[:2].astype(np.uint8)
    tifffile.imwrite(tmp_path / "secret.ome.tif", small)
    planes = "".join(
        f'<TiffData FirstZ="{k}" IFD="0" PlaneCount="1"><UUID FileName="{name}">urn:uuid:{k}</UUID>'
        "</TiffData>"
        for k, name in enumerate(["scan.ome.tif", str(tmp_path / "secret.ome.tif")])
    )
    sizes = 'SizeX="10" SizeY="6" SizeC="1" SizeT="1" SizeZ="2" Type="uint8"'
    pixels = f'<Pixels ID="Pixels:0" DimensionOrder="XYZCT" {sizes}>{planes}</Pixels>'
    name = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
    text = f'<OME xmlns="{name}" UUID="urn:uuid:0"><Image ID="Image:0">{pixels}</Image></OME>'
    path = tmp_path / "scan.ome.tif"
    tifffile.imwrite(path, small[:1], description=text, metadata=None)

    with pytest.raises(ValueError, match="must hold its data itself; its OME header"):
        read_scan(path)
    tifffile.imwrite(path, small, ome=True)
    assert_array_equal(read_scan(path).values, small)


def test_files_that_cannot_be_read_say_why(tmp_path, volume):
    """Missing, of another kind, with several arrays, DICOM, a folder, damaged."""
    np.savez(tmp_path / "two.npz", a=volume, b=volume)
    (tmp_path / "scan.xyz").write_text("")
    (tmp_path / "damaged.npy").write_text("no array")
    (tmp_path / "series").mkdir()
    for name, kind, message in (
        ("none.npy", FileNotFoundError, "no file"),
        ("scan.xyz", ValueError, r"must end in \.npy"),
        ("two.npz", ValueError, r"`key` must name one; it has 'a' \(8, 6, 10\); 'b'"),
        ("slice.dcm", FileNotFoundError, "no file"),
        ("series", ValueError, r"must end in \.npy"),
        ("damaged.npy", ValueError, "cannot be read"),
    ):
        with pytest.raises(kind, match=message):
            read_scan(tmp_path / name)
    with pytest.raises(ValueError, match=r"`key` must be an array in .*, 'a', 'b'; got 'c'"):
        read_scan(tmp_path / "two.npz", "c")
    assert_array_equal(read_scan(tmp_path / "two.npz", "b").values, volume)


def test_a_float32_scene_can_be_checked_without_a_warning(volume):
    """The bounds of a check are larger than any float32."""
    e = eblime.ImageExplainer(
        lambda batch: batch[:, 0, 0], segmentation=("grid", {"rows": 2, "columns": 2}), hide=0
    ).explain(volume[0])

    eblime.registry.find("domains", "image").check_scene(e.scene)


def test_axes_can_be_named(volume):
    """Positions are then columns of these names."""
    made = eblime.VolumeExplainer(
        lambda b: b.mean((1, 2, 3)), "blocks", n_masks=80, axes=("time", "x", "y"), hide=0
    )
    e = made.explain(volume)

    assert list(e.scene.axes) == ["time", "x", "y"]
    assert "centre_time" in e.scene.details()
