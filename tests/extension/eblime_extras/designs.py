"""A design that asks in rounds and looks at the answers of earlier rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eblime.answers import Answers, Proposal


@dataclass(frozen=True)
class Rounds:
    """Masks in rounds that show most features; later rounds hide the leading one half the time.

    Features are not shown with probability one half, so that each mask has a weight that corrects
    for it.

    Parameters
    ----------
    n_masks
        Number of masks in all rounds together.
    size
        Number of masks in a round.
    """

    n_masks: int
    size: int = 40

    def next(self, rng: np.random.Generator, answers: Answers) -> Proposal | None:
        """Masks of the next round, or None when `n_masks` were asked."""
        n = min(self.size, self.n_masks - answers.n_masks)
        if n <= 0:
            return None
        shown = np.full(answers.n_features, 0.7)
        if answers.n_masks:
            shown[_leading(answers)] = 0.5
        masks = (rng.random((n, len(shown))) < shown).astype(float)
        weights = np.where(masks == 1, 0.5 / shown, 0.5 / (1 - shown)).prod(axis=1)
        if answers.n_masks == 0:
            masks[0], weights[0] = 1, 1
        return Proposal(masks=masks, sampling_weights=weights)


def _leading(answers: Answers) -> int:
    """The feature that moves the score most."""
    centred = answers.masks - answers.masks.mean(axis=0)
    return int(np.argmax(np.abs(centred.T @ (answers.scores - answers.scores.mean()))))
