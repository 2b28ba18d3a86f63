"""`explain`: one prediction, by the explainer that suits the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eblime._types import RNGLike
from eblime.explainers.base import BaseExplainer, check_setting_names
from eblime.explainers.image import ImageExplainer
from eblime.explainers.prompt import PromptExplainer
from eblime.explainers.signal import SignalExplainer
from eblime.explainers.tabular import TabularExplainer
from eblime.explainers.text import TextExplainer
from eblime.explainers.volume import VolumeExplainer
from eblime.models.conversion import is_frame
from eblime.results.explanation import Explanation
from eblime.scores import Target

_SIGNALS = (".wav",)
_VOLUMES = (".nii", ".gz", ".h5", ".hdf5")


def explain(
    model: object,
    x: object,
    background: object = None,
    target: Target = None,
    rng: RNGLike = 0,
    **settings: Any,
) -> Explanation:
    """Explain one prediction of a model: which parts of the input decided it, and how certain.

    The explainer is chosen by the input:

    - with a `background`, `TabularExplainer`: a row of a table;
    - a string: `TextExplainer`; with `sources=` the question of a `PromptExplainer`;
    - an array (H, W), (H, W, C) or (C, H, W), a PIL image or the path of a photo: `ImageExplainer`;
    - an array with the sampling `rate=`, or the path of a .wav file: `SignalExplainer`;
    - an array of three axes without colours, or with a `spacing=` of three: `VolumeExplainer`.

    Parameters
    ----------
    model
        Anything that scores a batch of inputs; see `as_model`.
    x
        The input. A path is a `pathlib.Path`: a string is a text.
    background
        For a row of a table: typical rows, such as the training data.
    target, rng
        As for `ImageExplainer.explain`.
    settings
        Settings of the explainer, such as `segmentation`, `n_masks` and `labels`, and of its
        `explain`, such as `until`.

    Examples
    --------
    >>> import eblime
    >>> score = lambda texts: [0.9 * ("good" in t) / (1 + ("slow" in t)) for t in texts]
    >>> e = eblime.explain(score, "good but slow")
    >>> e.as_list(top=1)[0][0], round(e.as_list(top=1)[0][1], 2)
    ("word 'good'", 0.64)

    A row of a table:

    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal(size=(100, 2))
    >>> e = eblime.explain(lambda rows: rows[:, 0], [3.0, 1.0], table, names=["a", "b"])
    >>> e.features
    ['a = 3', 'b = 1']
    """
    check_setting_names(settings)
    if background is not None:
        settings["background"] = background
    asked = ("until", "max_masks", "max_seconds")
    question = {name: settings.pop(name) for name in asked if name in settings}
    kind = explainer_class(model, x, None, settings)
    found: Explanation = kind(model, **settings).explain(x, target, rng, **question)
    return found


def explainer_class(
    model: object, x: object, explainer: object, settings: Mapping[str, Any]
) -> Any:
    """The class of the explainer that is given, or of the one for the input."""
    if isinstance(model, BaseExplainer):
        raise TypeError(
            "`model` must be a model; got an explainer. Pass it as compare(None, x, "
            "explainer=...), or call its own `explain`."
        )
    if explainer is not None:
        if not isinstance(explainer, BaseExplainer):
            raise TypeError(
                f"`explainer` must be an explainer such as ImageExplainer(model); got "
                f"{type(explainer).__name__}."
            )
        return type(explainer)
    for name, kind in (("background", TabularExplainer), ("sources", PromptExplainer)):
        if name in settings:
            return kind
    if isinstance(x, str):
        return TextExplainer
    shape: Sequence[int] = getattr(x, "shape", ())
    ending = x.suffix.lower() if isinstance(x, Path) else ""
    if "rate" in settings or ending in _SIGNALS:
        return SignalExplainer
    if is_frame(x) or len(shape) == 1 or isinstance(x, (Mapping, list, tuple)):
        raise ValueError(
            "`background` must be given for a row of a table: background=table. For a signal give "
            "the sampling rate: rate=1000."
        )
    solid = len(shape) == 3 and min(shape[0], shape[-1]) > 4
    if np.size(settings.get("spacing", 0)) == 3 or ending in _VOLUMES or solid:
        return VolumeExplainer
    return ImageExplainer
