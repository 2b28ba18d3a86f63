from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier

import eblime

WEIGHTS = np.linspace(-0.5, 1.0, 12)


class Elsewhere:
    """Scores that live on a device until they are made an array, which is done once."""

    def __init__(self, device, scores):
        self.device, self._scores = device, scores
        self.shape = scores.shape

    def __getitem__(self, place):
        return Elsewhere(self.device, self._scores[place])

    def __array__(self, *args, **kwargs):
        self.device.fetch()
        return self._scores


class Device:
    """A model that works like one on a GPU: launches overlap, answers are fetched later."""

    overlaps, sizes = True, (4, 8)

    def __init__(self):
        self.flying = self.most = 0

    def __call__(self, batch):
        """Never called: it renders the images itself."""
        raise NotImplementedError

    @contextmanager
    def scorer(self, scene):
        """Open it for an image."""
        yield self

    def launch(self, masks):
        """Count what is under way."""
        self.flying += 1
        self.most = max(self.most, self.flying)
        return Elsewhere(self, np.stack([masks @ WEIGHTS, -(masks @ WEIGHTS)], axis=1))

    def fetch(self):
        """Bring scores home."""
        self.flying -= 1


def explain(device, **calls):
    """Explain the second output for an image with twelve superpixels."""
    grid = ("grid", {"rows": 3, "columns": 4})
    explainer = eblime.ImageExplainer(device, segmentation=grid, n_masks=40, hide=0)
    return explainer.explain(np.ones((12, 16)), 1, calls=eblime.Calls(**calls))


@pytest.mark.parametrize("size", [1, 5, 50, None])
def test_scores_are_fetched_from_where_they_are(size):
    """Each answer on a device is read once, and two batches are under way at most."""
    device = Device()
    e = explain(device, batch_size=size)

    assert_allclose(e.scores, -(e.masks @ WEIGHTS))
    assert_allclose(e.prediction, -WEIGHTS.sum())
    assert device.flying == 0
    assert device.most <= 2
    if size in (1, 5):
        assert device.most == 2


def test_an_error_of_the_device_names_the_masks():
    """What fails on fetching is reported like what fails on launching."""
    device = Device()

    def broken():
        raise RuntimeError("device lost")

    device.fetch = broken
    with pytest.raises(eblime.ModelError, match=r"failed on .*masks .*RuntimeError: device lost"):
        explain(device, batch_size=4)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (lambda rows: 1.0 if rows[0] > 0.5 else 0.0, True),
        (lambda rows: rows.lower(), True),
        (lambda rows: 0.5, True),
        (RandomForestClassifier(), False),
        (lambda rows: [1 / 0], False),
    ],
)
def test_a_model_of_one_input_is_told_that_it_gets_a_batch(model, advice):
    """If its error shows that it expects one; an estimator that is not fitted is another error."""
    rows = np.random.default_rng(0).random((50, 3))
    with pytest.raises(eblime.ModelError) as raised:
        eblime.TabularExplainer(model, rows).explain(rows[0])

    assert ("called with a batch of inputs" in str(raised.value)) == advice


@pytest.mark.parametrize("concurrency", [1, 2])
def test_an_error_of_the_first_call_says_how_the_image_was_read(concurrency):
    """Three grey tiles in one array look like one image with three channels."""

    def grey_network(batch):
        raise ValueError("expected 1 channel, got 3")

    tiles = np.random.default_rng(0).random((3, 16, 16))
    calls = eblime.Calls(concurrency=concurrency)
    explainer = eblime.ImageExplainer(grey_network, segmentation="grid", calls=calls)
    with pytest.raises(eblime.ModelError, match=r"read as one image of shape \(3, 16, 16\)"):
        explainer.explain(tiles)


def test_a_batch_that_no_longer_fits_into_memory_is_halved():
    """Also when the size was found: other programs may take the memory meanwhile."""
    sizes = []

    def model(batch):
        sizes.append(len(batch))
        if len(sizes) > 4 and len(batch) > 1:
            raise MemoryError
        return batch.mean(axis=(1, 2))

    grid = ("grid", {"rows": 3, "columns": 4})
    e = eblime.ImageExplainer(model, segmentation=grid, hide=0, n_masks=60).explain(
        np.ones((12, 16))
    )

    assert len(e.scores) == 60
    assert sizes[-1] == 1
