"""`compare`: several methods, or several choices of a setting, on one input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from eblime import registry
from eblime._checks import check_choice
from eblime._progress import Progress, progress_reporter
from eblime._repr import short_repr, stable_repr
from eblime._types import RNGLike
from eblime.engine.calls import CacheLike
from eblime.engine.settings import method_for
from eblime.engine.targets import target_of
from eblime.explainers.base import BaseExplainer
from eblime.explainers.choice import explainer_class
from eblime.explainers.prompt import PromptExplainer
from eblime.methods.regression import as_method
from eblime.models.conversion import is_ranked
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation
from eblime.scores import Target

MethodSpec = object  # a name, a `Method`, a pair of a method and its design, or a system
_METHODS = ("eblime", "quadrature", "lime")  # by default
_SHARED = ("n_masks", "design", "kernel")  # settings that may have several choices, besides `about`
_LONGEST = 40  # characters of a choice
_ENDS = ("required", "useful", "unused")  # whose answers the other methods of a design can use


class Entry(NamedTuple):
    """A method of a comparison and the design of its masks, or a system."""

    label: str
    method: Any
    design: Any = None  # None is the one that all methods share

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of an explainer that asks for a method."""
        return {"method": self.method} | ({} if self.design is None else {"design": self.design})

    @property
    def is_system(self) -> bool:
        """Whether it asks the model itself, after the methods."""
        return hasattr(self.method, "explain")


def compare(
    model: Any,
    x: object,
    methods: Sequence[MethodSpec] | Mapping[str, MethodSpec] | None = None,
    *,
    explainer: Any = None,
    target: Target = None,
    rng: RNGLike = 0,
    n_masks: object = None,
    design: object = None,
    cache: CacheLike = None,
    **settings: object,
) -> Comparison:
    """Explain one prediction by several methods, or with several choices of a setting.

    Methods with the same design share one set of masks, so that the model is asked once for all of
    them. A method with a design of its own, such as "quadrature+adaptive", asks about as many masks
    of its own. The scores of the input itself and with everything hidden, which some methods need,
    cost at most two calls more.

    A setting that is given as a list, `hide=["mean", 0, "blur"]`, has several choices. The first
    explanation has the first choice of each list. Every other choice gives one more explanation, in
    which this setting alone differs from the first one: k of them cost (k + 1) `n_masks` calls. The
    progress bar counts all of them.

    To compare two models, explain the input with both and make a `Comparison` of the explanations.

    Parameters
    ----------
    model
        The model; None takes the one of `explainer`.
    x
        The input, as for `eblime.explain`; for an input of another kind pass an `explainer`.
    methods
        Methods by name or as objects; "name+design" or a pair (method, design) for one with its own
        design. With at least one of them, also systems: "s-lime", for rows of
        numbers "dlime", "dmm-men" and "unravel", and those of other packages. A dictionary gives
        them names of your own. None is "eblime", "quadrature" and "lime"; if a setting has several
        choices, the explainer's method alone.
    explainer
        An explainer whose settings are used. None makes one from `settings`.
    target, rng, cache
        As for `ImageExplainer.explain`.
    n_masks
        How many masks each design asks about; None is the explainer's number, 1,000 by default.
    design
        Which masks the methods without a design of their own share; None is the explainer's.
    settings
        Other settings of the explainer, which is chosen as by `eblime.explain`. A list of choices
        may be given for `n_masks`, `design`, `kernel` and for what says how an input is
        cut and hidden: `segmentation`, `hide`, `tokens`, `bag`, `rows_per_mask`, `prompt`, `score`.
        A tuple is one choice, such as a colour. A dictionary gives choices names of your own.

    Examples
    --------
    >>> import eblime
    >>> mood = lambda texts: [0.5 + 0.4 * ("good" in t) - 0.3 * ("not" in t) for t in texts]
    >>> both = eblime.compare(mood, "a good film, not a long one", ["eblime", "lime"], n_masks=200)
    >>> both.methods, both.model_calls["lime"] == both.model_calls["eblime"]
    (('eblime', 'lime'), True)
    >>> both.agreement(top=2)["top_jaccard"].tolist()
    [1.0]

    Does it matter what a hidden superpixel shows?

    >>> import numpy as np
    >>> image = np.arange(64.0).reshape(8, 8) / 64
    >>> corner = lambda batch: batch[:, :4, :4].mean(axis=(1, 2))
    >>> grid = ("grid", {"rows": 2, "columns": 2})
    >>> found = eblime.compare(corner, image, hide=[0.0, "mean"], segmentation=grid)
    >>> found.methods, found.total_calls
    (('hide=0.0', 'hide=mean'), 32)
    """
    own = {"n_masks": n_masks, "design": design}
    given = settings | {name: value for name, value in own.items() if value is not None}
    kind = explainer_class(model, x, explainer, settings)
    choices = {
        name: _choices(name, value)
        for name, value in given.items()
        if name in (*kind.about, *_SHARED)
        and isinstance(value, list if name == "settings" else (list, Mapping))
    }
    fixed = given | {name: next(iter(found.values())) for name, found in choices.items()}
    if explainer is None:
        chosen = kind(model, **fixed)
    else:
        for name in {*settings} - {*choices}:
            raise TypeError(
                f"`explainer` has its own settings; got {name} as well. Set it in the explainer."
            )
        chosen = replace(explainer, **({} if model is None else {"model": model}), **fixed)
    if methods is None:
        methods = [chosen.method] if choices else _METHODS
    return compare_with(chosen, x, methods, choices=choices, target=target, rng=rng, cache=cache)


