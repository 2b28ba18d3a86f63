"""Any index of importance from the answers of an explanation, without a model call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import as_generator, check_choice, check_number
from eblime._repr import short_repr, stable_repr
from eblime._types import RNGLike
from eblime.core.indices import banzhaf, shapley
from eblime.kernels import ExponentialKernel, as_kernel, kernel_of_repr
from eblime.methods.common import LINEAR_FIT
from eblime.methods.quadrature import INDICES, Quadrature, fit_indices
from eblime.posterior import Posterior
from eblime.protocols import Kernel, Method
from eblime.results.interactions import Interactions

if TYPE_CHECKING:
    from eblime.results.explanation import Explanation

__all__ = [
    *("by_quadrature", "every_index", "generator_in", "index_posterior", "index_posteriors"),
    *("own_kernel", "own_width", "pair_interactions", "posteriors_by_width", "quantity"),
    "with_own_kernel",
]

_MOST_FEATURES = 64  # of interactions: the covariance of all pairs is kept
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # those of NumPy
_PAIRS = {"banzhaf": "Banzhaf interactions", "shapley": "Shapley interactions"}


def index_posterior(
    explanation: Explanation,
    index: str,
    *,
    width: float | None,
    kernel: str | Kernel | None,
    rng: RNGLike,
) -> Posterior:
    """The posterior of an index; see `Explanation.importances`."""
    check_choice("index", index, INDICES)
    if index != "lime" and (width is not None or kernel is not None):
        raise ValueError(f"`width` and `kernel` must be None unless index='lime'; got {index!r}.")
    if width is not None and kernel is not None:
        raise ValueError("`width` and `kernel` must not both be given.")
    if width is not None:
        return posteriors_by_width(explanation, [width], rng)[0]
    if index == "lime" and kernel is None:
        kernel = own_kernel(explanation)
    chosen = Quadrature(kernel=kernel, index=index)  # type: ignore[arg-type]  # checked above
    return index_posteriors(explanation, [chosen], rng)[0]


def index_posteriors(
    explanation: Explanation, methods: Sequence[Quadrature], rng: RNGLike = None
) -> tuple[Posterior, ...]:
    """The posteriors of several methods' indices, from one fit."""
    answers = explanation.answers
    indices = [method.functional(answers.n_features) for method in methods]
    estimands = [method.estimand for method in methods]
    return fit_indices(_generator(explanation, rng), answers, indices, estimands)


def by_quadrature(explanation: Explanation) -> bool:
    """Whether the posterior is one over functions of the mask, rather than a linear fit."""
    return isinstance(explanation.method, Quadrature)


def quantity(explanation: Explanation) -> str:
    """What the importances estimate, in a few words; the same words for the same quantity.

    Every design except "sizes" has the weighted linear fit to all masks as its estimand, where a
    mask decides the input. So the index "lime" of `Quadrature` is what a regression with the same
    kernel estimates. "sizes", the default for texts, draws as many masks of each size.
    """
    words, method = explanation.posterior.estimand, explanation.method
    uneven = explanation.provenance.get("design") == "sizes" and not explanation.exhaustive
    if uneven and words.startswith(LINEAR_FIT):
        return f"{words}, as many masks of each size"
    if not isinstance(method, Quadrature) or method.index != "lime":
        return words
    kernel, stored = as_kernel(method.kernel), explanation.provenance.get("kernel")
    if stable_repr(kernel) != stored:
        return f"{words}, {short_repr(kernel)}"
    return words if explanation.answers.noisy else f"{LINEAR_FIT}free intercept"


def every_index(explanation: Explanation) -> dict[str, Posterior]:
    """The posteriors of all indices, its own among them; empty unless it is by `Quadrature`."""
    method = explanation.method
    if not isinstance(method, Quadrature):
        return {}
    others = [
        replace(method, index=name)  # type: ignore[arg-type]  # one of INDICES
        for name in INDICES
        if name != method.index
    ]
    if method.index != "lime" and method.kernel is None:
        kernel = kernel_of_repr(explanation.provenance.get("kernel"))
        others = [replace(one, kernel=kernel) for one in others if kernel or one.index != "lime"]
    fitted = index_posteriors(explanation, others)
    found = {one.index: post for one, post in zip(others, fitted, strict=True)}
    found[method.index] = explanation.posterior
    return {name: found[name] for name in INDICES if name in found}


