"""The result of a system in a comparison, as an explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eblime._version import __version__
from eblime.answers import Answers
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation

__all__ = ["NotRefitted", "explanation_like"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRefitted:
    """Stands in an explanation for a system that is not a regression of its answers."""

    name: str

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Refused: the posterior does not follow from the answers alone."""
        raise ValueError(
            f"{self.name} cannot fit answers again; choose a method, such as refit('lime')."
        )


def explanation_like(
    reference: Explanation, posterior: Posterior, answers: Answers, *, calls: int
) -> Explanation:
    """An explanation of the same input and target as another one."""
    provenance: Mapping[str, Any] = {
        "input": reference.provenance.get("input", {}),
        "method": posterior.method,
        "seed": reference.provenance.get("seed"),
        "model_calls": calls,
        "versions": {"eblime": __version__, "numpy": np.__version__},
    }
    return replace(
        reference,
        posterior=posterior,
        answers=answers,
        method=NotRefitted(name=posterior.method),
        exhaustive=False,
        provenance=provenance,
        generator=None,
        source=None,
    )
