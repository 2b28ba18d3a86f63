"""Distances of perturbed inputs from the first one, and lime's kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eblime._types import FloatArray
from eblime.kernels import ExponentialKernel

__all__ = ["check_metric", "describe_kernel", "distances_to_first", "exponential_kernel"]

_CORNERS = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])


def exponential_kernel(d: FloatArray, kernel_width: float) -> FloatArray:
    """The default kernel of lime: `sqrt(exp(-d^2 / kernel_width^2))`."""
    return np.asarray(np.sqrt(np.exp(-(d**2) / kernel_width**2)))


def distances_to_first(data: FloatArray, metric: str | Callable[..., Any]) -> FloatArray:
    """Distance of each row from the first row, (N,).

    Parameters
    ----------
    data
        Shape (N, p).
    metric
        "cosine", "euclidean", "manhattan", another name that `scipy.spatial.distance.cdist` knows,
        or a function of two rows. The cosine distance of a row of zeros is 1.
    """
    first = data[0]
    if metric == "cosine":
        sizes = np.sqrt((data**2).sum(axis=1)) * np.sqrt(first @ first)
        similarity = np.divide(data @ first, sizes, out=np.zeros(len(data)), where=sizes > 0)
        return np.asarray(np.clip(1 - similarity, 0, 2))
    if metric in ("euclidean", "l2"):
        return np.asarray(np.sqrt(((data - first) ** 2).sum(axis=1)))
    if metric in ("manhattan", "l1", "cityblock"):
        return np.asarray(np.abs(data - first).sum(axis=1))
    from scipy.spatial.distance import cdist

    try:
        return np.asarray(cdist(data, data[:1], metric)).ravel()
    except ValueError as error:
        raise ValueError(
            "`distance_metric` must be 'cosine', 'euclidean', 'manhattan', another metric of "
            f"scipy's cdist or a function of two rows; got {metric!r:.60} ({error})."
        ) from error


def check_metric(metric: str | Callable[..., Any], n_features: int) -> None:
    """Refuse a metric that does not work, before the model is called."""
    few = np.ones((1, n_features)) if callable(metric) else _CORNERS  # "mahalanobis" needs rows
    distances_to_first(few, metric)


def describe_kernel(base: Any, metric: str | Callable[..., Any], *, unit: float = 1.0) -> str:
    """The kernel of a `LimeBase` in words; distances were multiplied by `unit`."""
    kernel_fn = getattr(base, "kernel_fn", None)
    if kernel_fn is None:
        return f"that of {type(base).__name__}"
    function, settings = getattr(kernel_fn, "func", kernel_fn), getattr(kernel_fn, "keywords", {})
    width = settings.get("kernel_width")
    known: Any = metric
    if function is exponential_kernel and known in ("euclidean", "cosine"):
        return repr(ExponentialKernel(distance=known, width=settings["kernel_width"] / unit))
    named = getattr(function, "__name__", type(function).__name__)
    distance = metric if isinstance(metric, str) else getattr(metric, "__name__", "the user's")
    return f"{named} with width {width} on {distance} distances"
