"""The result of an explanation: posterior, scene and where it came from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._types import FloatArray, RNGLike
from eblime.core.posterior import Posterior
from eblime.methods.regression import as_method
from eblime.protocols import Method, Scene

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Explanation"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Explanation:
    """Why the model gave this score to this input, and how sure that is."""

    posterior: Posterior
    scene: Scene
    target: int  # column of the model's output
    label: str  # its name
    prediction: float  # the model's score for the input itself
    masks: FloatArray  # (N, p) what was asked
    scores: FloatArray  # (N,) what was answered
    weights: FloatArray  # (N,) how much each answer counts
    exhaustive: bool  # all 2^p masks were asked: no sampling error is left
    provenance: Mapping[str, Any]  # settings, seed, versions, model calls, seconds

    @property
    def features(self) -> Sequence[str]:
        """Names of the features."""
        return self.scene.features

    def refit(self, method: str | Method, *, rng: RNGLike = 0) -> Explanation:
        """The same answers through another method, with no further model call."""
        chosen = as_method(method)
        generator = np.random.default_rng(rng)
        fitted = chosen.fit(generator, self.masks, self.scores[:, None], self.weights)
        provenance = {**self.provenance, "method": repr(chosen)}
        return dataclasses.replace(self, posterior=fitted[0], provenance=provenance)

    def table(self, prob: float = 0.95, top: int = 5) -> str:
        """The most important features as text."""
        return self.posterior.table(list(self.features), prob, top)

    def to_frame(self, prob: float = 0.95, k: int = 5) -> pd.DataFrame:
        """One row a feature: feature, mean, sd, low, high, prob_positive, top_k."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("A data frame needs pandas: pip install 'eblime[frame]'.") from error
        post = self.posterior
        low, high = post.interval(prob).T
        return pd.DataFrame(
            {
                "feature": list(self.features),
                "mean": post.mean,
                "sd": post.sd,
                "low": low,
                "high": high,
                "prob_positive": post.prob_positive(),
                "top_k": post.top_k_probability(min(k, post.n_features)),
            }
        )

    def __repr__(self) -> str:
        """One line: what was explained, how well."""
        return (
            f"Explanation(target={self.target}, label={self.label!r}, "
            f"prediction={self.prediction:.4g}, posterior={self.posterior!r})"
        )

    def __str__(self) -> str:
        """What was explained, the five most important features, and a word where one is due."""
        lines = [f"{self.label}: predicted {self.prediction:.4g}", self.table()]
        if self.exhaustive:
            lines.append(f"All {len(self.masks)} masks were asked: no sampling error is left.")
        return "\n".join(lines)
