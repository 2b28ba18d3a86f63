"""A design that asks in rounds and looks at the answers of earlier rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime.answers import Answers


@dataclass(frozen=True)
class Rounds:
    """Random masks in rounds; after the first round, the leading feature is hidden half the time.

    Parameters
    ----------
    n_masks
        Number of masks in all rounds together.
    size
        Number of masks in a round.
    """

    n_masks: int
    size: int = 40

    def next(self, rng: np.random.Generator, answers: Answers) -> np.ndarray | None:
        """Masks of the next round, or None when `n_masks` were asked."""
        n = min(self.size, self.n_masks - answers.n_masks)
        if n <= 0:
            return None
        masks = (rng.random((n, answers.n_features)) < 0.7).astype(float)
        if answers.n_masks == 0:
            masks[0] = 1
        else:
            masks[:, _leading(answers)] = rng.integers(0, 2, size=n)
        return masks


def _leading(answers: Answers) -> int:
    """The feature that moves the score most."""
    centred = answers.masks - answers.masks.mean(axis=0)
    return int(np.argmax(np.abs(centred.T @ (answers.scores - answers.scores.mean()))))
