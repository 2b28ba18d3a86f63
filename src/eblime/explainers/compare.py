"""`compare`: several methods on one input, with the same budget of model calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from eblime import registry
from eblime._checks import check_choice
from eblime._repr import short_repr, stable_repr
from eblime._types import RNGLike
from eblime.engine.calls import CacheLike
from eblime.engine.settings import method_for
from eblime.engine.targets import Target, target_of
from eblime.explainers.base import BaseExplainer
from eblime.explainers.image import ImageExplainer
from eblime.explainers.tabular import TabularExplainer
from eblime.explainers.text import TextExplainer
from eblime.methods.regression import as_method
from eblime.models.conversion import is_frame
from eblime.protocols import Method
from eblime.results.comparison import Comparison
from eblime.results.explanation import Explanation

__all__ = ["MethodSpec", "System", "compare", "compare_with", "parse_methods"]


@runtime_checkable
class System(Protocol):
    """An entry of a comparison that asks the model in its own way: see `eblime.family`."""

    def check(self, explainer: Any, x: Any) -> None:
        """Refuse an explainer or an input that it cannot work with, before any model call."""
        ...

    def explain(self, explainer: Any, x: Any, target: Target, rng: RNGLike) -> Explanation:
        """Explain the input by the explainer's features, with its budget of model calls."""
        ...


MethodSpec = str | Method | System | tuple[str | Method, Any]  # the pair: a method and its design
_ENDS = ("required", "useful", "unused")  # whose answers the other methods of a design can use


class Entry(NamedTuple):
    """A method of a comparison and the design of its masks, or a system."""

    label: str
    method: Any
    design: Any = None  # None is the one that all methods share

    @property
    def is_system(self) -> bool:
        """Whether it asks the model itself, after the methods."""
        return isinstance(self.method, System)

    @property
    def needs_ends(self) -> int:
        """How much a method needs the scores of both ends; smaller is more."""
        return _ENDS.index(getattr(self.method, "ends", "unused"))


def compare(
    model: Any,
    x: Any,
    methods: Sequence[MethodSpec] | Mapping[str, MethodSpec] = ("eblime", "quadrature", "lime"),
    *,
    explainer: Any = None,
    n_masks: int | None = None,
    target: Target = None,
    rng: RNGLike = 0,
    design: Any = None,
    cache: CacheLike = None,
    **settings: Any,
) -> Comparison:
    """Explain one prediction by several methods, with the same budget of model calls.

    Methods with the same design share one set of masks, so that the model is asked once for all of
    them. A method with a design of its own, such as "quadrature+adaptive", asks about as many masks
    of its own. The scores of the input itself and with everything hidden, which some methods need,
    cost at most two calls more.

    Parameters
    ----------
    model
        The model; None takes the one of `explainer`.
    x
        The input: an image, a text, or, with `background=...` in the settings, a row of a table.
    methods
        Methods by name or as objects; "name+design" or a pair (method, design) for one with its own
        design. With at least one of them, also systems: "averaged-lime" and "s-lime", for rows of
        numbers "dlime", "dmm-men" and "unravel", and those of other packages. A dictionary gives
        them names of your own.
    explainer
        An explainer whose settings are used. None makes one from `settings`.
    n_masks
        How many masks each design asks about; None is the explainer's number, 1,000 by default.
    target, rng, cache
        As for `ImageExplainer.explain`.
    design
        Which masks the methods without a design of their own share; None is the explainer's.
    settings
        Other settings of `ImageExplainer`, `TabularExplainer` (if `background` is among them) or
        `TextExplainer` (if `x` is a string).

    Examples
    --------
    >>> import eblime
    >>> mood = lambda texts: [0.5 + 0.4 * ("good" in t) - 0.3 * ("not" in t) for t in texts]
    >>> both = eblime.compare(mood, "a good film, not a long one", ["eblime", "lime"], n_masks=200)
    >>> both.methods, both.model_calls["lime"] == both.model_calls["eblime"]
    (('eblime', 'lime'), True)
    >>> both.agreement(top=2)["top_jaccard"].tolist()
    [1.0]
    """
    chosen = _explainer(model, x, explainer, settings)
    changes = {"n_masks": n_masks, "design": design}
    chosen = _set(chosen, **{k: v for k, v in changes.items() if v is not None})
    return compare_with(chosen, x, methods, target=target, rng=rng, cache=cache)


def compare_with(
    explainer: BaseExplainer,
    x: Any,
    methods: Sequence[MethodSpec] | Mapping[str, MethodSpec],
    *,
    target: Target = None,
    rng: RNGLike = 0,
    cache: CacheLike = None,
    progress: Any = None,
) -> Comparison:
    """`compare` with the settings and the model of an explainer; its own method is not used."""
    entries = parse_methods(methods)
    groups = _groups([entry for entry in entries if not entry.is_system])
    systems = [entry for entry in entries if entry.is_system]
    ready = [
        (_explainer_of(explainer, group), group) for group in groups
    ]  # refuses before any call
    for other in systems:
        other.method.check(explainer, x)
    found: dict[str, Explanation] = {}
    for asking, group in ready:
        first = asking.explain(x, target, rng, cache=cache, progress=progress)
        for entry in group:
            method = method_for(entry.method, asking.loop.kernel)
            found[entry.label] = first if method is first.method else first.refit(method)
        target = target_of(first.target, explainer.labels)
    cached = explainer if cache is None else _set(explainer, cache=cache)
    for other in systems:
        found[other.label] = other.method.explain(cached, x, target, rng)
    return Comparison(explanations={entry.label: found[entry.label] for entry in entries})


