"""A series, a text and models of them, for tests and for worker processes."""

import numpy as np

import eblime

_STEPS = np.arange(60)
PULSE = np.exp(-(((_STEPS - 23) / 3.0) ** 2)) - 0.6 * np.exp(-(((_STEPS - 46) / 3.0) ** 2))
TEXT = "one two three four five six seven eight nine ten"
SETTINGS = {"window": 6}


def peak(batch):
    """The height of the pulse, pulled down by the dip and by their product."""
    high, low = batch[:, 20:27].max(axis=1), batch[:, 43:50].min(axis=1)
    return high + 0.5 * low + 0.2 * high * low


def score(texts):
    """A score of words, and of one pair of them."""
    return [("two" in t) + 0.5 * ("seven" in t) - 0.3 * ("one" in t and "ten" in t) for t in texts]


def series_explainer(**settings):
    """An explainer of series."""
    settings = {"n_masks": 200} | settings
    return eblime.Explainer(peak, "series", settings=SETTINGS, **settings)


def text_explainer(**settings):
    """An explainer of texts."""
    return eblime.TextExplainer(score, **({"n_masks": 200} | settings))


def all_new_parts():
    """An explainer of series whose method, design and kernel come from the package too."""
    return series_explainer(method="normal", design="rounds", kernel="share")
