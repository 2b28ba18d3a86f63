"""Explanations for other programs: JSON, ArviZ and shap."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from eblime._checks import check_level
from eblime._types import FloatArray, RNGLike
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation

__all__ = ["JSON_SCHEMA", "to_arviz", "to_dict", "to_json", "to_shap"]

JSON_SCHEMA = "eblime.explanation/1"


def to_dict(explanation: Explanation, prob: float = 0.95, k: int = 5) -> dict[str, Any]:
    """The explanation's numbers as plain dictionaries; the layout is in docs/reference/json.md.

    Numbers that a point estimate does not have, and those that are not finite, are None.
    """
    level = check_level("prob", prob)
    post = explanation.posterior
    certain = post.has_spread
    columns: dict[str, FloatArray] = {"mean": post.mean}
    if certain:
        columns |= post.columns(level)
        columns |= {"top_k": post.top_k_probability(min(k, post.n_features))}
    names = ("mean", "sd", "low", "high", "prob_positive", "top_k")
    details = explanation.details()
    features = [
        {"name": str(feature)}
        | {name: _number(columns[name][j]) if name in columns else None for name in names}
        | {name: values[j] for name, values in details.items()}
        for j, feature in enumerate(explanation.features)
    ]
    tails = [(1 - level) / 2, (1 + level) / 2]
    return {
        "schema": JSON_SCHEMA,
        "target": explanation.target,
        "label": explanation.label,
        "prediction": _number(explanation.prediction),
        "prob": level,
        "k": k,
        "method": post.method,
        "n_masks": post.n_masks,
        "exhaustive": explanation.exhaustive,
        "r2": _number(post.r2),
        "r2_held_out": None if post.r2_held_out is None else _number(post.r2_held_out),
        "ess": _number(post.ess),
        "intercept": _number(post.intercept),
        "estimand": post.estimand,
        "lambda": _lambda(post, tails),
        "features": features,
        "provenance": dict(explanation.provenance),
    }


def to_json(explanation: Explanation, prob: float = 0.95, k: int = 5) -> str:
    """The explanation's numbers as JSON text that UTF-8 can hold; see `to_dict`."""
    found = to_dict(explanation, prob, k)
    text = json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False)
    return re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", text)


def to_arviz(explanation: Explanation, n_draws: int = 4_000, rng: RNGLike = 0) -> Any:
    """Draws for ArviZ: one chain of i.i.d. (beta, sigma2, lam), beta by feature.

    An InferenceData with ArviZ before 1.0, a DataTree since.
    """
    try:
        import arviz
    except ImportError as error:
        raise ImportError("ArviZ is not installed: pip install 'eblime[arviz]'.") from error
    draws = explanation.posterior.draw(n_draws, rng)
    posterior = {"beta": draws.beta[None]}
    posterior |= {name: values[None] for name, values in draws.extras.items()}
    observed = {"scores": explanation.scores}
    coords, dims = {"feature": list(explanation.features)}, {"beta": ["feature"]}
    if int(arviz.__version__.split(".")[0]) >= 1:
        groups = {"posterior": posterior, "observed_data": observed}
        return arviz.from_dict(groups, coords=coords, dims=dims)
    return arviz.from_dict(posterior=posterior, observed_data=observed, coords=coords, dims=dims)


def to_shap(explanation: Explanation, prob: float = 0.95) -> Any:
    """A `shap.Explanation` whose bounds are the credible interval: shap's own plots draw it."""
    try:
        import shap
    except ImportError as error:
        raise ImportError("shap is not installed: pip install 'eblime[shap]'.") from error
    post = explanation.posterior
    low, high = post.interval(check_level("prob", prob)).T
    return shap.Explanation(
        values=post.mean,
        base_values=post.intercept,
        data=np.ones(post.n_features),
        feature_names=list(explanation.features),
        lower_bounds=low,
        upper_bounds=high,
    )


def _lambda(post: Posterior, tails: list[float]) -> dict[str, Any] | None:
    """Median and interval of the ridge parameter; None for a method that has none."""
    law = post.extras.get("lam")
    if law is None:
        return None
    interval = [_number(value) for value in law.quantile(tails)]
    return {"median": _number(law.median), "interval": interval}


def _number(value: float) -> float | None:
    """A number that JSON has: None for NaN and infinities."""
    return float(value) if math.isfinite(value) else None