def _explainer(model: Any, x: Any, explainer: Any, settings: Mapping[str, Any]) -> BaseExplainer:
    """The explainer that is given, with the model, or one made from settings."""
    if isinstance(model, BaseExplainer):
        raise TypeError(
            "`model` must be a model; got an explainer. Pass it as compare(None, x, explainer=...)."
        )
    if explainer is not None:
        if settings:
            raise TypeError(
                f"`explainer` has its own settings; got {', '.join(sorted(settings))} as well. "
                "Set them in the explainer."
            )
        if not isinstance(explainer, BaseExplainer):
            raise TypeError(
                f"`explainer` must be an explainer such as ImageExplainer(model); got "
                f"{type(explainer).__name__}."
            )
        return explainer if model is None else _set(explainer, model=model)
    if model is None:
        raise TypeError("`model` must be given without an `explainer`.")
    if "background" in settings:
        return TabularExplainer(model, **settings)
    if isinstance(x, str):
        return TextExplainer(model, **settings)
    is_row = getattr(x, "ndim", None) == 1 or is_frame(x)
    if is_row or isinstance(x, (Mapping, list)):
        raise ValueError(
            "`background` must be given to explain a row of a table: compare(model, row, "
            "background=table)."
        )
    return ImageExplainer(model, **settings)


def _set(explainer: Any, **settings: Any) -> BaseExplainer:
    """The explainer with other settings, checked again."""
    changed: BaseExplainer = replace(explainer, **settings)
    return changed


def parse_methods(methods: Sequence[MethodSpec] | Mapping[str, MethodSpec]) -> list[Entry]:
    """The methods of a comparison, checked, with names that differ."""
    if isinstance(methods, str) or not isinstance(methods, (Sequence, Mapping)):
        raise TypeError(f"`methods` must be a list or a dictionary of methods; got {methods!r}.")
    if not methods:
        raise ValueError("`methods` must not be empty.")
    if isinstance(methods, Mapping):
        found = [_entry(spec, str(label)) for label, spec in methods.items()]
    else:
        found = [_entry(spec) for spec in methods]
    if all(entry.is_system for entry in found):
        raise ValueError(
            "`methods` must have a method, such as 'lime', in addition to "
            f"{', '.join(repr(entry.label) for entry in found)}."
        )
    labels = [entry.label for entry in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        advice = "" if twice in methods else " Name methods with a dictionary."
        raise ValueError(f"`methods` must differ; {twice!r} is there twice.{advice}")
    return found


def _entry(spec: MethodSpec, label: str | None = None) -> Entry:
    """One method: its name, "name+design", an object, or a pair of method and design; a system."""
    systems = registry.names("systems")
    if isinstance(spec, str) and spec in systems:
        return Entry(label or spec, registry.find("systems", spec)())
    if isinstance(spec, System) and not isinstance(spec, (type, BaseExplainer)):
        return Entry(label or short_repr(spec), spec)
    method: Any = spec
    design: Any = None
    if isinstance(spec, tuple):
        if len(spec) != 2:
            raise TypeError(f"A pair in `methods` must be (method, design); got {spec!r}.")
        method, design = spec
    elif isinstance(spec, str):
        method, _, named = spec.partition("+")
        design = named or None
        check_choice("methods", method, (*registry.names("methods"), *(() if design else systems)))
    shown = method if isinstance(method, str) else short_repr(method)
    if design is not None:
        shown += f"+{design if isinstance(design, str) else short_repr(design)}"
    return Entry(label or shown, as_method(method), design)


def _groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries that share their masks, those first that need the scores of both ends."""
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        key = entry.design if isinstance(entry.design, str) else id(entry.design)
        groups.setdefault(key, []).append(entry)
    ordered = [sorted(group, key=lambda entry: entry.needs_ends) for group in groups.values()]
    return sorted(ordered, key=lambda group: group[0].needs_ends)


def _explainer_of(explainer: BaseExplainer, group: Sequence[Entry]) -> BaseExplainer:
    """The explainer that asks for a group: with its design, by the method that needs most."""
    changes: dict[str, Any] = {"method": group[0].method}
    if group[0].design is not None:
        changes["design"] = group[0].design
    # each must suit the design
    made = [_set(explainer, **{**changes, "method": entry.method}) for entry in group]
    if len({stable_repr(one.loop.design) for one in made}) > 1:  # each has masks of its own choice
        return _set(explainer, **changes, design="paired")
    return made[0]
