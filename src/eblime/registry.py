"""Names of methods, designs, kernels, domains, plot kinds and systems, in one place.

Another package adds its own by an entry point, for example in its pyproject.toml:

    [project.entry-points."eblime.methods"]
    robust = "mypackage.robust:Robust"

| group | what the entry point names |
|---|---|
| `eblime.methods` | a class or function without arguments that returns a `Method` |
| `eblime.designs` | a function (rng, n_masks, p) -> masks, or a class D(n_masks=) with `next` |
| `eblime.kernels` | a function from closeness (N, p) to weights (N,) |
| `eblime.domains` | a `Domain` record |
| `eblime.plots` | a function (explanation, *, ax=None, ...) -> Axes |
| `eblime.run_plots` | a function (run, *, ax=None, ...) -> Axes |
| `eblime.systems` | a class without arguments; `compare` calls its `check` and `explain` |

Objects are imported when they are first used. This is the only module that names other parts of the
library in strings, so that a part can use one that imports it: results show pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import metadata
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from eblime.domains.record import Domain
    from eblime.protocols import Kernel, Method

__all__ = ["find", "get", "names", "of_domain", "refresh", "register", "resolve"]

_DOMAINS = ("image", "tabular", "text", "prompt", "signal", "volume")
_BUILT_IN: Mapping[str, dict[str, str]] = {
    "methods": {
        "eblime": "eblime.methods.eblime:EBLIME",
        "eblime-ridge": "eblime.methods.eblime:common_ridge",
        "eblime-paper": "eblime.methods.eblime:EBLIME.paper",
        "bayeslime": "eblime.methods.ridge:BayesLIME",
        "baylime": "eblime.methods.baylime:BayLIME",
        "bayesshap": "eblime.methods.bayesshap:BayesSHAP",
        "lime": "eblime.methods.ridge:LIME",
        "quadrature": "eblime.methods.quadrature:Quadrature",
    },
    "designs": {
        "bernoulli": "eblime.designs.masks:bernoulli",
        "orthogonal": "eblime.designs.arrays:orthogonal",
        "leverage": "eblime.designs.masks:leverage",
        "exhaustive": "eblime.designs.masks:exhaustive",
        "sizes": "eblime.designs.masks:sizes",
        "adaptive": "eblime.designs.adaptive:Adaptive",
        "glime": "eblime.family.by_size:GLIME",
        "stratified-lime": "eblime.family.by_size:stratified_lime",
    },
    "kernels": {
        "euclidean": "eblime.kernels:EUCLIDEAN",
        "cosine": "eblime.kernels:COSINE",
        "hamming": "eblime.kernels:HAMMING",
        "uniform": "eblime.kernels:uniform",
        "shapley": "eblime.kernels:shapley",
    },
    "domains": {name: f"eblime.domains.{name}:{name.upper()}" for name in _DOMAINS},
    "plots": {
        "intervals": "eblime.plot.charts:intervals",
        "means": "eblime.plot.charts:means",
        "waterfall": "eblime.plot.charts:waterfall",
        "density": "eblime.plot.charts:densities",
        "ranks": "eblime.plot.charts:ranks",
        "lambda": "eblime.plot.charts:ridge",
        "convergence": "eblime.plot.charts:convergence",
        "width": "eblime.plot.charts:by_width",
        "fit": "eblime.plot.charts:fit",
        "map": "eblime.plot.maps:importance_map",
        "text": "eblime.plot.text:highlighted",
        "signal": "eblime.plot.signals:signal_map",
        "slices": "eblime.plot.volumes:slices",
        "projections": "eblime.plot.volumes:projections",
    },
    "run_plots": {
        "beeswarm": "eblime.plot.runs:beeswarm",
        "dependence": "eblime.plot.runs:dependence",
    },
    "systems": {  # relatives of LIME that ask the model in their own way
        "dlime": "eblime.family.systems:DLIME",
        "dmm-men": "eblime.family.mixture:DMMMEN",
        "s-lime": "eblime.family.systems:SLIME",
        "unravel": "eblime.family.active:UnRAVEL",
    },
    # what explainers and results call without importing it
    "pages": {
        "page": "eblime.reporting.page:report",
        "notebook": "eblime.reporting.notebook:fragment",
        "citations": "eblime.reporting.page:citations",
    },
    "runs": {"explain_many": "eblime.batch.run:explain_many"},
    "figures": {"pictures": "eblime.plot.poster:pictures"},
    "charts": {
        "comparison": "eblime.plot.charts:compare",
        "interactions": "eblime.plot.maps:interaction_map",
        "detection": "eblime.plot.charts:detection",
    },
    # by domain: `explainers.image.ImageExplainer`, `reporting.views.image_view`, `cli.kinds.IMAGE`
    "explainers": {
        name: f"eblime.explainers.{name}:{name.capitalize()}Explainer" for name in _DOMAINS
    },
    "views": {  # the page of a row shows its table alone
        name: f"eblime.reporting.views:{name}_view" for name in _DOMAINS if name != "tabular"
    },
    "commands": {name: f"eblime.cli.kinds:{name.upper()}" for name in _DOMAINS},
}
_ADDED: dict[str, dict[str, object]] = {kind: {} for kind in _BUILT_IN}


def names(kind: str) -> tuple[str, ...]:
    """All known names of a kind: built in, added, and from installed packages.

    Examples
    --------
    >>> from eblime import registry
    >>> "orthogonal" in registry.names("designs")
    True
    """
    return tuple(dict.fromkeys([*_BUILT_IN[kind], *_ADDED[kind], *_entry_points(kind)]))


@overload
def find(kind: Literal["methods"], name: object) -> Callable[[], Method]: ...
@overload
def find(kind: Literal["kernels"], name: object) -> Kernel: ...
@overload
def find(kind: Literal["domains"], name: object) -> Domain: ...
@overload
def find(kind: Literal["plots", "run_plots", "charts"], name: object) -> Callable[..., Axes]: ...
@overload
def find(kind: Literal["pages"], name: object) -> Callable[..., str]: ...
@overload
def find(kind: str, name: object) -> Any: ...
def find(kind: str, name: object) -> object:
    """The object of that name; an unknown name is refused with the known ones listed.

    Examples
    --------
    >>> from eblime import registry
    >>> registry.find("methods", "lime").__name__
    'LIME'
    """
    if isinstance(name, str):
        if name in _ADDED[kind]:
            return _ADDED[kind][name]
        if name in _BUILT_IN[kind]:
            return resolve_name(_BUILT_IN[kind][name])
        if name in _entry_points(kind):
            return _entry_points(kind)[name].load()
    listed = ", ".join(map(repr, names(kind)))
    setting = "kind" if kind in ("plots", "run_plots") else kind.removesuffix("s")
    raise ValueError(f"`{setting}` must be one of {listed}; got {name!r:.60}.")


def get(kind: str, name: str) -> Any | None:
    """The object of that name, or None if no such name is known.

    Examples
    --------
    >>> from eblime import registry
    >>> registry.get("designs", "coin") is None
    True
    """
    return find(kind, name) if name in names(kind) else None


def register(kind: str, name: str, value: object) -> None:
    """Add a name for this process; built-in names cannot be replaced.

    Worker processes do not know it: a package that should work there declares an entry point.

    Examples
    --------
    >>> import eblime
    >>> from eblime import registry
    >>> registry.register("kernels", "linear", lambda closeness: closeness.mean(axis=1))
    >>> eblime.TextExplainer(lambda texts: [len(t) for t in texts], kernel="linear").kernel
    'linear'
    """
    if name in _BUILT_IN[kind]:
        raise ValueError(f"{name!r} is a built-in name of {kind} and cannot be replaced.")
    _ADDED[kind][name] = value


def refresh() -> None:
    """Look for entry points again, after packages were installed while Python was running.

    Examples
    --------
    >>> from eblime import registry
    >>> registry.refresh()
    >>> "lime" in registry.names("methods")
    True
    """
    _entry_points.cache_clear()


def resolve(found: object) -> Any:
    """The object at "module:name"; anything that is not a string is returned as it is.

    Examples
    --------
    >>> from eblime import registry
    >>> registry.resolve("eblime:LIME").__name__
    'LIME'
    """
    return resolve_name(found) if isinstance(found, str) else found


def of_domain(domain: Domain, part: Literal["explainer", "view", "command"]) -> Any | None:
    """A part of a `Domain`: the one that its record names, or the built-in one; None without.

    Examples
    --------
    >>> from eblime import registry
    >>> registry.of_domain(registry.find("domains", "text"), "view").__name__
    'text_view'
    """
    return resolve(getattr(domain, part)) or get(f"{part}s", domain.name)


@lru_cache(maxsize=8)
def _entry_points(kind: str) -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=f"eblime.{kind}")}
