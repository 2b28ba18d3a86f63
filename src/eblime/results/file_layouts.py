"""What an explanation that was read from a file must look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eblime._checks import check_masks, check_scores, check_weights
from eblime._field_checks import (
    MOST_FEATURES,
    NAMES,
    Layout,
    Rule,
    check_object,
    flag,
    floats,
    instance,
    number,
    optional,
    plain,
    text,
    whole,
)
from eblime.answers import Answers
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation

__all__ = ["EXPLANATION", "POSTERIOR", "checked_answers"]

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
    """Whether all importances have finite means."""
    return bool(np.isfinite(explanation.posterior.mean).all())


_ANSWERS = Layout(
    fields={
        "original": optional(number()),
        "hidden": optional(number()),
        "features": optional(NAMES),
        "sampling": optional(floats("n", low=0.0)),
        "noisy": flag(),
    }
)

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

POSTERIOR = Layout(
    fields={
        "estimand": text(),
        "method": text(),
        "n_masks": whole(1, _MOST_MASKS),
        "r2": number(high=1.0, nan=True),
        "ess": number(low=0.0),
    },
)


def checked_answers(fields: Mapping[str, Any]) -> Answers:
    """Answers from the fields of a file, checked like those of a user and made read-only."""
    masks = check_masks(fields["masks"])
    scores = check_scores(fields["scores"], len(masks), ndim=1)
    weights = check_weights(fields["weights"], len(masks))
    for array in (masks, scores, weights):
        array.flags.writeable = False
    made = Answers(**{**fields, "masks": masks, "scores": scores, "weights": weights})
    check_object(made, _ANSWERS)
    return made
