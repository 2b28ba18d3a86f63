"""Kernels: how much a mask counts, by how far it is from the input itself or how much it shows.

Two conventions are in use and differ by a factor of sqrt(2) in the width. lime and BayesLIME write
`sqrt(exp(-d^2 / width^2))`, which is `exp(-d^2 / (2 width^2))`; the EBLIME paper writes
`exp(-d^2 / theta^2)`. Here `width` is lime's: `theta / sqrt(2)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from eblime import registry
from eblime._checks import check_choice, check_number
from eblime._types import FloatArray
from eblime.core.indices import log_subsets
from eblime.protocols import Kernel

DISTANCES = {
    "euclidean": "the Euclidean distance",
    "cosine": "the cosine distance",
    "hamming": "the share of hidden features",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialKernel:
    """`exp(-d^2 / (2 width^2))`, with d the distance of a mask from the mask that shows all.

    Parameters
    ----------
    distance
        "euclidean": the square root of the number of hidden features; "cosine": 1 minus the cosine,
        lime's for images and text; "hamming": the share of hidden features.
    width
        Width in lime's convention; the paper's theta divided by the root of 2. None is
        `0.75 sqrt(p)` for "euclidean" (lime's for tables and BayesLIME's), 0.25 for "cosine"
        (lime's for images) and 0.5 for "hamming".

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> eblime.kernels.ExponentialKernel()(np.array([[1.0, 1.0], [1.0, 0.0]])).round(3)
    array([1.   , 0.641])
    """

    distance: Literal["euclidean", "cosine", "hamming"] = "euclidean"
    width: float | None = None

    def __post_init__(self) -> None:
        check_choice("distance", self.distance, tuple(DISTANCES))
        if self.width is not None:
            check_number("width", self.width)

    def __call__(self, masks: FloatArray) -> FloatArray:
        """Weights of the masks, (N, p) -> (N,)."""
        p = masks.shape[1]
        if self.distance == "euclidean":
            distances = np.sqrt(((1 - masks) ** 2).sum(axis=1))
        elif self.distance == "hamming":
            distances = np.mean(masks != 1, axis=1)
        else:
            length, cosine = np.linalg.norm(masks, axis=1) * np.sqrt(p), np.zeros(len(masks))
            distances = 1 - np.divide(masks.sum(axis=1), length, out=cosine, where=length > 0)
        with np.errstate(over="ignore"):  # of a tiny width: the weight is zero
            squares = (distances / (np.sqrt(2) * self.width_for(p))) ** 2
        return np.asarray(np.exp(-squares))

    def width_for(self, p: int) -> float:
        """The width in lime's convention for p features."""
        default = {"euclidean": 0.75 * np.sqrt(p), "cosine": 0.25, "hamming": 0.5}
        return float(default[self.distance] if self.width is None else self.width)

    def describe(self, p: int) -> str:
        """The kernel in words, for p features."""
        return f"exponential kernel on {DISTANCES[self.distance]}, width {self.width_for(p):.4g}"


def uniform(masks: FloatArray) -> FloatArray:
    """Every mask counts the same, (N, p) -> (N,).

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.kernels import uniform
    >>> uniform(np.array([[1.0, 1.0], [1.0, 0.0]]))
    array([1., 1.])
    """
    return np.ones(len(masks))


def shapley(masks: FloatArray) -> FloatArray:
    """Weights whose linear fit has Shapley values as slopes: `(p - 1) / (C(p, s) s (p - s))`.

    s is the number of features shown. The weight of the two ends, s = 0 and s = p, is infinite in
    theory, which makes the line exact there. Here it is 1, as in BayesSHAP; `BayesSHAP` makes the
    line exact at both ends.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.kernels import shapley
    >>> shapley(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    array([1.        , 0.33333333, 0.33333333, 1.        ])
    """
    p = masks.shape[1]
    shown = np.rint(masks.sum(axis=1))
    inside = (shown > 0) & (shown < p)
    s = shown[inside]
    weights = np.ones(len(masks))
    weights[inside] = (p - 1) * np.exp(-log_subsets(p)[s.astype(np.intp)]) / (s * (p - s))
    return weights


EUCLIDEAN = ExponentialKernel()
COSINE = ExponentialKernel(distance="cosine")
HAMMING = ExponentialKernel(distance="hamming")


def as_kernel(kernel: str | Kernel | None) -> Kernel:
    """The kernel of that name, the default for None, or the function itself."""
    if kernel is None:
        return EUCLIDEAN
    if isinstance(kernel, str):
        return registry.find("kernels", kernel)
    if isinstance(kernel, type) or not callable(kernel):
        raise TypeError(
            f"`kernel` must be a name, an object such as ExponentialKernel(width=2.0) or a "
            f"function from masks (N, p) to weights (N,); got {kernel!r}."
        )
    return kernel


def kernel_of(record: Any) -> Kernel | None:
    """The kernel of a record in a provenance; None for a function of the user.

    Examples
    --------
    >>> kernel_of({"name": "ExponentialKernel", "settings": {"distance": "cosine"}}) == COSINE
    True
    """
    plain: dict[object, Kernel] = {"uniform": uniform, "shapley": shapley}
    try:
        if record["name"] == "ExponentialKernel":
            return ExponentialKernel(**record["settings"])
        return plain.get(record["name"])
    except (KeyError, TypeError, ValueError):
        return None


def size_weights(kernel: str | Kernel | None, p: int) -> FloatArray:
    """The weights of masks that show 0 .. p features, (p + 1,).

    Refuses a kernel whose weights depend on more than the number of features shown.

    Examples
    --------
    >>> size_weights(None, 2).round(3)
    array([0.411, 0.641, 1.   ])
    """
    sizes = np.arange(p + 1)
    first = (np.arange(p) < sizes[:, None]).astype(np.float64)
    found = np.asarray(as_kernel(kernel)(first), dtype=np.float64)
    if found.shape != (p + 1,) or not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError(
            f"`kernel` must return {p + 1} weights that are not negative for {p + 1} masks; got "
            f"shape {found.shape}."
        )
    for order in (np.arange(p)[::-1], np.random.default_rng(0).permutation(p)):
        if not np.allclose(as_kernel(kernel)(first[:, order]), found, rtol=1e-9, atol=0.0):
            raise ValueError(
                "`kernel` must depend on the number of features shown only, for a posterior over "
                f"functions of the mask; {kernel!r} depends on which ones. Use EBLIME()."
            )
    return found
