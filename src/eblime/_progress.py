"""How long work is told of: a bar, the user's own function, or silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "telling"]

Progress = bool | Callable[[int, int], object]


@contextmanager
def telling(
    progress: Progress, total: int, *, unit: str, what: str | None = None
) -> Iterator[Callable[[int], object]]:
    """A function that is told how many of `total` are done."""
    if progress is True:
        from tqdm import tqdm

        with tqdm(total=total, unit=unit, desc=what) as bar:
            yield lambda done: bar.update(done - bar.n)
    elif callable(progress):
        yield lambda done: progress(done, total)
    else:
        yield lambda done: None
