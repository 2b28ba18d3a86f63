"""What all explainers share: an input becomes a subject, and the loop explains it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from eblime._progress import Progress, check_progress
from eblime._types import RNGLike
from eblime.engine import loop
from eblime.engine.settings import LoopSettings, brief
from eblime.engine.targets import Target
from eblime.protocols import Stop, Subject
from eblime.results.explanation import Explanation

__all__ = ["BaseExplainer", "loop_settings"]

_SHARED = ("model", "n_masks", "design", "kernel", "method", "batch_size", "labels")


class BaseExplainer(ABC):
    """An explainer: settings, and a way to read an input."""

    __slots__ = ()

    about: ClassVar[tuple[str, ...]]  # settings that say how an input is read
    progress: Progress

    @property
    @abstractmethod
    def domain(self) -> str:
        """Name of the domain whose inputs it explains."""

    @abstractmethod
    def subject(self, x: Any) -> Subject:
        """Read an input, so that it can be perturbed."""

    def input_of(self, entry: Any) -> Any:
        """The input in an entry of a run, such as the text in a row of a table."""
        return entry

    @property
    def loop(self) -> LoopSettings:
        """The settings of the loop."""
        return loop_settings(self, self.about)

    def check(self) -> None:
        """Refuse settings that cannot work, before any input is read."""
        check_progress(self.progress)
        self.loop.check()

    def explain(
        self,
        x: Any,
        target: Target = None,
        rng: RNGLike = 0,
        *,
        progress: Progress = None,
        until: Stop | None = None,
    ) -> Explanation:
        """Explain one output of the model for an input.

        Parameters
        ----------
        x
            The input.
        target
            Column number of the model's output, or its label as a string; None is the highest, and
            is refused for a regressor with several outputs. A number that is one output's column
            and another output's label is refused too.
        rng
            Seed or generator: the same seed gives the same masks and the same answer.
        progress
            As for the explainer; None is the explainer's own setting.
        until
            A rule (posterior, answers) -> reason or None that ends the questions early, for
            designs that ask in rounds.
        """
        targets = 1 if target is None else [target]
        found = self.explain_targets(x, targets, rng, progress=progress, until=until)
        return next(iter(found.values()))

    def explain_targets(
        self,
        x: Any,
        targets: int | Sequence[int | str] = 3,
        rng: RNGLike = 0,
        *,
        progress: Progress = None,
        until: Stop | None = None,
    ) -> dict[int, Explanation]:
        """Explain several outputs from one set of model calls: the k highest, or those listed."""
        shown = self.progress if progress is None else progress
        subject = self.subject(x)
        return loop.explain(self.loop, subject, targets, rng, progress=shown, until=until)


def loop_settings(explainer: Any, about: Sequence[str]) -> LoopSettings:
    """The loop's settings among those of an explainer."""
    return LoopSettings(
        **{name: getattr(explainer, name) for name in _SHARED},
        about={name: brief(getattr(explainer, name)) for name in about},
    )