def compare_with(
    explainer: BaseExplainer,
    x: Any,
    methods: Sequence[MethodSpec] | Mapping[str, MethodSpec],
    *,
    choices: Mapping[str, Mapping[str, object]] | None = None,
    target: Target = None,
    rng: RNGLike = 0,
    cache: CacheLike = None,
    progress: Progress = None,
) -> Comparison:
    """`compare` with the settings and the model of an explainer; its own method is not used.

    `choices` has the choices of settings by name; the explainer has the first of each.
    """
    entries = parse_methods(methods)
    systems = [entry for entry in entries if entry.is_system]
    groups: dict[object, list[Entry]] = {}  # by design: each shares its masks
    for entry in entries:
        if not entry.is_system:
            key = entry.design if isinstance(entry.design, str) else id(entry.design)
            groups.setdefault(key, []).append(entry)
    # refuses before any call
    shared = [_explainer_of(explainer, group) for group in groups.values()]
    for other in systems:
        other.method.check(explainer, x)
    varied = {name: found for name, found in (choices or {}).items() if len(found) > 1}
    others = _others(explainer, entries[0], x, varied)
    asking = [*shared, *(changed for changed, _ in others.values())]
    asked: list[Explanation] = []
    shown = explainer.progress if progress is None else progress
    total, done = sum(each.loop.masks_for() for each in asking), 0
    with progress_reporter(shown, total, unit="mask", what="asking the model") as report:
        for each in asking:
            report(done)
            follow = lambda n, _, before=done: report(before + n)  # noqa: E731
            asked.append(each.explain(x, target, rng, cache=cache, progress=follow))
            done += each.loop.masks_for()
            if len(asked) == 1:
                x = explainer.input_again(x, asked[0])
                if target is None and is_ranked(explainer.loop.model):
                    target = target_of(asked[0].target, explainer.labels)
        report(done)
    found: dict[str, Explanation] = {}
    for each, first, group in zip(shared, asked, groups.values(), strict=False):
        for entry in group:
            method = method_for(entry.method, each.loop.kernel)
            found[entry.label] = first if method is first.method else first.refit(method)
    cached = explainer if cache is None else replace(explainer, cache=cache)
    for other in systems:
        found[other.label] = other.method.explain(cached, x, target, rng)
    base = [f"{name}={next(iter(options))}" for name, options in varied.items()]
    named = base if base and len(entries) == 1 else [entries[0].label, *base]
    ordered = {", ".join(named): found[entries[0].label]}
    ordered |= {entry.label: found[entry.label] for entry in entries[1:]}
    ordered |= zip(others, asked[len(shared) :], strict=True)
    return Comparison(
        explanations=ordered, settings={label: setting for label, (_, setting) in others.items()}
    )


