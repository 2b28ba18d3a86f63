"""One self-contained page about one or several explanations: nothing is fetched, nothing sent."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from eblime._checks import check_count
from eblime._files import write_whole
from eblime._repr import name_of
from eblime._table import format_chance
from eblime._text import printable
from eblime._types import BoolArray, FloatArray, IntArray, Record
from eblime.kernels import ExponentialKernel, kernel_of, uniform
from eblime.plot.maps import truth_share
from eblime.plot.style import PALE
from eblime.posterior import Posterior
from eblime.protocols import ScalarLaw
from eblime.reporting.render import render_page
from eblime.reporting.views import MOST, as_lines, figure_data, input_view
from eblime.results.citations import Citations
from eblime.results.comparison import Comparison
from eblime.results.estimand import describe_estimand, plain_estimand
from eblime.results.explanation import Explanation
from eblime.results.indices import every_index
from eblime.results.notes import (
    barely_moves,
    cautions,
    fit_sentence,
    is_poor_fit,
    notes,
    nothing_certain,
    stop_sentence,
)
from eblime.results.prediction import known_answers, spread_of

LEVELS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
_MOST_SWITCHED = 64  # features of an explanation whose index the reader can switch
_POINTS = 41  # points of a density
_MOST_HIDDEN = 128  # features of an explanation whose parts the reader can hide
_MOST_KNOWN = 2_000  # answers of the model on a page


def report(
    explanations: Explanation | Sequence[Explanation] | Comparison,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    k: int = 5,
    truth: BoolArray | None = None,
) -> str:
    """One self-contained page about one or several explanations, written to `path` if given.

    Parameters
    ----------
    explanations
        One explanation, or several in reading order; or a comparison, whose table comes first.
    path
        Where to write the page; None only returns it.
    title
        Heading of the page; None derives it from the explanations.
    k
        The k of P(top k).
    truth
        A mask of the image's size, (H, W), to outline, such as the known place of a defect.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import eblime
    >>> model = lambda texts: [float("good" in text) for text in texts]
    >>> explanation = eblime.TextExplainer(model).explain("a good day")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = eblime.report([explanation, explanation], Path(folder, "days.html"))
    ...     Path(folder, "days.html").read_text(encoding="utf8")[:15]
    '<!DOCTYPE html>'
    """
    compared = explanations if isinstance(explanations, Comparison) else None
    given: Any = compared.explanations.values() if compared is not None else explanations
    listed = list(given) if isinstance(given, Iterable) else [given]
    if not listed or not all(isinstance(entry, Explanation) for entry in listed):
        kinds = sorted({type(entry).__name__ for entry in listed})
        raise TypeError(
            "`explanations` must be an Explanation or a list with at least one; "
            f"got {', '.join(kinds) or 'an empty list'}."
        )
    check_count("k", k)
    page = render_page(
        "report.html.j2",
        title=title,
        comparison=None if compared is None else _comparison(compared, k),
        sections=[_section(entry, k, truth) for entry in listed],
        names=[None] * len(listed) if compared is None else compared.methods,
    )
    if path is not None:
        write_whole(Path(path).resolve(), page.encode())
    return page


def citations(
    cited: Citations, path: str | os.PathLike[str] | None = None, title: str | None = None
) -> str:
    """The page of an answer and the sources of its sentences."""
    names, found = list(cited.sources), [one.explanation for one in cited.sentences]
    page = render_page(
        "citations.html.j2",
        scripts=(),
        heading=title or cited.scene.question or "The sources of an answer",
        cited=cited,
        others=[name for name in found[0].features if name not in names],
        poor=[number for number, e in enumerate(found, start=1) if is_poor_fit(e)],
        settings=settings(found[0]),
        estimand=found[0].estimand,
        chance=format_chance,
        lines=as_lines,
    )
    if path is not None:
        write_whole(Path(path).resolve(), page.encode())
    return page


def _comparison(compared: Comparison, k: int) -> Record:
    head, *rows = compared.sensitivity_cells(k)
    return {
        "picture": figure_data(compared.pictures(k), 80),
        "head": head,
        "rows": rows,
        "notes": compared.notes(k),
        "of": compared,
    }


def _section(explanation: Explanation, k: int, truth: BoolArray | None = None) -> Record:
    p = explanation.posterior.n_features
    return {
        "of": explanation,
        "fit": fit_sentence(explanation),
        "poor": is_poor_fit(explanation),
        "notes": notes(explanation),
        "view": input_view(explanation, truth),
        "truth": "" if truth is None else truth_share(explanation, truth, k),
        "cautions": [*cautions(explanation)],
        "nothing": nothing_certain(explanation),
        "left_out": max(0, p - MOST),
        "settings": settings(explanation),
        "meaning": plain_estimand(explanation),
        "index": getattr(explanation.method, "index", None),
        "data": page_data(explanation, min(k, p)),
    }


def page_data(explanation: Explanation, k: int) -> Record:
    """Everything the page's controls need, as plain lists, the most important feature first.

    `low` and `high` have one row per feature and one entry per level. `from`, `to` and `density`
    are the marginal between its 0.2 and 99.8 % quantiles. A point estimate has only its means.
    `indices` has the same numbers for the other indices that the reader can switch to.
    """
    order = explanation.posterior.order()[:MOST]
    found = {"label": printable(explanation.label), "levels": LEVELS, "k": k}
    found["strength"] = PALE if barely_moves(explanation.posterior) else 1
    found |= _numbers(explanation, explanation.posterior, order, k)
    if np.isfinite(explanation.posterior.mean).all():
        found["fit"] = _what_if(explanation)
    indices = every_index(explanation) if len(order) <= _MOST_SWITCHED else {}
    if indices:
        found["indices"] = {
            name: {"words": describe_estimand(explanation, post)}
            | _numbers(explanation, post, post.order(), k)
            for name, post in indices.items()
        }
    return found


def _what_if(explanation: Explanation) -> Record:
    """What the page needs to predict masks and to know the answers; empty for many features.

    `numbers` has, in units of `unit`, the means, the mean mask (without unit), the lower triangle
    of the covariance, and the answers minus the prediction, as 32-bit floats; `masks` has bits.
    """
    post, p = explanation.posterior, explanation.answers.n_features
    if p > _MOST_HIDDEN:
        return {}
    centre, cov, variance = spread_of(explanation)
    masks, scores = known_answers(explanation)
    kept = np.flatnonzero(((masks == 0) | (masks == 1)).all(axis=1))[:_MOST_KNOWN]
    away = scores[kept] - explanation.prediction
    unit = float(max(np.abs(away).max(), np.abs(post.mean).max())) or 1.0
    lower = (cov / unit / unit)[np.tril_indices(p)]
    numbers = np.concatenate([post.mean / unit, centre, lower, away / unit]).astype("<f4")
    fixed, read = explanation.answers.fixed, explanation.provenance.get("input") or {}
    return {
        "mean_colour": read.get("hide") == "mean",
        "z": _short(-norm.ppf([(1 - level) / 2 for level in LEVELS]), 9),
        "intercept": post.intercept,
        "prediction": explanation.prediction,
        "variance": variance,
        "unit": unit,
        "fixed": [] if fixed is None else np.flatnonzero(fixed).tolist(),
        "numbers": b64encode(numbers.tobytes()).decode(),
        "masks": b64encode(np.packbits(masks[kept].astype(bool)).tobytes()).decode(),
    }


def _numbers(explanation: Explanation, post: Posterior, order: IntArray, k: int) -> Record:
    names = explanation.features
    found: Record = {
        "index": [int(j) for j in order],
        "name": [printable(names[j]) for j in order],
        "mean": _short(post.mean[order], 6),
    }
    values = explanation.details().get("value")
    if values is not None:
        found["value"] = [printable(values[j]) for j in order]
    scene: Any = explanation.scene
    if scene.domain == "volume" or getattr(scene, "spacing", None) is not None:
        places = scene.places("voxels")
        found["place"] = [places[j] for j in order]
    return found | _spread(post, order, k) if post.has_spread else found


def _spread(post: Posterior, order: IntArray, k: int) -> Record:
    """Intervals, probabilities and densities; empty if there are too few masks for them."""
    tails = np.array([(1 - level) / 2 for level in LEVELS])
    chosen = post.select(order)
    quantiles = chosen.quantile(np.concatenate([tails, 1 - tails, [0.002, 0.998]]))
    sd, positive = chosen.sd, chosen.prob_positive()
    if not all(np.isfinite(values).all() for values in (quantiles, sd, positive)):
        return {}
    low, high = quantiles[: len(LEVELS)], quantiles[len(LEVELS) : -2]
    # as many significant digits as distinguish the ends of the narrowest interval
    span, size = np.abs(quantiles[-1] - quantiles[-2]), np.abs(quantiles).max(axis=0)
    ratio = np.divide(size, span, out=np.ones_like(size), where=span > 0).max()
    digits = int(np.clip(np.ceil(np.log10(max(ratio, 1.0))) + 4, 4, 15))
    return {
        "sd": _short(sd),
        "positive": _short(positive, 3),
        "top": _short(post.top_k_probability(k)[order], 3),
        "low": _short(low.T, digits),
        "high": _short(high.T, digits),
        "from": _short(quantiles[-2], digits),
        "to": _short(quantiles[-1], digits),
        "density": _densities(chosen, quantiles[-2], quantiles[-1]),
    }


def _densities(post: Posterior, start: FloatArray, end: FloatArray) -> list[list[int]]:
    """Marginal densities between two ends, as integers with 1000 at the highest point."""
    if not (start < end).all():  # a score that never changed: every importance is zero
        return []
    x = np.linspace(start, end, _POINTS)
    # the half-Cauchy prior leaves a spike without mass at zero
    x[x == 0] = 1e-12 * (end - start).max()
    height = post.pdf(x)
    highest = height.max(axis=0)
    if not ((highest > 0) & (highest < np.inf)).all():  # too narrow or too wide to draw
        return []
    return [[int(v) for v in np.round(1000 * (column / column.max()))] for column in height.T]


def _short(values: FloatArray, digits: int = 4) -> object:
    """Nested lists of numbers with a few significant digits."""
    if values.ndim > 1:
        return [_short(row, digits) for row in values]
    return [float(f"{value:.{digits}g}") for value in values]


_DESIGNS = {
    "bernoulli": "each feature is shown with probability one half",
    "orthogonal": "balanced, each mask followed by its opposite",
    "leverage": "random pairs of opposites, all sizes equally often, with weights that correct it",
    "adaptive": "pairs of opposites, chosen in rounds where they narrow the intervals most",
    "exhaustive": "all possible masks",
    "sizes": "first how many features to hide, then which ones, both uniformly",
}


def settings(explanation: Explanation) -> list[tuple[str, str]]:
    """The settings as pairs of a heading and a sentence, in reading order."""
    post, made = explanation.posterior, explanation.provenance
    design = "exhaustive" if explanation.exhaustive else made.get("design", "unknown")
    masks = _DESIGNS.get(name_of(design)) or describe_settings(design)
    kernel = describe_kernel(made.get("kernel", "unknown"), explanation.answers.n_varying)
    reading, seed, seconds = (made.get(name) for name in ("input", "seed", "seconds"))
    phrases, versions = _phrases(reading), made.get("versions")
    time = "" if seconds is None else f" in {seconds:.1f} s"
    pairs: list[tuple[str, str | None]] = [
        ("Features", f"{post.n_features}: {phrases}" if phrases else str(post.n_features)),
        ("Masks", f"{post.n_masks}: {masks}"),
        ("Weights", f"{kernel}; effective sample size {post.ess:.1f}"),
        ("Method", f"{post.method}: {describe_settings(made.get('method', 'unknown'))}"),
        ("Ridge parameter", _ridge(post.extras.get("lam"))),
        ("Seed", "none: another run draws other masks" if seed is None else str(seed)),
        ("Model calls", f"{made.get('model_calls', 'unknown')} inputs{time}"),
        ("Stopped", stop_sentence(explanation) or None),
    ]
    if isinstance(versions, Mapping):
        pairs.append(("Versions", ", ".join(f"{name} {v}" for name, v in versions.items())))
    return [(heading, sentence) for heading, sentence in pairs if sentence is not None]


def _ridge(lam: ScalarLaw | None) -> str | None:
    """The posterior of lambda in a few words; None for a method without a ridge parameter."""
    if lam is None:
        return None
    low, high = lam.quantile([0.025, 0.975])
    if low == high:
        return f"fixed at {low:.4g}"
    return f"median {lam.median:.3g}, 95 % from {low:.3g} to {high:.3g}"


def describe_kernel(record: object, n_features: int) -> str:
    """How masks are weighted, from the record of the kernel."""
    kernel = kernel_of(record)
    if isinstance(kernel, ExponentialKernel):
        return kernel.describe(n_features)
    return "all masks count the same" if kernel is uniform else name_of(record)


def describe_settings(record: object) -> str:
    """The settings in a record, as phrases separated by commas; its name without settings."""
    settings = record.get("settings") if isinstance(record, Mapping) else None
    return name_of(record) if settings is None else _phrases(settings) or "no settings"


def _phrases(settings: Any) -> str:
    """One phrase per setting that is not None; empty if these are no settings."""
    if not isinstance(settings, Mapping):
        return ""
    return ", ".join(filter(None, (_phrase(str(name), settings[name]) for name in settings)))


def _phrase(name: str, value: object) -> str:
    text, inner = name.replace("_", " "), ""
    if isinstance(value, bool) or value is None:
        return "" if value is None else text if value else f"no {text}"
    if isinstance(value, Mapping):
        inner, value = _phrases(value.get("settings")), name_of(value)
    return f"{text} {_number(value) or 'nothing'}" + (f" ({inner})" if inner else "")


def _number(value: object) -> str:
    """A number in four significant digits; other values unchanged."""
    return f"{value:.4g}" if isinstance(value, (int, float)) and abs(value) < 1e300 else str(value)
