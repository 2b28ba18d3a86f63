"""The part that all explainers share: read an input, then let the loop explain it."""

from __future__ import annotations

import asyncio
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypedDict, TypeVar

from eblime import registry
from eblime._progress import Progress, check_progress
from eblime._repr import describe, short_repr
from eblime._types import RNGLike
from eblime._warn import warn_user
from eblime.engine.calls import CacheLike, Calls
from eblime.engine.drive import run
from eblime.engine.explain import Source, explanations, source_of
from eblime.engine.session import Session
from eblime.engine.settings import LoopSettings, check_masks, method_for, stop_settings
from eblime.engine.targets import Labels
from eblime.models.adapt import as_model
from eblime.models.asynchronous import in_thread
from eblime.models.sklearn import output_names
from eblime.protocols import Kernel, Method, Stop, Subject
from eblime.results.explanation import Explanation
from eblime.scores import Target, Targets

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from eblime.batch.results import Run

_OF_OTHERS = {  # as lime and shap call them
    "n_samples": "n_masks",
    "num_samples": "n_masks",
    "nsamples": "n_masks",
    "seed": "rng",
    "random_state": "rng",
    "feature_names": "names",
    "class_names": "labels",
}
Asks = TypeVar("Asks", bound=Callable[..., object])


class ExplainSettings(TypedDict, total=False):
    """The settings of one explanation; `BaseExplainer.explain` describes them."""

    n_masks: int | Literal["auto"] | None
    until: Stop | str | None
    max_masks: int | None
    max_seconds: float | None
    calls: Calls | None
    cache: CacheLike
    progress: Progress


def list_settings(method: Asks) -> Asks:
    """List the `ExplainSettings` in the signature of a method that takes them as `**settings`."""
    given = inspect.signature(method)
    *own, _ = given.parameters.values()
    kinds: dict[str, Any] = ExplainSettings.__annotations__
    settings = [
        inspect.Parameter(name, own[0].KEYWORD_ONLY, default=None, annotation=kind.__forward_arg__)
        for name, kind in kinds.items()
    ]
    method.__signature__ = given.replace(parameters=[*own, *settings])  # type: ignore[attr-defined]
    return method


def check_setting_names(settings: Mapping[str, object]) -> None:
    """Refuse settings by the names that other libraries have for them, and say ours."""
    for name in settings.keys() & _OF_OTHERS.keys():
        ours = _OF_OTHERS[name]
        place = ", a setting of `explain` and `explain_many`" if ours == "rng" else ""
        raise TypeError(f"`{name}` is called `{ours}` in eblime{place}.")


def spend(settings: LoopSettings, n: int) -> LoopSettings:
    """The settings after n model calls."""
    calls = settings.calls
    if calls.max_calls is not None:
        calls = replace(calls, max_calls=max(1, calls.max_calls - n))
    return replace(settings, calls=calls, spent=n)