def _others(
    explainer: BaseExplainer, first: Entry, x: object, varied: Mapping[str, Mapping[str, object]]
) -> dict[str, tuple[BaseExplainer, str]]:
    """For each choice but the first ones: the explainer that has it, and its setting.

    Refuses choices that do not suit the input, before any call.
    """
    if varied and first.is_system:
        raise ValueError(
            "`methods` must begin with a method, such as 'lime', if a setting has several choices; "
            f"got {first.label!r}."
        )
    found: dict[str, tuple[BaseExplainer, str]] = {}
    for setting, options in varied.items():
        for label, value in list(options.items())[1:]:
            made = replace(explainer, **(first.settings | {setting: value}))
            if not isinstance(made, PromptExplainer):  # which may ask the model for an answer
                made.subject(x)
            found[f"{setting}={label}"] = made, setting
    return found


def _choices(name: str, value: Any) -> dict[str, object]:
    if not value:
        raise ValueError(f"`{name}` must not be an empty list of choices.")
    if isinstance(value, Mapping):
        return {str(label): choice for label, choice in value.items()}
    labels = [_label(choice, number) for number, choice in enumerate(value, start=1)]
    _check_different(name, labels)
    return dict(zip(labels, value, strict=True))


def _check_different(name: str, labels: Sequence[str]) -> None:
    """Refuse two entries of a list with the same label."""
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(
            f"The entries of `{name}` must differ; {twice!r} is there twice. Name them with a "
            "dictionary."
        )


def _label(choice: object, number: int) -> str:
    """A choice in a few words; by its number if it has no short name."""
    if isinstance(choice, tuple) and len(choice) == 2 and isinstance(choice[1], Mapping):
        parameters = ", ".join(f"{key}={value}" for key, value in choice[1].items())
        return f"{choice[0]}({parameters})"
    name = choice if isinstance(choice, str) and choice.strip() else short_repr(choice)
    if callable(choice):
        name = getattr(choice, "__name__", name)
    short = len(name) <= _LONGEST and not (hasattr(choice, "ndim") or "<" in name)
    return " ".join(name.split()) if short else f"choice {number}"


def parse_methods(methods: Sequence[MethodSpec] | Mapping[str, MethodSpec]) -> list[Entry]:
    """The methods of a comparison, checked, with names that differ."""
    if isinstance(methods, str) or not isinstance(methods, (Sequence, Mapping)):
        raise TypeError(f"`methods` must be a list or a dictionary of methods; got {methods!r}.")
    if isinstance(methods, Mapping):
        found = [_entry(m)._replace(label=str(label)) for label, m in methods.items()]
    else:
        found = [_entry(method) for method in methods]
    labels = [entry.label for entry in found]
    if all(entry.is_system for entry in found):
        raise ValueError(f"`methods` must have at least one method, such as 'lime'; got {labels}.")
    _check_different("methods", labels)
    return found


def _entry(spec: MethodSpec) -> Entry:
    """One method: its name, "name+design", an object, or a pair of method and design; a system."""
    systems = registry.names("systems")
    if isinstance(spec, str) and spec in systems:
        return Entry(spec, registry.find("systems", spec)())
    if hasattr(spec, "explain") and not isinstance(spec, (type, BaseExplainer)):
        return Entry(short_repr(spec), spec)
    pair = spec if isinstance(spec, tuple) else (spec, None)
    if isinstance(spec, str):
        name, _, design = spec.partition("+")
        pair = name, design or None
        check_choice("methods", name, (*registry.names("methods"), *(() if design else systems)))
    if len(pair) != 2:
        raise TypeError(f"A pair in `methods` must be (method, design); got {spec!r}.")
    shown = [each if isinstance(each, str) else short_repr(each) for each in pair]
    return Entry("+".join(shown[: 1 if pair[1] is None else 2]), as_method(pair[0]), pair[1])


def _explainer_of(explainer: BaseExplainer, group: Sequence[Entry]) -> BaseExplainer:
    """The explainer that asks for a group: by the method that most needs the scores of both ends.

    With the design of the group; balanced masks if each method would have masks of its own.
    """
    made = [replace(explainer, **entry.settings) for entry in group]  # each must suit the design
    first = min(made, key=lambda one: _ENDS.index(getattr(one.loop.method, "ends", "unused")))
    if len({stable_repr(one.loop.design) for one in made}) > 1:
        return replace(first, design="orthogonal")
    return first
