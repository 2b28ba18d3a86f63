"""What an explanation that was read from a file must look like."""

from __future__ import annotations

import numpy as np

from eblime._field_checks import (
    MOST_FEATURES,
    Layout,
    Rule,
    flag,
    floats,
    instance,
    number,
    optional,
    plain,
    text,
    whole,
)
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation

__all__ = ["EXPLANATION"]

_MOST_MASKS = (1 << 53) - 1


def _known_provenance(explanation: Explanation) -> bool:
    """Whether the entries that tables and pages format are numbers."""
    seconds = explanation.provenance.get("seconds")
    return seconds is None or number(low=0.0).holds(seconds)


def _one_size(explanation: Explanation) -> bool:
    """Whether posterior, scene and answers have the same features."""
    features = {
        explanation.posterior.n_features,
        explanation.scene.n_features,
        len(explanation.scene.features),
        explanation.masks.shape[1],
    }
    return len(features) == 1 and features.pop() <= MOST_FEATURES


def _finite(explanation: Explanation) -> bool:
    """Whether all importances have finite means, and R^2 is one."""
    post = explanation.posterior
    return bool(np.isfinite(post.mean).all()) and post.r2 <= 1


EXPLANATION = Layout(
    fields={
        "posterior": instance(Posterior),
        "target": whole(0, _MOST_MASKS),
        "label": text(),
        "prediction": number(),
        "masks": floats("n", "p"),
        "scores": floats("n"),
        "weights": floats("n", low=0.0),
        "exhaustive": flag(),
        "provenance": plain(),
        "generator": optional(plain()),
    },
    rules=[
        Rule(must="one number of features throughout", holds=_one_size),
        Rule(must="finite importances", holds=_finite),
        Rule(must="a number of seconds in its provenance", holds=_known_provenance),
    ],
)
