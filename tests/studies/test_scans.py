"""The physics of the simulator, and the network of the package on new scans."""

from itertools import islice

import numpy as np
from numpy.testing import assert_array_equal

from eblime.datasets import ultrasonic
from studies.data import scans as simulator
from studies.data.scans import Block, endless_scans, scan, scans


def test_scan_has_a_back_wall_and_a_mask_of_its_pores(rng):
    """The back wall is the brightest row, at its depth; the mask contains the pores' centres."""
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


def test_focused_echo_is_at_the_position_of_its_scatterer():
    """A single point without noise is focused to its position, within one or two pixels."""
    block = Block(noise=0.0)
    position = np.array([[21.0, 12.5]])
    traces = simulator._filter_pulse(_traces(block, position), 8 * block.frequency, block)
    focused = simulator._focus(traces, block)
    row, column = np.unravel_index(focused.argmax(), focused.shape)

    assert abs((column + 0.5) * block.width / 128 - 21.0) < 0.6
    assert abs((row + 0.5) * block.span / 128 - 12.5) < 0.5


def _traces(block, position):
    """Spikes at 2 r / c, computed independently."""
    geometry = simulator._geometry(block)
    traces = np.zeros((block.elements, geometry.samples))
    for k, x in enumerate(geometry.elements):
        distance = np.hypot(position[0, 0] - x, position[0, 1])
        traces[k, round(2 * distance / block.speed * geometry.rate)] = 1 / distance
    return traces


def test_deeper_scatterers_have_weaker_echoes():
    """The amplitude falls with the distance."""
    block = Block(noise=0.0)
    rng = np.random.default_rng(0)
    near, far = (
        np.abs(simulator._echoes(rng, block, np.array([[19.0, z]]), np.full(1, 50.0))).max()
        for z in (6.0, 20.0)
    )

    assert near > 5 * far


def test_set_of_scans_is_reproducible():
    """The requested number of defects, and the same images for the same seed."""
    few = scans(count=12, defects=7, seed=3)
    again = scans(count=12, defects=7, seed=3)

    assert sum(made.has_defect for made in few) == 7
    for one, other in zip(few, again, strict=True):
        assert_array_equal(one.image, other.image)
    assert [made.has_defect for made in islice(endless_scans(), 4)] == [True, False, True, False]


def test_shipped_network_classifies_new_scans():
    """At least 95 % of 40 scans that it was not trained on are correct."""
    fresh = list(islice(endless_scans(seed=999), 40))
    model = ultrasonic.ultrasonic_network()
    found = model(np.array([made.image for made in fresh])).argmax(axis=1) == 1

    assert np.mean(found == [made.has_defect for made in fresh]) >= 0.95
