"""The simulator's physics, the scans and the network that ship."""

from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eblime.datasets import ultrasonic
from eblime.datasets.scan_network import ScanNetwork
from eblime.datasets.ultrasonic import Block, endless_scans, sample_scans, scan, scans


def test_a_scan_has_a_surface_a_back_wall_and_its_pores_inside(rng):
    """The back wall is the brightest row, at its depth; the mask holds the pores' centres."""
    block = Block()
    found = scan(rng, defect=True)
    rows = found.image.mean(axis=1)
    depth = (np.arange(block.pixels) + 0.5) * block.span / block.pixels

    assert found.image.dtype == np.uint8
    assert found.image.shape == found.defect.shape == (128, 128)
    assert abs(depth[rows.argmax()] - block.depth) < 0.6
    for x, z, _ in found.pores:
        row, column = int(z / block.span * 128), int(x / block.width * 128)
        assert found.defect[row, column]


def test_an_echo_comes_from_where_its_scatterer_is():
    """One point in silence is focused to its own place, within a pixel or two."""
    block = Block(noise=0.0)
    place = np.array([[21.0, 12.5]])
    echoes = ultrasonic._pulsed(_traces(block, place), 8 * block.frequency, block)
    focused = ultrasonic._focused(echoes, block)
    row, column = np.unravel_index(focused.argmax(), focused.shape)

    assert abs((column + 0.5) * block.width / 128 - 21.0) < 0.6
    assert abs((row + 0.5) * block.span / 128 - 12.5) < 0.5


def _traces(block, place):
    """Spikes at 2 r / c, written down once more by themselves."""
    elements, rate, length, _, _ = ultrasonic._geometry(block)
    traces = np.zeros((len(elements), int(length[0])))
    for k, x in enumerate(elements):
        distance = np.hypot(place[0, 0] - x, place[0, 1])
        traces[k, round(2 * distance / block.speed * rate)] = 1 / distance
    return traces


def test_deeper_is_fainter():
    """The same scatterer is heard less from further away."""
    block = Block(noise=0.0)
    rng = np.random.default_rng(0)
    near, far = (
        np.abs(ultrasonic._echoes(rng, block, np.array([[19.0, z]]), np.full(1, 50.0))).max()
        for z in (6.0, 20.0)
    )

    assert near > 5 * far


def test_the_set_is_the_papers_in_number_and_reproducible():
    """123 scans, 69 of them with a defect; the same seed, the same pictures."""
    few = scans(count=12, defects=7, seed=3)
    again = scans(count=12, defects=7, seed=3)

    assert sum(made.has_defect for made in few) == 7
    for one, other in zip(few, again, strict=True):
        assert_array_equal(one.image, other.image)
    assert [made.has_defect for made in islice(endless_scans(), 4)] == [True, False, True, False]


def test_the_network_that_ships_is_right_on_new_scans():
    """It was trained on others; of 40 fresh ones it misses hardly any."""
    fresh = list(islice(endless_scans(seed=999), 40))
    model = ultrasonic.ultrasonic_network()
    found = model(np.array([made.image for made in fresh])).argmax(axis=1) == 1

    assert np.mean(found == [made.has_defect for made in fresh]) >= 0.95


def test_the_scans_that_ship():
    """Three with a defect and one without, with masks of the defects."""
    images, defects = sample_scans()

    assert images.shape == defects.shape == (4, 128, 128)
    assert defects.any(axis=(1, 2)).tolist() == [True, True, True, False]


def test_the_network_that_ships_equals_its_torch_twin():
    """The same weights through torch's own layers give the same probabilities."""
    torch = pytest.importorskip("torch")
    from eblime.datasets.networks import scan_layers

    model, twin = ultrasonic.ultrasonic_network(), scan_layers()
    weights = [w for pair in zip(model.kernels, model.biases, strict=True) for w in pair]
    with torch.no_grad():
        for slot, values in zip(
            twin.parameters(), [*weights, model.head, model.head_bias], strict=True
        ):
            slot.copy_(torch.from_numpy(values))
        images, _ = sample_scans()
        batch = torch.from_numpy(images[:, None].astype(np.float32) / 255)
        expected = torch.softmax(twin(batch), dim=1).numpy()

    assert_allclose(model(images), expected, atol=1e-6)
    assert_allclose(model(np.tile(images, (9, 1, 1))), np.tile(expected, (9, 1)), atol=1e-6)
    assert model(images[:0]).shape == (0, 2)
    with pytest.raises(ValueError, match="grey images"):
        model(images[..., None])


def test_the_weights_are_written_and_read(tmp_path):
    """What `save` writes, `load` reads."""
    model = ultrasonic.ultrasonic_network()
    model.save(tmp_path / "w.npz")
    images, _ = sample_scans()

    assert_array_equal(ScanNetwork.load(tmp_path / "w.npz")(images), model(images))