class _Named:  # apart from the explainers, so that their signatures are those of `__init__`
    __slots__ = ()

    def __new__(cls, *_: object, **settings: object) -> Self:
        """Refuse settings by the names that other libraries have for them."""
        check_setting_names(settings)
        return object.__new__(cls)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BaseExplainer(_Named, ABC):
    """An explainer: settings, and a way to read an input.

    Subclasses are frozen dataclasses with settings of their own. Their constructors check and
    normalise the settings; inputs are read and models are called only by `explain`.

    Parameters
    ----------
    model
        Anything that scores a batch of inputs; see `as_model`.
    n_masks
        How many masks the model is asked about; if p features have no more, all 2^p. "auto" is all
        of them up to 10 features, and 1,024 above (2,048 for more than 512 features): whole blocks
        of the design "orthogonal", such as 128 or 256 masks, are worth more than 100 or 300.
    design
        Which masks: "orthogonal", "bernoulli", "leverage", "sizes", "adaptive",
        "exhaustive", "glime", "stratified-lime", a function of (rng, n_masks, p), or a
        `Design`, which may ask in rounds. A method for Shapley values gets "leverage" instead of
        "orthogonal".
    kernel
        The weight of a mask. None is "euclidean", of width 0.75 sqrt(p), as in lime for tables;
        "cosine" is lime's for images; "uniform" weighs all masks equally; also "hamming" and
        "shapley", a function, or an object such as `ExponentialKernel(width=2.0)`.
    method
        How importances are inferred: "eblime", "eblime-ridge", "eblime-paper", "bayeslime",
        "baylime", "bayesshap", "lime", "quadrature", or an object.
    progress
        None shows a progress bar on a terminal if the work takes longer than a second; True shows
        it always, False never; or a function of (done, total).
    labels
        Names of the model's outputs, for printing and for choosing targets: one per output, or a
        dictionary from column to name. None reads them from `classes_` or from a Hugging Face
        `config.id2label`, if the model has one of them.
    calls
        How the model is called: retries, timeouts, batch size and more; see `Calls`.
    cache
        A file that stores the model's answers, or an `AnswerCache`: short for
        `calls=Calls(cache=...)`.
    """

    about: ClassVar[tuple[str, ...]]  # settings that describe how an input is read
    max_masks: ClassVar[int] = 5000  # with a stop rule, unless the user says otherwise
    model: Any = field(kw_only=False)
    n_masks: int | Literal["auto"] = "auto"
    design: Any = "orthogonal"
    kernel: str | Kernel | None = None
    method: str | Method = "eblime"
    progress: Progress = None
    labels: Labels | None = None
    calls: Calls | None = None
    cache: CacheLike = None
    loop: LoopSettings = field(init=False)  # made from the others by the constructor

    __repr__ = short_repr

    @property
    @abstractmethod
    def domain(self) -> str:
        """Name of the domain whose inputs it explains."""

    @abstractmethod
    def subject(self, x: object) -> Subject:
        """Read an input, so that it can be perturbed."""

    @property
    def own(self) -> dict[str, Any]:
        """The settings that explainers of other inputs do not have, by name."""
        return {e.name: getattr(self, e.name) for e in fields(self) if e.name not in _SHARED}

    def input_of(self, entry: object) -> Any:
        """The input in an entry of a run, such as the text in a row of a table."""
        return entry

    def input_again(self, x: object, explanation: Explanation) -> Any:
        """The input as it was explained, for another explanation of the same prediction."""
        return x

    @property
    def description(self) -> dict[str, Any]:
        """How an input is read, for the reader of the results."""
        return {name: describe(getattr(self, name)) for name in self.about}

    @list_settings
    def explain(
        self,
        x: object,
        target: Target = None,
        rng: RNGLike = 0,
        **settings: Unpack[ExplainSettings],
    ) -> Explanation:
        """Explain one output of the model for an input.

        Parameters
        ----------
        x
            The input.
        target
            Column number of the model's output, or its label as a string; for an image also a box
            or a region, `eblime.scores.Box` or `Region`. None is the highest output; it is refused
            for a regressor, or a classifier of several questions, with several outputs. A number
            that is the column of one output and the label of another is refused too.
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
        targets: Targets = 1 if target is None else [target]
        return next(iter(self.explain_targets(x, targets, rng, **settings).values()))

    async def aexplain(self, *args: Any, **settings: Any) -> Explanation:
        """`explain` in a thread, so that other tasks of the event loop go on meanwhile."""
        return await asyncio.wrap_future(in_thread(lambda: self.explain(*args, **settings)))

    @list_settings
    def explain_targets(
        self,
        x: object,
        targets: Targets = 3,
        rng: RNGLike = 0,
        **settings: Unpack[ExplainSettings],
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
        loop = self._loop_for(settings) if settings else self.loop
        loop, subject, wanted = self.prepare(x, targets, loop)
        session, progress = Session.begin(loop, subject, wanted, rng), settings.get("progress")
        run(session, self.progress if progress is None else progress)
        return explanations(session)

    def explain_many(
        self,
        inputs: Any,
        out: str | os.PathLike[str] | None = None,
        *,
        targets: Targets | str | None = None,
        rng: int = 0,
        **settings: Any,
    ) -> Run:
        """Explain many inputs; see `eblime.explain_many`, which has the other settings.

        Examples
        --------
        >>> import numpy as np
        >>> import eblime
        >>> rows = np.random.default_rng(0).random((20, 2))
        >>> explainer = eblime.TabularExplainer(lambda table: table[:, 1], rows)
        >>> explainer.explain_many(rows[:5], progress=False).summary()["feature"].tolist()
        ['column 1', 'column 0']
        """
        check_setting_names(settings)
        explain: Callable[..., Run] = registry.find("runs", "explain_many")
        run = explain(self, inputs, out, targets=targets, rng=rng, **settings)
        if out is None and len(failures := run.failures()):
            first = failures["error"].iloc[0]
            warn_user(f"{len(failures)} inputs failed, as `failures()` says. The first: {first}")
        return run

    def __call__(self, *inputs: object, **settings: object) -> NoReturn:
        """Refused: whether the input is one row or a table of rows must be said."""
        raise TypeError(
            "An explainer is not called: use explainer.explain(x) for one input, and "
            "explainer.explain_many(inputs) for many."
        )

    def _loop_for(self, settings: ExplainSettings) -> LoopSettings:
        """The settings of the loop with those of one explanation, checked."""
        names = ExplainSettings.__annotations__
        check_setting_names(settings)
        for name in settings.keys() - names.keys():
            raise TypeError(
                f"`{name}` must be a setting of an explanation, which has {', '.join(names)}."
            )
        given: Any = {**dict.fromkeys(names), **settings}
        check_progress(given["progress"])
        loop = stop_settings(self.loop, given["until"], given["max_masks"], given["max_seconds"])
        if given["n_masks"] is not None:
            check_masks(given["n_masks"])
            loop = replace(loop, n_masks=given["n_masks"])
        return replace(loop, calls=loop.calls.merge(given["calls"], given["cache"]))

    def prepare(
        self, x: object, targets: object, settings: LoopSettings
    ) -> tuple[LoopSettings, Subject, Any]:
        """Read the input; an explainer may adapt the settings and the targets to it."""
        return settings, self.subject(x), targets

    def source_of(self, explanation: Explanation, x: object) -> Source:
        """Where a loaded explanation of the input comes from; for `Explanation.more`."""
        subject = self.subject(self.input_again(x, explanation))
        return source_of(self.loop, subject, explanation)

    def _normalise(self, **settings: object) -> None:
        """Replace settings by their normal form; only for constructors."""
        for name, value in settings.items():
            object.__setattr__(self, name, value)

    def _make_loop(self) -> None:
        """Read the labels from the model, wrap it, and check the settings of the loop."""
        if self.labels is None:
            self._normalise(labels=output_names(self.model))
        check_progress(self.progress)
        model, method = as_model(self.model), method_for(self.method, self.kernel)
        own = getattr(method, "design", None)
        loop = LoopSettings(
            model=model,
            n_masks=self.n_masks,
            design=own if own and self.design == "orthogonal" else self.design,
            kernel=self.kernel,
            method=method,
            labels=self.labels,
            about=self.description,
            calls=Calls().merge(self.calls, self.cache),
            max_masks=self.max_masks,
        )
        loop.check()
        self._normalise(model=model, loop=loop)


_SHARED = {entry.name for entry in fields(BaseExplainer)}
