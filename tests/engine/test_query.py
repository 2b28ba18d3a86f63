import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier

import eblime
from eblime.engine.neighbourhood import MaskedNeighbourhood, masks_at
from eblime.engine.query import ModelError, ask
from eblime.engine.settings import Question

WEIGHTS = np.array([0.5, -0.2, 0.1])


class Elsewhere:
    """Scores that live on a device: a shape and columns, but no way to NumPy except `fetch`."""

    def __init__(self, scores):
        self._scores = scores
        self.shape = scores.shape

    def __getitem__(self, place):
        return Elsewhere(self._scores[place])

    def __array__(self, *args, **kwargs):
        raise TypeError("not at home")


class Device:
    """A scorer that works like a GPU's: launches overlap, answers are fetched later."""

    ways, overlaps, sizes = 1, True, (4, 8)

    def __init__(self):
        self.flying = self.most = 0

    def launch(self, neighbourhood, rows, way=0):
        """Count what is under way."""
        masks = masks_at(neighbourhood.masks, rows)
        self.flying += 1
        self.most = max(self.most, self.flying)
        return Elsewhere(np.stack([masks @ WEIGHTS, -(masks @ WEIGHTS)], axis=1))

    def fetch(self, launched):
        """Bring scores home."""
        self.flying -= 1
        return launched._scores


def question(masks, targets):
    """A first question about these masks."""
    return Question(
        neighbourhood=MaskedNeighbourhood(scene=None, masks=masks),
        rows=np.arange(len(masks)),
        targets=targets,
        labels=None,
        ranked=True,
        opening=None,
    )


@pytest.mark.parametrize("size", [1, 5, 50, None])
def test_scores_are_fetched_from_where_they_are(rng, size):
    """Nothing touches an answer on a device but `fetch`, and two batches are under way at most."""
    masks = rng.integers(0, 2, size=(40, 3)).astype(float)
    scorer = Device()
    asked = ask(scorer, question(masks, [1]), batch_size=size)

    assert_allclose(asked.scores[:, 0], -(masks @ WEIGHTS))
    assert_allclose(asked.original, [0.4, -0.4])
    assert scorer.flying == 0
    assert scorer.most <= 2
    if size in (1, 5):
        assert scorer.most == 2


def test_an_error_of_the_device_names_the_masks(rng):
    """What fails on fetching is reported like what fails on launching."""
    scorer = Device()

    def broken(launched):
        raise RuntimeError("device lost")

    scorer.fetch = broken
    with pytest.raises(ModelError, match=r"failed on masks .*RuntimeError: device lost"):
        ask(scorer, question(np.eye(3), [0]), batch_size=4)


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
