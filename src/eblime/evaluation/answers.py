"""The scores of every mask of an image: later studies of sampling call no model.

With at most 13 superpixels there are 8,192 masks. Their scores are stored in the cache folder. The
truth is then exact, and every design, method and seed draws from the same table.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime._files import write_whole
from eblime._types import FloatArray
from eblime.datasets.cache import cache_folder
from eblime.designs.masks import bernoulli, exhaustive
from eblime.evaluation.games import game_explainer
from eblime.explainers.general import Explainer
from eblime.explainers.image import ImageExplainer
from eblime.kernels import ExponentialKernel

__all__ = ["AnswerTable", "ask_all_masks", "cached_answers"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerTable:
    """Scores of all 2^p masks; mask k shows feature j if bit j of k is set."""

    scores: FloatArray  # (2^p,)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.scores).bit_length() - 1

    def whole(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """All masks, their scores and weights."""
        masks = exhaustive(np.random.default_rng(0), 0, self.n_features)
        return masks, self.scores, ExponentialKernel()(masks)

    def question(self, n: int) -> tuple[Explainer, int, int]:
        """An explainer that asks n masks of the table, its input and its target."""
        return game_explainer(self.look_up, n_masks=n), self.n_features, 0

    def look_up(self, masks: FloatArray) -> FloatArray:
        """Scores of masks, (n, p) -> (n,)."""
        numbers = (masks @ 2.0 ** np.arange(self.n_features)).astype(np.intp)
        return np.asarray(self.scores[numbers])

    def sample(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """N random masks, drawn as in lime (each bit is a fair coin), their scores and weights."""
        masks = bernoulli(rng, n, self.n_features)
        return masks, self.look_up(masks), ExponentialKernel()(masks)


def ask_all_masks(
    model: Any, image: NDArray[Any], labels: NDArray[np.intp], target: int, hide: Any = 0
) -> AnswerTable:
    """Score every mask of an image with a model."""
    count = 2 ** (int(labels.max()) + 1)
    explainer = ImageExplainer(
        model,
        segmentation=labels,
        hide=hide,
        n_masks=count,
        design="exhaustive",
        method="lime",
        progress=False,
    )
    return AnswerTable(scores=explainer.explain(image, target=target).scores)


def cached_answers(
    study: str, name: str, identity: Sequence[Any], ask: Callable[[], AnswerTable]
) -> AnswerTable:
    """Read a table from the cache; if it is missing, call `ask` and store the result.

    `identity` holds everything that the scores depend on: the image, its superpixels, the model's
    weights. A table is read only if all of it is the same.
    """
    digest = hashlib.sha256()
    for part in identity:
        array = hasattr(part, "shape")
        digest.update(np.ascontiguousarray(part).tobytes() if array else str(part).encode())
    path = cache_folder() / "answers" / study / f"{name}-{digest.hexdigest()[:12]}.npy"
    if path.exists():
        return AnswerTable(scores=np.load(path, allow_pickle=False))
    table = ask()
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.save(buffer, table.scores, allow_pickle=False)
    write_whole(path, buffer.getvalue())
    return table
