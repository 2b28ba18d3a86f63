"""The part that all explainers share: read an input, then let the loop explain it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from eblime._checks import check_count
from eblime._progress import Progress, check_progress
from eblime._repr import settings_repr
from eblime._types import RNGLike
from eblime.engine import loop
from eblime.engine.calls import CacheLike, Calls
from eblime.engine.loop import Source
from eblime.engine.settings import LoopSettings, brief, method_for, stop_settings
from eblime.engine.targets import Labels, Target, Targets, target_of
from eblime.models.adapt import as_model
from eblime.models.sklearn import output_names
from eblime.protocols import Kernel, Method, Stop, Subject
from eblime.results.explanation import Explanation

__all__ = ["BaseExplainer"]


class BaseExplainer(ABC):
    """An explainer: settings, and a way to read an input.

    Subclasses are frozen dataclasses. Their constructors check and normalise the settings; inputs
    are read and models are called only by `explain`.
    """

    __slots__ = ()

    about: ClassVar[tuple[str, ...]]  # settings that describe how an input is read
    model: Any
    n_masks: int
    design: Any
    kernel: str | Kernel | None
    method: str | Method
    labels: Labels | None
    progress: Progress
    calls: Calls | None
    cache: CacheLike
    loop: LoopSettings  # the settings of the loop, which the constructor makes from the others

    def __repr__(self) -> str:
        """The model and the settings that differ from the defaults."""
        return settings_repr(self)

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

    def input_again(self, x: Any, explanation: Explanation) -> Any:
        """The input as it was explained, for another explanation of the same prediction."""
        return x

    def target_again(self, target: Target, explanation: Explanation) -> Target:
        """The target of an explanation, for another one of the same prediction."""
        return target_of(explanation.target, self.labels)

    @property
    def description(self) -> dict[str, str]:
        """How an input is read, for the reader of the results."""
        return {name: brief(getattr(self, name)) for name in self.about}

    def check(self) -> None:
        """Refuse invalid settings, as the constructor does, before any input is read."""
        check_progress(self.progress)
        self.loop.check()

    def explain(
        self,
        x: Any,
        target: Target = None,
        rng: RNGLike = 0,
        *,
        n_masks: int | None = None,
        until: Stop | str | None = None,
        max_masks: int | None = None,
        max_seconds: float | None = None,
        calls: Calls | None = None,
        cache: CacheLike = None,
        progress: Progress = None,
    ) -> Explanation:
        """Explain one output of the model for an input.

        Parameters
        ----------
        x
            The input.
        target
            Column number of the model's output, or its label as a string; for an image also a box
            or a region, `eblime.scores.Box` or `Region`. None is the highest output; it is refused
            for a regressor with several outputs. A number that is the column of one output and the
            label of another is refused too.
        rng
            Seed or generator; the same seed gives the same masks and the same result.
        n_masks
            How many masks the model is asked about; None uses the explainer's setting.
        until
            A stop rule such as `TopK(5)`, `Ranking(3)`, `Sign(top=5)`, `Width(0.05)` or
            `LarsStable(3)`, combined with `&` and `|`; its text, such as "top5"; or a function
            (posterior, answers) -> reason or None. The masks are then asked in growing rounds until
            the rule is reached, whatever `n_masks` is.
        max_masks
            The most masks to ask about with `until`; None is 5,000. Never more than the method
            takes, 3,000 for `Quadrature`, unless there is room for all 2^p masks.
        max_seconds
            Time limit for the model calls and the fits: the masks are asked in growing rounds, and
            none begins if, with the time of the last one, it would end later. The first round is
            always asked. None has no limit.
        calls
            How the model is called; replaces the explainer's settings, except where it has a
            default value. See `Calls`.
        cache
            Short for `calls=Calls(cache=...)`.
        progress
            Overrides the explainer's setting; None uses that setting.

        Examples
        --------
        >>> import eblime
        >>> score = lambda texts: [[("good" in t) - 0.1, 0.5 * ("slow" in t)] for t in texts]
        >>> explainer = eblime.TextExplainer(score, labels=["praise", "blame"])
        >>> text = "a good film with a very slow story about three old people in a house"
        >>> e = explainer.explain(text, target="blame", until=eblime.TopK(1), max_masks=2000)
        >>> e.label, e.as_list(top=1)[0][0]
        ('blame', "word 'slow'")
        >>> len(e.masks) < 2000
        True
        """
        found = self.explain_targets(
            x,
            1 if target is None else [target],
            rng,
            n_masks=n_masks,
            until=until,
            max_masks=max_masks,
            max_seconds=max_seconds,
            calls=calls,
            cache=cache,
            progress=progress,
        )
        return next(iter(found.values()))

    def explain_targets(
        self,
        x: Any,
        targets: Targets = 3,
        rng: RNGLike = 0,
        *,
        n_masks: int | None = None,
        until: Stop | str | None = None,
        max_masks: int | None = None,
        max_seconds: float | None = None,
        calls: Calls | None = None,
        cache: CacheLike = None,
        progress: Progress = None,
    ) -> dict[int, Explanation]:
        """Explain several outputs of the model for an input, from one set of model calls.

        Parameters
        ----------
        x
            The input.
        targets
            How many of the highest outputs to explain; or a list of column numbers and labels, for
            an image also of boxes and regions.
        rng, n_masks, until, max_masks, max_seconds, calls, cache, progress
            See `explain`; a rule must be reached for every output.

        Returns
        -------
        explanations
            One explanation per output, by column number.

        Examples
        --------
        >>> import eblime
        >>> score = lambda texts: [[("good" in t), 0.5 * ("slow" in t)] for t in texts]
        >>> explainer = eblime.TextExplainer(score, labels=["praise", "blame"])
        >>> found = explainer.explain_targets("good but slow", targets=["praise", "blame"])
        >>> {e.label: e.as_list(top=1)[0][0] for e in found.values()}
        {'praise': "word 'good'", 'blame': "word 'slow'"}
        """
        settings = self.loop
        if n_masks is not None:
            check_count("n_masks", n_masks)
            settings = replace(settings, n_masks=n_masks)
        settings = stop_settings(settings, until, max_masks, max_seconds)
        if calls is not None or cache is not None:
            settings = replace(settings, calls=settings.calls.merge(calls, cache))
        check_progress(progress)
        settings, subject, wanted = self._prepare(x, targets, settings)
        shown = self.progress if progress is None else progress
        return loop.explain(settings, subject, wanted, rng, progress=shown)

    def _prepare(
        self, x: Any, targets: Any, settings: LoopSettings
    ) -> tuple[LoopSettings, Subject, Any]:
        """Read the input; an explainer may adapt the targets and settings to it."""
        return settings, self.subject(x), targets

    def source_of(self, explanation: Explanation, x: Any) -> Source:
        """Where a loaded explanation of the input comes from; for `Explanation.more`."""
        return loop.source_of(self.loop, self.subject(x), explanation)

    def _normalise(self, **settings: Any) -> None:
        """Replace settings by their normal form; only for constructors."""
        for name, value in settings.items():
            object.__setattr__(self, name, value)

    def _make_loop(self) -> None:
        """Read the labels from the model, wrap it, and check the settings of the loop."""
        if self.labels is None:
            self._normalise(labels=output_names(self.model))
        check_progress(self.progress)
        loop = LoopSettings(
            model=self.model,
            n_masks=self.n_masks,
            design=self.design,
            kernel=self.kernel,
            method=method_for(self.method, self.kernel),
            labels=self.labels,
            about=self.description,
            calls=Calls().merge(self.calls, self.cache),
        )
        loop.check()
        model = as_model(self.model)
        self._normalise(model=model, loop=replace(loop, model=model))
