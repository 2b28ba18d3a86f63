"""Finding the fastest batch size while asking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

__all__ = ["BatchTuner"]


class Sized(Protocol):
    """What the tuner needs to know about a scorer."""

    @property
    def ways(self) -> int: ...

    @property
    def sizes(self) -> Sequence[int]: ...


class BatchTuner:
    """Finds the fastest batch size, and way of computing, on the batches that are asked anyway.

    Two batches for each way at the smallest size, then larger ones as long as they gain and are
    worth the try: the last step gained much, or many masks are left. A small batch that is much
    slower at once does not get its second one (a large one may be slow only because it is the
    first of its size), and a size that memory does not hold is given up.
    """

    def __init__(self, scorer: Sized, batch_size: int | None, steady: bool) -> None:
        sizes = scorer.sizes if batch_size is None else (batch_size,)
        if steady:
            sizes = (sizes[len(sizes) // 2],)
        self._ways = [] if steady else [(sizes[0], way) for way in range(1, scorer.ways)]
        self._larger = list(sizes[1:])
        self._best = self._before = np.inf  # seconds per input: now, and before this size
        self._winner = self.choice = (sizes[0], 0)
        self._seen = 0  # batches of the present choice
        self._fixed = batch_size is not None
        self.settled = not self._ways and not self._larger

    def learn(self, n: int, seconds: float, left: int) -> None:
        """Note how long a batch took with so many masks left, and choose the next."""
        if self.settled or n < self.choice[0]:
            return
        self._seen += 1
        hopeless = n <= 32 and seconds / n > 1.25 * self._best
        if seconds / n < self._best:
            self._best, self._winner = seconds / n, self.choice
        if self._seen == 2 or hopeless:
            self._move_on(left)

    def halve(self) -> bool:
        """Settle on half the size, where even the first batch was too large and may be smaller."""
        if self._fixed or self.choice[0] == 1:
            return False
        self.choice, self.settled = (self.choice[0] // 2, 0), True
        return True

    def give_up(self) -> bool:
        """Settle on the best so far, if there is one that is smaller."""
        if self.settled or self._winner[0] >= self.choice[0]:
            return False
        self.choice, self.settled = self._winner, True
        return True

    def _move_on(self, left: int) -> None:
        """Try the next way, or the next larger size, or settle on the best."""
        self._seen = 0
        if self._ways:
            self.choice = self._ways.pop(0)
            return
        gained = self._best < 0.8 * self._before
        if (
            self._larger
            and self._winner[0] == self.choice[0]
            and left >= (8 if gained else 32) * self._larger[0]
        ):
            self._before = self._best
            self.choice = (self._larger.pop(0), self._winner[1])
        else:
            self.choice, self.settled = self._winner, True
