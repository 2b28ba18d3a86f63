"""What the fields of a stored explanation must be, class by class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eblime.core.empirical import Empirical, PointMass
from eblime.core.evidence import Evidence
from eblime.core.lam import FixedLambda, GridLambda
from eblime.core.mixture import Draws, Mixture
from eblime.core.panels import PanelLambda
from eblime.core.posterior import Posterior
from eblime.core.scalar import Intercept, NoiseVariance
from eblime.core.student import StudentMixture
from eblime.domains.image import ImageScene
from eblime.domains.tabular import TableScene
from eblime.domains.text import TextScene
from eblime.explanation import Explanation
from eblime.file_checks import (
    Layout,
    Rule,
    array_of,
    flag,
    floats,
    instance,
    list_of,
    number,
    one_of,
    optional,
    plain,
    text,
    whole,
)

__all__ = ["LAYOUTS", "MOST_FEATURES"]

MOST_FEATURES = 20_000
_MOST_PIECES = 1 << 22  # of a text
_MOST_MASKS = (1 << 53) - 1
_LEAST = 1e-300  # smallest positive number: its inverse is finite
_LAWS = (FixedLambda, GridLambda, PanelLambda)
_SCENES = (ImageScene, TableScene, TextScene)
_NAMES = list_of(text(), "p", most=MOST_FEATURES)


def _labels_fit(scene: ImageScene) -> bool:
    """Whether every pixel has a label, every label 0 .. p - 1 a pixel, and p is in bounds."""
    axis, shape = scene.channel_axis, scene.shown.shape
    sides = shape if axis is None else tuple(n for k, n in enumerate(shape) if k != axis)
    if scene.labels.shape != sides or scene.labels.min() < 0:
        return False
    return scene.labels.max() < MOST_FEATURES and bool(np.bincount(scene.labels.ravel()).all())


def _same_kind(scene: ImageScene) -> bool:
    """Whether the shown and the hidden image have one shape and dtype."""
    return (scene.shown.shape, scene.shown.dtype) == (scene.hidden.shape, scene.hidden.dtype)


def _is_law(law: GridLambda) -> bool:
    """Whether the nodes increase and the weights add up to one."""
    return bool(np.all(np.diff(law.nodes) > 0) and abs(law.weights.sum() - 1) < 1e-6)


def _is_panelled(law: PanelLambda) -> bool:
    """Whether the panels are in order, do not overlap, and their mass is one."""
    ordered = np.all(law.left < law.right) and np.all(law.right[:-1] <= law.left[1:])
    eight = law.density.shape[1] == 8 and law.density.size
    return bool(ordered and eight and abs(law.weights.sum() - 1) < 1e-6)


def _known_provenance(explanation: Explanation) -> bool:
    """Whether the entries that tables and pages format are numbers."""
    seconds = explanation.provenance.get("seconds")
    return seconds is None or number(low=0.0).holds(seconds)


def _one_size(explanation: Explanation) -> bool:
    """Whether posterior, scene and masks are about the same features and masks."""
    posterior, masks = explanation.posterior, explanation.masks
    features = {posterior.n_features, explanation.scene.n_features, masks.shape[1]}
    return len(features) == 1 and posterior.n_masks == len(masks)


def _finite_mean(posterior: Posterior) -> bool:
    """Whether there is at least one importance, and all of them have finite means."""
    return 0 < posterior.n_features <= MOST_FEATURES and bool(np.isfinite(posterior.mean).all())


LAYOUTS: Mapping[type, Layout] = {
    Draws: Layout(
        fields={
            "beta": floats("n", "p"),
            "sigma2": floats("n", low=0.0),
            "lam": floats("n", above=0.0),
        },
        rules=[Rule(must="at least 2 draws", holds=lambda draws: len(draws.beta) >= 2)],
    ),
    Empirical: Layout(
        fields={"draws": instance(Draws), "source": instance(Mixture)},
        rules=[
            Rule(
                must="draws of as many features as its source",
                holds=lambda law: law.n_features == law.source.n_features,
            )
        ],
    ),
    Evidence: Layout(
        fields={
            "d": floats("r", low=_LEAST, high=1e300),
            "k": floats("r"),
            "floor": number(low=0.0, high=1e300),
            "df": number(low=1e-12),
        },
        rules=[Rule(must="a positive Q", holds=lambda found: found.floor > 0 or found.k.any())],
    ),
    FixedLambda: Layout(fields={"value": number(low=_LEAST)}),
    GridLambda: Layout(
        fields={"nodes": floats("n", low=_LEAST), "weights": floats("n", low=0.0, high=1 + 1e-6)},
        rules=[Rule(must="increasing nodes and weights that sum to one", holds=_is_law)],
    ),
    PanelLambda: Layout(
        fields={
            "left": floats("n", low=-700.0, high=700.0),
            "right": floats("n", low=-700.0, high=700.0),
            "density": floats("n", "nodes", above=0.0),
        },
        rules=[Rule(must="panels in order, 8 nodes each, of mass one", holds=_is_panelled)],
    ),
    StudentMixture: Layout(
        fields={
            "weights": floats("n", low=0.0, high=1 + 1e-6),
            "loc": floats("n", "m"),
            "scale": floats("n", "m", low=0.0),
            "df": number(low=1e-12),
            "unit": number(low=0.0),
            "heavy": array_of("b", 1),
            "offset": number(),
        },
        rules=[
            Rule(must="one law", holds=lambda law: law.loc.shape[1] == 1 == len(law.heavy)),
        ],
    ),
    Mixture: Layout(
        fields={
            "basis": floats("m", "r", low=-1.001, high=1.001),
            "evidence": instance(Evidence),
            "lam": instance(*_LAWS),
            "unit": number(low=0.0),
            "hidden": whole(0, 1),
        },
        rules=[
            Rule(
                must="a basis of at least one feature that fits its evidence",
                holds=lambda law: law.n_features > 0 and law.basis.shape[1] == len(law.evidence.d),
            )
        ],
    ),
    Intercept: Layout(fields={"law": instance(StudentMixture)}),
    NoiseVariance: Layout(fields={"mixture": instance(Mixture)}),
    PointMass: Layout(fields={"mean": floats("p"), "method": text()}),
    Posterior: Layout(
        fields={
            "law": instance(Mixture, Empirical, PointMass),
            "lam": instance(*_LAWS),
            "intercept": number(),
            "intercept_law": optional(instance(Intercept)),
            "noise": optional(instance(NoiseVariance)),
            "r2": number(high=1.0, nan=True),
            "ess": number(low=0.0),
            "n_masks": whole(1, _MOST_MASKS),
            "method": text(),
        },
        rules=[
            Rule(must=f"1 to {MOST_FEATURES} features with finite means", holds=_finite_mean),
            Rule(
                must="a posterior of sigma^2 unless it is a point estimate",
                holds=lambda posterior: posterior.has_spread == (posterior.noise is not None),
            ),
        ],
    ),
    ImageScene: Layout(
        fields={
            "shown": array_of("buif", 2, 3),
            "hidden": array_of("buif", 2, 3),
            "labels": array_of("i", 2),
            "channel_axis": one_of(None, 0, 2),
        },
        rules=[
            Rule(
                must="a channel axis where the image has three axes",
                holds=lambda scene: (scene.shown.ndim == 3) == (scene.channel_axis is not None),
            ),
            Rule(must="a hidden image of the shape and dtype of the shown one", holds=_same_kind),
            Rule(
                must=f"a label 0 .. p - 1 for each pixel, p <= {MOST_FEATURES}", holds=_labels_fit
            ),
        ],
    ),
    TableScene: Layout(fields={"features": _NAMES, "columns": _NAMES, "values": _NAMES}),
    TextScene: Layout(
        fields={
            "features": _NAMES,
            "pieces": list_of(text(), "n", most=_MOST_PIECES),
            "owners": list_of(whole(-1, MOST_FEATURES - 1), "n", most=_MOST_PIECES),
            "mask": text(),
        },
        rules=[
            Rule(
                must="pieces that belong to its features",
                holds=lambda scene: max(scene.owners, default=-1) < scene.n_features,
            )
        ],
    ),
    Explanation: Layout(
        fields={
            "posterior": instance(Posterior),
            "scene": instance(*_SCENES),
            "target": whole(0, _MOST_MASKS),
            "label": text(),
            "prediction": number(),
            "masks": floats("n", "p"),
            "scores": floats("n"),
            "weights": floats("n", low=0.0),
            "exhaustive": flag(),
            "provenance": plain(),
        },
        rules=[
            Rule(must="one number of features and one of masks throughout", holds=_one_size),
            Rule(must="a positive weight", holds=lambda found: bool(found.weights.any())),
            Rule(must="a number of seconds in its provenance", holds=_known_provenance),
        ],
    ),
}
