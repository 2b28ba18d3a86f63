"""Any index of importance, and interactions, from the answers of an explanation: no model call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime import registry
from eblime._checks import check_count, check_number
from eblime._repr import describe, name_of
from eblime._table import importance_table
from eblime._types import FloatArray, IntArray
from eblime.answers import Answers
from eblime.kernels import ExponentialKernel, as_kernel, kernel_of
from eblime.methods.quadrature import INDICES, Quadrature, fit_indices
from eblime.posterior import Posterior
from eblime.protocols import Kernel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from eblime.results.explanation import Explanation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Interactions:
    """What pairs of features do together beyond what each does alone.

    A positive interaction: shown together, the two change the score by more than the sum of their
    changes alone. `Explanation.interactions` computes them.

    Examples
    --------
    >>> import eblime
    >>> both = lambda texts: [float("not" in t and "bad" in t) for t in texts]
    >>> e = eblime.TextExplainer(both, n_masks=100).explain("not bad at all")
    >>> found = e.interactions()
    >>> float(found.matrix()[0, 1].round(3))
    1.0
    """

    posterior: Posterior  # of the interactions, in the order of `pairs`
    pairs: IntArray  # (P, 2) numbers of the features
    features: Sequence[str]  # names of all features
    label: str = ""  # what was explained

    @property
    def names(self) -> list[str]:
        """The pairs by name."""
        names = self.features
        return [f"{names[i]} \N{MULTIPLICATION SIGN} {names[j]}" for i, j in self.pairs]

    def matrix(self, of: FloatArray | None = None) -> FloatArray:
        """The posterior means, (p, p), symmetric with zeros on the diagonal.

        `of` are other numbers, one per pair, such as `posterior.sd`.
        """
        found = np.zeros((len(self.features), len(self.features)))
        first, second = self.pairs.T
        found[first, second] = found[second, first] = self.posterior.mean if of is None else of
        return found

    def table(self, prob: float = 0.95, top: int = 10) -> str:
        """The largest interactions as text."""
        return importance_table(self.posterior, self.names, prob, top, noun="pair")

    def to_frame(self, prob: float = 0.95, top: int | None = None) -> pd.DataFrame:
        """One row per pair, the largest first.

        The columns are feature_a, feature_b, mean, sd, low, high and prob_positive.
        """
        from eblime._pandas import pd

        if top is not None:
            check_count("top", top)
        order = self.posterior.order()[:top]
        first, second = self.pairs[order].T
        columns = {"mean": self.posterior.mean, **self.posterior.columns(prob)}
        names = np.array(self.features, dtype=object)
        head = {"feature_a": names[first], "feature_b": names[second]}
        return pd.DataFrame(head | {name: values[order] for name, values in columns.items()})

    def plot(self, *, ax: Axes | None = None, **settings: object) -> Axes:
        """A heat map of the means; pairs whose sign is uncertain are faded."""
        return registry.find("charts", "interactions")(self, ax=ax, **settings)

    def _repr_html_(self) -> str:
        return registry.find("pages", "notebook")(self)

    def __repr__(self) -> str:
        """One line: what they are of."""
        return f"Interactions({self.posterior.estimand!r}, n_pairs={len(self.pairs)})"

    def __str__(self) -> str:
        """The largest interactions."""
        return f"{self.posterior.estimand}\n{self.table()}"


def index_posteriors(
    explanation: Explanation, methods: Sequence[Quadrature]
) -> tuple[Posterior, ...]:
    """The posteriors of several methods' indices, from one fit."""
    answers = explanation.answers.varying
    for method in methods:
        check_game(answers, method.index)
    indices = [method.functional(answers.n_features) for method in methods]
    found = fit_indices(answers, indices, [method.estimand for method in methods])
    return tuple(posterior.with_fixed(explanation.answers.fixed) for posterior in found)


def check_game(answers: Answers, index: str) -> None:
    """Refuse Shapley values where the score with everything hidden, which they need, is not known.

    Chance fills in what a mask hides, as for rows that `compat.lime` draws.
    """
    if index == "shapley" and not answers.exact_ends:
        raise ValueError(
            "Shapley values need the score with everything hidden, which these answers do not "
            "have. For a row of a table, use TabularExplainer(model, background)."
        )


def by_quadrature(explanation: Explanation) -> bool:
    """Whether the posterior is one over functions of the mask, rather than a linear fit."""
    return getattr(explanation.method, "functional", None) is not None


def every_index(explanation: Explanation) -> dict[str, Posterior]:
    """The posteriors of all indices, its own among them; empty unless it is by `Quadrature`."""
    method: Any = explanation.method
    if getattr(method, "index", None) not in INDICES:
        return {}
    kernel = _known_kernel(explanation)
    defined = {"lime": kernel is not None, "shapley": explanation.answers.exact_ends}
    names = [name for name in INDICES if name != method.index and defined.get(name, True)]
    others = [replace(method, index=name, kernel=kernel) for name in names]
    found = dict(zip(names, index_posteriors(explanation, others), strict=True))
    found[method.index] = explanation.posterior
    return {name: found[name] for name in INDICES if name in found}


def posteriors_by_width(explanation: Explanation, widths: Sequence[float]) -> tuple[Posterior, ...]:
    """The importances of the weighted linear fit at several kernel widths, from one fit."""
    for width in widths:
        check_number("width", width)
    kernel = _exponential(explanation)
    methods = [Quadrature(kernel=replace(kernel, width=w)) for w in widths]
    return index_posteriors(explanation, methods)


def own_kernel(explanation: Explanation) -> Kernel:
    """The kernel of an explanation, which its record names."""
    found = _known_kernel(explanation)
    if found is None:
        stored = explanation.provenance.get("kernel")
        raise ValueError(
            f"`kernel` must be given: the explanation has a kernel of its own, {name_of(stored)}, "
            "which is not stored with it."
        )
    return found


def own_width(explanation: Explanation) -> float:
    """The width of an explanation's exponential kernel, in lime's convention."""
    return _exponential(explanation).width_for(explanation.answers.n_varying)


def _exponential(explanation: Explanation) -> ExponentialKernel:
    kernel = _known_kernel(explanation)
    if not isinstance(kernel, ExponentialKernel):
        found = explanation.provenance.get("kernel") if kernel is None else describe(kernel)
        raise ValueError(
            "`width` needs an explanation with an ExponentialKernel; the kernel of this one is "
            f"{name_of(found)}. Give `kernel=ExponentialKernel(width=...)`."
        )
    return kernel


def _known_kernel(explanation: Explanation) -> Kernel | None:
    """The kernel of the method or of the provenance; None for a function of the user."""
    kernel = getattr(explanation.method, "kernel", None)
    if kernel is not None:
        return as_kernel(kernel)
    return kernel_of(explanation.provenance.get("kernel"))
