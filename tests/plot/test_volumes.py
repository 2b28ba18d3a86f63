"""Slices and projections of volumes."""

import dataclasses

import numpy as np
import pytest

import eblime
from eblime.plot.volumes import sections_of

BLOCKS = ("blocks", {"n": 2})


@pytest.fixture(scope="module")
def explanation():
    """Eight blocks; the one at (1, 0, 1) raises, that at (0, 1, 1) lowers the score."""

    def model(batch):
        return batch[:, 4:, :5, 6:].mean(axis=(1, 2, 3)) - 0.5 * batch[:, :4, 5:, 6:].mean(
            axis=(1, 2, 3)
        )

    explainer = eblime.VolumeExplainer(
        model, segmentation=BLOCKS, hide=0, spacing=(2, 1, 0.5), n_masks=60
    )
    return explainer.explain(np.ones((8, 10, 12)) + np.eye(10, 12), rng=0)


def panels(ax):
    """The axes inside, by their title."""
    return {inset.get_title("left"): inset for inset in ax.child_axes}


def test_slices_pass_through_the_centre_of_the_top_feature(explanation):
    """Positions in the unit of the spacing; the block is green in all three."""
    found = panels(explanation.plot("slices"))

    assert list(found) == ["y-x, z = 10 mm", "z-x, y = 2 mm", "y-z, x = 4 mm"]
    for inset, (row, column) in zip(found.values(), ((2, 9), (6, 9), (2, 6)), strict=True):
        red, green, _ = inset.get_images()[0].get_array()[row, column]
        assert green > red + 0.2


def test_slices_pass_through_a_chosen_voxel(explanation):
    """With lines where the others are; a voxel outside is refused."""
    found = panels(explanation.plot("slices", voxel=(0, 9, 9)))

    assert list(found) == ["y-x, z = 0 mm", "z-x, y = 9 mm", "y-z, x = 4.5 mm"]
    first = found["y-x, z = 0 mm"]
    assert first.lines[0].get_ydata()[0] == 9
    red, green, _ = first.get_images()[0].get_array()[9, 9]
    assert red > green
    for wrong in ((0, 10, 0), (0, 0), (-1, 0, 0), (1.5, 0, 0)):
        with pytest.raises(ValueError, match="`voxel` must be three whole numbers"):
            explanation.plot("slices", voxel=wrong)


def test_projections_show_the_most_important_feature_on_each_ray(explanation):
    """Also where another feature is before it."""
    found = panels(explanation.plot("projections"))
    cut, order = sections_of(explanation), explanation.posterior.order()

    assert list(found) == ["y-x, along z", "z-x, along y", "y-z, along x"]
    rank = np.argsort(order)
    slow = np.empty((10, 12), dtype=int)
    for row, column in np.ndindex(10, 12):
        ray = explanation.scene.labels[:, row, column]
        slow[row, column] = min(ray, key=lambda j: rank[j])
    np.testing.assert_array_equal(cut.projection(0, order).labels, slow)
    photo = cut.projection(2, order).photo[..., 0]
    np.testing.assert_allclose(photo, cut.grey.max(axis=2).T)


def test_ultrasonic_slices_have_their_names(explanation):
    """The slice across the beam is the C-scan."""
    scene = dataclasses.replace(explanation.scene, axes=["scan", "index", "time"])
    cut = sections_of(dataclasses.replace(explanation, scene=scene))

    assert [cut.name(axis) for axis in range(3)] == ["B-scan", "D-scan", "C-scan"]


def test_places_have_size_and_unit(explanation):
    """Of the bounding box, from the origin; in voxels without a spacing."""
    assert explanation.scene.places("voxels")[0] == "centre (3, 2, 1.25), size 8 x 5 x 3 mm"
    bare = dataclasses.replace(explanation.scene, spacing=None)
    assert bare.places("voxels")[7] == "centre (5.5, 7, 8.5), size 4 x 5 x 6 voxels"
    moved = dataclasses.replace(explanation.scene, origin=[10.0, 0.0, -5.0])
    assert moved.places("voxels")[0] == "centre (13, 2, -3.75), size 8 x 5 x 3 mm"
    e = dataclasses.replace(explanation, scene=moved)
    cut = sections_of(e)
    assert cut.place(0, 3) == f"{cut.axes[0]} = {3 * cut.sizes[0] + 10:.4g} mm"
    first, second, _ = e.plot("slices").child_axes
    assert first.xaxis.get_major_formatter()(1.5, 0) == "-3.5"
    assert second.yaxis.get_major_formatter()(1.5, 0) == "11.5"


def test_large_and_flat_volumes_are_drawn():
    """At most 256 voxels per axis; a short axis stays visible; channels are averaged."""
    shape = (3, 20, 700)
    explainer = eblime.VolumeExplainer(
        lambda batch: batch[:, 0, :10, :350].mean(axis=(1, 2, 3)),
        segmentation=BLOCKS,
        hide=0,
        channels="last",
        n_masks=30,
    )
    e = explainer.explain(np.random.default_rng(0).random((*shape, 2)) - 0.5, rng=0)
    cut = sections_of(e)

    assert cut.grey.shape == (3, 20, 233)
    assert min(cut.lengths) == pytest.approx(0.3 * 700)
    assert cut.signed
    for ax in (e.plot("slices"), e.plot("projections"), eblime.plot.poster.poster(e).axes[0]):
        ax.figure.canvas.draw()


def test_another_domain_is_refused():
    """The message says what is needed."""
    e = eblime.TextExplainer(lambda texts: [len(t) for t in texts]).explain("one two")
    with pytest.raises(TypeError, match="needs a volume explanation"):
        e.plot("slices")
