"""Progress reporting: a bar, a function of the user, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

Progress = bool | Callable[[int, int], object] | None
_DELAY = 1.0  # seconds before a bar appears that was not asked for


def check_progress(progress: object) -> None:
    """Raise unless `progress` is True, False, None or a function."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"`progress` must be True, False, None or a function; got {progress!r}.")


@contextmanager
def progress_reporter(
    progress: Progress, total: int, *, unit: str, what: str | None = None
) -> Iterator[Callable[..., object]]:
    """Yield a function `report(done, failed=0, total=None)` that shows how many are finished.

    A `total` replaces the one before, where it turns out to be larger or smaller.

    None draws a bar if standard error is a terminal and the work takes longer than a second.
    """
    # a service may have no standard error, or have closed it
    can_draw = sys.stderr is not None and not getattr(sys.stderr, "closed", False)
    asked, bar = progress is True, None
    with ExitStack() as stack:
        if can_draw and (asked or (progress is None and sys.stderr.isatty())):
            from tqdm import tqdm

            delay = 0.0 if asked else _DELAY
            drawn = tqdm(total=total, unit=unit, desc=what, delay=delay, leave=asked)
            bar = stack.enter_context(drawn)
        known = total

        def report(done: int, failed: int = 0, total: int | None = None) -> None:
            nonlocal known
            known = known if total is None else total
            if callable(progress):
                progress(done, known)
            if bar is not None:
                bar.total = known
                if failed:
                    bar.set_postfix(failed=failed, refresh=False)
                bar.update(done - bar.n)

        yield report
