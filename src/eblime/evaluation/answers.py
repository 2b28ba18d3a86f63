"""What a model answers for every mask of an image: after that a study of sampling asks nothing.

With at most 13 superpixels there are 8,192 masks. Their answers are kept in the cache folder, so
that truths are exact and every design, method and seed draws from the same table.
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
from eblime.explainers.image import ImageExplainer
from eblime.kernels import ExponentialKernel

__all__ = ["Answers", "answer_all", "kept_answers"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """Scores of all 2^p masks; row k shows feature j where bit j of k is set."""

    scores: FloatArray  # (2^p,)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.scores).bit_length() - 1

    def whole(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """All masks, their scores and weights."""
        masks = exhaustive(np.random.default_rng(0), 0, self.n_features)
        return masks, self.scores, ExponentialKernel()(masks)

    def sample(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Masks by the toss of a coin, as lime draws them, their scores and weights."""
        masks = bernoulli(rng, n, self.n_features)
        places = (masks @ 2.0 ** np.arange(self.n_features)).astype(np.intp)
        return masks, self.scores[places], ExponentialKernel()(masks)


def answer_all(
    model: Any, image: NDArray[Any], labels: NDArray[np.intp], target: int, hide: Any = 0
) -> Answers:
    """Ask a model about every mask of an image."""
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
    return Answers(scores=explainer.explain(image, target=target).scores)


def kept_answers(
    study: str, name: str, identity: Sequence[Any], ask: Callable[[], Answers]
) -> Answers:
    """Answers from the cache; asked for and kept where they are not there.

    `identity` is what they depend on: the image, its superpixels, the model's weights. Answers to
    anything else are never taken for these.
    """
    digest = hashlib.sha256()
    for part in identity:
        array = hasattr(part, "shape")
        digest.update(np.ascontiguousarray(part).tobytes() if array else str(part).encode())
    path = cache_folder() / "answers" / study / f"{name}-{digest.hexdigest()[:12]}.npy"
    if path.exists():
        return Answers(scores=np.load(path, allow_pickle=False))
    found = ask()
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.save(buffer, found.scores, allow_pickle=False)
    write_whole(path, buffer.getvalue())
    return found
