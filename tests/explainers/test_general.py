"""`Explainer`: domains of other packages."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime.domains import Domain
from eblime.domains.tabular import TableScene


@dataclass(frozen=True)
class Jitter:
    """A pair of numbers that draws its own neighbours: a subject and a neighbourhood in one."""

    values: np.ndarray
    masks: np.ndarray
    scene = TableScene(features=["a", "b"], columns=["a", "b"], values=["", ""])
    exact, sizes = False, (256,)
    closeness = property(lambda self: np.ones_like(self.masks))

    def neighbourhood(self, rng):
        """No neighbours yet."""
        return self

    def extend(self, rng, wanted):
        """As many neighbours as the loop wants."""
        return replace(self, masks=rng.normal(size=(wanted, 2)))

    def inputs(self, rows):
        """The numbers of each neighbour."""
        return self.values + np.where(rows[:, None] < 0, 0, self.masks[rows])

    def keys(self, rows):
        """No two neighbours are the same."""
        return [str(row).encode() for row in rows]


PAIRS = Domain(
    name="pairs",
    feature="number",
    scene=TableScene,
    read=lambda x: Jitter(np.asarray(x), np.empty((0, 2))),
    design=None,
)
EXPLAINER = eblime.Explainer(lambda batch: batch @ [2.0, -1.0], PAIRS, n_masks=100)


def test_a_domain_may_draw_its_own_perturbed_inputs():
    """`read` returns a subject, and the design is None."""
    e = EXPLAINER.explain([3.0, 1.0])

    assert_allclose(e.posterior.mean, [2, -1], atol=1e-6)
    assert e.prediction == 5
    assert e.masks.shape == (100, 2)


def test_drawn_inputs_are_not_continued():
    """They cannot be drawn again."""
    with pytest.raises(ValueError, match=r"cannot be made again\. Explain"):
        EXPLAINER.explain([3.0, 1.0]).more(10)
