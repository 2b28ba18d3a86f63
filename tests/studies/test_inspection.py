"""The study of inspection: simulated A-scans, and what counts as found."""

import numpy as np
import pandas as pd
import pytest

from studies.data.echoes import RATE, simulated_echoes
from studies.data.scans import Block, pore_mask
from studies.inspection import detection_summary, inspection, pore_region, signal_summary


def test_the_known_time_is_that_of_the_echo(rng):
    """Between the walls, a strong echo is the largest value near its time."""
    made = simulated_echoes(rng, 40)
    found = [k for k in range(40) if np.isfinite(made.times[k])]

    assert found == list(range(0, 40, 2))
    for k in found:
        near = np.abs(np.arange(564) - made.times[k]) <= 1 / 2.25 * RATE
        assert np.abs(made.signals[k][near]).max() > 15


def test_the_region_of_a_pore_is_where_it_is():
    """Superpixels that the pore touches, or that hold a share of it, and no others."""
    pore = pore_mask(np.array([[19.8, 13.5, 1.0]]), Block())
    segments = np.repeat(np.arange(4), 32)[None].repeat(128, axis=0)  # four columns

    assert pore_region(segments, pore).tolist() == [False, True, True, False]
    assert pore_region(segments, pore, least=0.25).tolist() == [False, False, True, False]
    assert pore_region(np.zeros_like(segments), pore).tolist() == [True]


def test_detection_has_a_row_per_pore():
    """Sizes follow each other, so that a short run has all of them."""
    rows = inspection("detection", n=60, items=2)

    assert rows["size"].tolist() == [0.2, 0.223]
    assert rows["p_top"].between(0, 1).all()
    assert (rows["located"] == (rows["p_top"] >= 0.9)).all()


def test_summaries():
    """A real hole counts once; curves are those of `probability_of_detection`."""
    rows = pd.DataFrame(
        {
            "source": "real",
            "hole": [0, 0, 1, 1],
            "score": [0.9, 0.9, 0.9, 0.2],
            "holds": [True, True, False, True],
            "near": True,
            "chance_near": 0.1,
        }
    )
    table = signal_summary(rows)
    assert table["share"].tolist() == [pytest.approx(2 / 3), 1.0]
    assert table["holes"].tolist() == [2, 2]
    sizes = np.repeat([0.2, 0.4, 0.8, 1.6], 10)
    hits = np.arange(40) % 10 < np.repeat([1, 4, 7, 9], 10)
    curves = detection_summary(pd.DataFrame({"size": sizes, "classified": hits, "located": hits}))
    assert curves["found"].tolist() == [21, 21, 21]
    assert np.isnan(curves["a90"].iloc[2])  # all that are classified are located
