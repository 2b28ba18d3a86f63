"""`SignalExplainer`: signals, by windows, channels, frequency bands or tiles of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eblime._checks import check_choice, check_count, check_number
from eblime.domains.arrays import Segmentation, check_cut
from eblime.domains.masked import MaskedSubject
from eblime.domains.signal.scene import HIDES, SEGMENTATIONS, Hide, read_signal
from eblime.explainers.base import BaseExplainer
from eblime.models.signal import LAYOUTS, SignalModel


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SignalExplainer(BaseExplainer):
    """Explains a model's prediction for a signal, by windows, channels or frequencies.

    Parameters
    ----------
    model
        Anything that scores a batch of signals: a classifier of scikit-learn, aeon or sktime, a
        `torch.nn.Module`, an ONNX file, a function, ... (see `as_model`).
    segmentation
        What the features are. "windows": 20 equal stretches of time over all channels;
        ("windows", {"n": 40}) or ("windows", {"width": 25}), in samples, has others. "channels":
        whole channels. "cells": windows of each channel, with `n` or `width`. "bands": 8 frequency
        bands of equal width, or ("bands", {"n": 4}), or ("bands", {"edges": [10, 50]}). "tiles":
        the frequency bands of each window, ("tiles", {"windows": 10, "bands": 6}) or with `edges`.
        "changes": stretches between changes of the signal (extra `signal`), with `n`, `width` and
        `kernel`. Or an array of labels, (T,) or (C, T), or a function from the signal to one.
    hide
        What a hidden part shows. "bridge": a straight line from one end of its window to the other;
        a hidden band or tile is taken out. "mean": the mean of the part. 0 or another number.
        "noise": with the spectrum of the channel. A signal of the same shape, or several,
        (m, C, T): the score of a mask is then the mean over them, with m model calls. Or a
        function from the signal (C, T) to one of these.
    fade
        Samples over which a shown part fades into a hidden one, so that there is no jump. For tiles
        at least one period of the narrowest band's width, if half a window has room for it.
    rate
        Samples per second, if the signal comes without times; used in the names of features. From
        1e6 on times are in us and frequencies in MHz.
    channels
        Names of the channels. None takes the columns of a frame, or numbers.
    layout
        The shape of the batches that the model gets: "flat" (n, C x T), as in scikit-learn, "first"
        (n, C, T), as in aeon and torch, or "last" (n, T, C). "auto" keeps the first that works, and
        `provenance["input"]["layout"]` of an explanation says which.
    key
        Name of the array in a .mat file that has several.
    n_masks, design, kernel, method, progress, labels, calls, cache
        See `eblime.explainers.base.BaseExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> signal = np.sin(np.arange(200) / 5)
    >>> loudest = lambda batch: batch[:, 40:50].max(axis=1)
    >>> explainer = eblime.SignalExplainer(loudest, ("windows", {"n": 10}), hide=0, rate=100)
    >>> e = explainer.explain(signal)
    >>> e.as_list(top=1)[0][0], e.provenance["input"]["layout"]
    ('0.40-0.60 s', '(n, T)')
    """

    segmentation: Segmentation = "windows"
    hide: Hide = "bridge"
    fade: int = 4
    rate: float | None = None
    channels: Sequence[str] | None = None
    layout: str = "auto"
    key: str | None = None

    domain = "signal"
    about = ("segmentation", "hide", "fade")

    def __post_init__(self) -> None:
        sides = "(T,) or (C, T),"
        check_cut(self.segmentation, self.hide, SEGMENTATIONS, HIDES, sides, (1, 2))
        check_count("fade", self.fade, minimum=0)
        if self.rate is not None:
            check_number("rate", self.rate)
        check_choice("layout", self.layout, ("auto", *LAYOUTS))
        self._make_loop()
        model = SignalModel.wrap(self.model, self.layout)
        self._normalise(model=model, loop=replace(self.loop, model=model))

    def subject(self, x: Any) -> MaskedSubject:
        """Read a signal and cut it into features.

        Parameters
        ----------
        x
            An array (T,) or (C, T); a series or a frame with one column per channel, whose time
            index or column "time" is used for names; or the path of a .wav, .csv, .npy or .mat
            file.
        """
        own = {name: value for name, value in self.own.items() if name != "layout"}
        return MaskedSubject(scene=read_signal(x, **own))
