"""The study of what hidden parts show: its rows, and areas that are known by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from eblime.datasets import sample_scans, ultrasonic_network
from studies import hiding
from studies.data.faulty_parts import FaultyParts


def test_areas_of_a_known_model():
    """A score that is the share of a bright half: hiding it first is hiding all that counts."""
    image = np.zeros((4, 8, 1))
    image[:, :4] = 1
    labels = (np.arange(8) >= 4).astype(int)[None].repeat(4, axis=0)
    e = SimpleNamespace(
        posterior=SimpleNamespace(mean=np.array([1.0, 0.0])),
        segments=labels,
        scene=SimpleNamespace(shown=image[..., 0]),
        target=0,
    )

    def share(batch):
        return batch.mean(axis=(1, 2))[:, None] * 2

    deletion, insertion = hiding._areas(share, image, np.zeros_like(image), e, 2)

    assert (deletion, insertion) == (0.25, 0.75)  # of 1, 0, 0 and of 0, 1, 1, by trapezoids


@pytest.mark.slow
def test_every_image_has_a_row_for_each_cut_and_hiding(monkeypatch):
    """And none if the network does not see its defect."""
    images, defects = sample_scans()
    parts = FaultyParts(
        images=images[[0, 3]],
        defects=defects[[0, 3]],
        numbers=np.arange(2),
        network=lambda number: ultrasonic_network(),
    )
    monkeypatch.setattr(hiding, "faulty_parts", lambda dataset: parts)
    rows = hiding.hiding("ultrasonic", n=60, steps=2)
    table = hiding.hiding_summary(rows)

    assert rows["item"].tolist() == [0] * 8
    assert len(table) == 8
    assert table["inputs"].eq(1).all()
    assert rows["deletion"].between(0, 1).all()
    assert rows[["cut", "hide"]].drop_duplicates().shape == (8, 2)


def test_the_page_has_the_stored_rows():
    """Means of the rows in docs/results."""
    names = ("tiles", "ultrasonic", "signals")
    found = {name: pd.read_csv(hiding.RESULTS / f"hiding-{name}.csv") for name in names}
    tables, stored = hiding.page_tables(found), found["tiles"]
    first = stored[(stored["cut"] == "as the image") & (stored["hide"] == "blur")]
    row = tables["hiding-images"].set_index(["cut", "hide"]).loc[("as the image", "blur")]

    assert row["tiles: located"] == pytest.approx(first["located"].astype(float).mean())
    assert tables["hiding-signals"].shape == (12, 5)
