"""How many masks fit into the seconds that are left, with the fit at the end."""

from __future__ import annotations

import time

__all__ = ["Pace"]

_PROBE = 4  # masks of the first question: nothing is known of the model yet
_GROWTH = 3  # times as many masks as were asked so far, in the next question,
_SOON = 4  # or as many as a quarter of the seconds left are enough for
_REHEARSAL = 16  # masks after which a fit is tried, to know how long it takes
_CONSTANT = 256  # masks up to which a fit takes about the same time
_SMALLEST = 50  # a last question has at least 1/50 of the masks so far


class Pace:
    """Foresees how long questions and fits take, from those so far.

    The time between a reply and the next question is spent on fits and on choosing masks; it grows
    with the number of masks, for `Quadrature` with its cube.

    Parameters
    ----------
    start
        When the input was begun.
    limit
        Seconds from then on; None has no limit.
    power
        With which power of the number of masks the time of a fit grows.
    """

    def __init__(self, start: float, limit: float | None, power: int) -> None:
        self._start, self._limit, self._power = start, limit, power
        self._since, self._known = start, 0  # the last question or reply, and masks asked then
        self._fits: list[tuple[int, float]] = []  # masks and seconds between questions
        self._calls: list[tuple[int, float]] = []  # masks and seconds of each question
        self._rehearsed = False

    def ask(self) -> None:
        """Note that the model is asked now."""
        self._fits.append((max(1, self._known), self._lap()))

    def answered(self, known: int) -> None:
        """Note that the model has answered; `known` masks have an answer."""
        self._calls.append((max(1, known - self._known), self._lap()))
        self._known = known

    def masks(self) -> int | None:
        """How many masks to ask about next, in pairs; 0 if it is too late, None if all may be."""
        if self._limit is None:
            return None
        if not self._known:
            return _PROBE
        left = self._limit - (time.perf_counter() - self._start)
        rate = max(seconds / n for n, seconds in self._calls[-2:])
        # a call may take the same time however few masks it has
        least = min(seconds for _, seconds in self._calls)
        soon = int(min(left / (_SOON * rate), 1e9)) if rate > 0 else 10**9
        most = max(_GROWTH * self._known, soon)
        while most > 0 and max(least, most * rate) + self._fit(self._known + most) > left + 1e-9:
            most = min(most - 1, int(0.9 * most))
        most -= most % 2
        return most if most >= max(2, self._known // _SMALLEST) else 0

    @property
    def wants_rehearsal(self) -> bool:
        """Whether to try a fit now, because a slow model may leave no time to see one."""
        limited = self._limit is not None and not self._rehearsed
        self._rehearsed |= limited and self._known >= _REHEARSAL
        return limited and self._rehearsed

    def _fit(self, n: int) -> float:
        """Seconds that the fit to n masks will take."""
        later = self._fits[1:]  # before the first question nothing was fitted
        growth = [max(1.0, n / max(known, _CONSTANT)) ** self._power for known, _ in later]
        return max((g * s for g, (_, s) in zip(growth, later, strict=True)), default=0.0)

    def _lap(self) -> float:
        """Seconds since the last question or reply."""
        now = time.perf_counter()
        before, self._since = self._since, now
        return now - before