def posteriors_by_width(
    explanation: Explanation, widths: Sequence[float], rng: RNGLike = None
) -> tuple[Posterior, ...]:
    """The importances of the weighted linear fit at several kernel widths, from one fit."""
    for width in widths:
        check_number("width", width)
    kernel = _exponential(explanation)
    methods = [Quadrature(kernel=replace(kernel, width=w, theta=None)) for w in widths]
    return index_posteriors(explanation, methods, rng)


def pair_interactions(explanation: Explanation, index: str, *, rng: RNGLike = None) -> Interactions:
    """The interactions of all pairs of features; see `Explanation.interactions`."""
    check_choice("index", index, tuple(_PAIRS))
    answers = explanation.answers
    p = answers.n_features
    if not 2 <= p <= _MOST_FEATURES:
        raise ValueError(
            f"Interactions need 2 to {_MOST_FEATURES} features; the explanation has {p}."
        )
    pairwise = (banzhaf() if index == "banzhaf" else shapley(p)).pairwise()
    (found,) = fit_indices(_generator(explanation, rng), answers, [pairwise], [_PAIRS[index]])
    return Interactions(
        posterior=found,
        pairs=pairwise.subsets(p),
        features=tuple(str(name) for name in explanation.features),
        label=explanation.label,
    )


def own_kernel(explanation: Explanation) -> Kernel:
    """The kernel of an explanation, which its record names."""
    found = _known_kernel(explanation)
    if found is None:
        stored = explanation.provenance.get("kernel")
        raise ValueError(
            f"`kernel` must be given: the explanation has a kernel of its own, {stored!s:.60}, "
            "which is not stored with it."
        )
    return found


def own_width(explanation: Explanation) -> float:
    """The width of an explanation's exponential kernel, in lime's convention."""
    return _exponential(explanation).width_for(explanation.answers.n_features)


def with_own_kernel(explanation: Explanation, method: Method) -> Method:
    """A method that needs no weights with the kernel of an explanation, unless it has its own."""
    adapt = getattr(method, "with_kernel", None)
    if adapt is None or getattr(method, "kernel", None) is not None:
        return method
    if getattr(method, "index", "lime") != "lime":  # needs no kernel
        return method
    adapted: Method = adapt(own_kernel(explanation))
    return adapted


def _exponential(explanation: Explanation) -> ExponentialKernel:
    """The kernel of an explanation, which must have a width."""
    kernel = _known_kernel(explanation)
    if not isinstance(kernel, ExponentialKernel):
        own = getattr(explanation.method, "kernel", None)
        found = explanation.provenance.get("kernel") if own is None else own
        raise ValueError(
            "`width` needs an explanation with an ExponentialKernel; the kernel of this one is "
            f"{found!s:.60}. Give `kernel=ExponentialKernel(width=...)`."
        )
    return kernel


def _known_kernel(explanation: Explanation) -> Kernel | None:
    """The kernel of the method or of the provenance; None for a function of the user."""
    kernel = getattr(explanation.method, "kernel", None)
    if kernel is not None:
        return as_kernel(kernel)
    return kernel_of_repr(explanation.provenance.get("kernel"))


def _generator(explanation: Explanation, rng: RNGLike) -> np.random.Generator:
    """The generator; for None the one that the explanation was fitted with by `Quadrature`."""
    if rng is not None:
        return as_generator(rng)
    own = isinstance(explanation.method, Quadrature)
    return generator_in(explanation.generator if own else None)


def generator_in(state: Mapping[str, Any] | None) -> np.random.Generator:
    """A generator in the given state; that of seed 0 if None.

    Examples
    --------
    >>> rng = np.random.Generator(np.random.Philox(3))
    >>> generator_in(rng.bit_generator.state).random() == rng.random()
    True
    """
    if state is None:
        return np.random.default_rng(0)
    kind = state.get("bit_generator") if isinstance(state, Mapping) else None
    if kind not in _GENERATORS:
        raise ValueError(
            f"`generator` must be the state of one of {', '.join(_GENERATORS)}; got {kind!r:.40}."
        )
    bits = getattr(np.random, kind)(0)
    bits.state = state
    return np.random.Generator(bits)
