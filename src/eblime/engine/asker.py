"""The model, opened for one input: it answers the loop's questions, from a cache where it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from eblime._types import IntArray
from eblime.engine.cache import as_cache
from eblime.engine.plan import Book, Reply
from eblime.engine.query import ask
from eblime.engine.scorers import RowScorer, scorer_of
from eblime.engine.settings import LoopSettings, Question
from eblime.models.adapt import as_model
from eblime.protocols import Neighbourhood, Scene

__all__ = ["Answering", "answering", "books_of"]

Answering = Callable[[Question], Reply]


@contextmanager
def answering(
    settings: LoopSettings,
    scene: Scene,
    neighbourhood: Neighbourhood,
    report: Callable[[int], None] = lambda n: None,
) -> Iterator[Answering]:
    """A function that answers questions about one input.

    The cache is opened at once, so that a file that cannot be used is refused before the model is
    asked; the model is opened when it is needed.
    """
    model, calls = as_model(settings.model), settings.calls
    with ExitStack() as stack, books_of(settings) as book_of:
        book = book_of(neighbourhood)
        scorer = _LazyScorer(
            lambda: stack.enter_context(scorer_of(model, scene, neighbourhood, calls))
        )

        def answer(question: Question) -> Reply:
            return ask(
                scorer,
                question,
                batch_size=calls.batch_size,
                steady=settings.steady,
                report=report,
                book=book,
                concurrency=calls.concurrency,
                partial=calls.partial,
            )

        yield answer


@contextmanager
def books_of(settings: LoopSettings) -> Iterator[Callable[[Neighbourhood], Book | None]]:
    """A function from perturbed inputs to their stored answers, which are None without a cache."""
    cache = as_cache(settings.calls.cache)
    if cache is None:
        yield lambda neighbourhood: None
        return
    with cache.books(as_model(settings.model)) as book_of:
        yield lambda neighbourhood: book_of(neighbourhood.scope)


class _LazyScorer:
    """A scorer that is opened when it is first used: known answers need no model."""

    def __init__(self, open_scorer: Callable[[], RowScorer]) -> None:
        self._open = open_scorer
        self._opened: RowScorer | None = None

    def _scorer(self) -> RowScorer:
        """The scorer, opened."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @property
    def ways(self) -> int:
        """Number of ways to compute."""
        return self._scorer().ways

    @property
    def overlaps(self) -> bool:
        """Whether a batch may be launched while another is running."""
        return self._scorer().overlaps

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes worth trying, increasing."""
        return self._scorer().sizes

    def launch(self, neighbourhood: Neighbourhood, rows: IntArray, way: int = 0) -> Any:
        """Ask about perturbed inputs by number."""
        return self._scorer().launch(neighbourhood, rows, way)

    def fetch(self, launched: Any) -> Any:
        """The scores, in main memory."""
        return self._scorer().fetch(launched)
