"""How long work is told of: a bar, the user's own function, or silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "telling"]

Progress = bool | Callable[[int, int], object]


@contextmanager
def telling(
    progress: Progress, total: int, *, unit: str, what: str | None = None
) -> Iterator[Callable[..., object]]:
    """A function that is told how many of `total` are done, and how many of them failed."""
    if progress is True:
        from tqdm import tqdm

        with tqdm(total=total, unit=unit, desc=what) as bar:

            def tell(done: int, failed: int = 0) -> None:
                if failed:
                    bar.set_postfix(failed=failed, refresh=False)
                bar.update(done - bar.n)

            yield tell
    elif callable(progress):
        yield lambda done, failed=0: progress(done, total)
    else:
        yield lambda done, failed=0: None
