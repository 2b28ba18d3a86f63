"""Explanations for other programs: data frames, JSON, ArviZ, shap and shapiq."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from eblime._checks import check_choice, check_count, check_level
from eblime._types import FloatArray, RNGLike
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd
    import shap
    import shapiq

__all__ = [
    *("JSON_SCHEMA", "one_to_shap", "to_arviz", "to_dict", "to_frame", "to_json", "to_shap"),
    "to_shapiq",
]

JSON_SCHEMA = "eblime.explanation/1"
_SHAPIQ = {"banzhaf": ("BV", "BII"), "shapley": ("SV", "SII")}  # shapiq's names, by order


@runtime_checkable
class Pieced(Protocol):
    """A scene that is a text: pieces in their order, some of which are features."""

    features: Sequence[str]
    pieces: Sequence[str]  # joined, they are the text
    owners: Sequence[int]  # feature of each piece, -1 for a separator


def to_dict(explanation: Explanation, prob: float = 0.95, k: int = 5) -> dict[str, Any]:
    """The explanation's numbers as plain dictionaries; the layout is in docs/reference/json.md.

    Numbers that a point estimate does not have, and those that are not finite, are None.
    """
    level = check_level("prob", prob)
    post = explanation.posterior
    return {
        "schema": JSON_SCHEMA,
        "target": explanation.target,
        "label": explanation.label,
        "prediction": _number(explanation.prediction),
        "prob": level,
        "k": k,
        "method": post.method,
        "n_masks": post.n_masks,
        "exhaustive": explanation.exhaustive,
        "r2": _number(post.r2),
        "r2_held_out": None if post.r2_held_out is None else _number(post.r2_held_out),
        "ess": _number(post.ess),
        "intercept": _number(post.intercept),
        "estimand": post.estimand,
        "lambda": _lambda(post, level),
        "features": _features(explanation, level, k),
        "provenance": dict(explanation.provenance),
    }


def _features(explanation: Explanation, level: float, k: int) -> list[dict[str, Any]]:
    """The numbers and details of each feature."""
    columns = {"mean": explanation.posterior.mean, **_columns(explanation.posterior, level, k)}
    details = explanation.details()
    return [
        {"name": str(feature)}
        | {name: _number(values[j]) for name, values in columns.items()}
        | {name: values[j] for name, values in details.items()}
        for j, feature in enumerate(explanation.features)
    ]


def _columns(post: Posterior, level: float, k: int) -> dict[str, FloatArray]:
    """Spread, interval and probabilities of each importance; NaN for a point estimate."""
    check_count("k", k)
    names = ("sd", "low", "high", "prob_positive", "top_k")
    if not post.has_spread:
        return dict.fromkeys(names, np.full(post.n_features, np.nan))
    found = post.columns(level) | {"top_k": post.top_k_probability(min(k, post.n_features))}
    return {name: found[name] for name in names}


def to_json(explanation: Explanation, prob: float = 0.95, k: int = 5) -> str:
    """The explanation's numbers as JSON text that UTF-8 can hold; see `to_dict`."""
    found = to_dict(explanation, prob, k)
    text = json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False)
    return re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", text)


def to_frame(explanation: Explanation, prob: float = 0.95, k: int = 5) -> pd.DataFrame:
    """One row per feature; see `Explanation.to_frame`."""
    from eblime._pandas import pd

    level = check_level("prob", prob)
    post = explanation.posterior
    columns: dict[str, Any] = {"feature": list(explanation.features), "mean": post.mean}
    columns |= _columns(post, level, k)
    columns |= explanation.details()
    frame = {name: _encodable(values) for name, values in columns.items()}
    return pd.DataFrame(frame)


def _encodable(values: Any) -> Any:
    """Values of a column; characters that UTF-8 cannot hold become question marks."""
    if isinstance(values, list):
        return [v.encode("utf8", "replace").decode() if isinstance(v, str) else v for v in values]
    return values


def to_arviz(explanation: Explanation, n_draws: int = 4_000, rng: RNGLike = 0) -> Any:
    """Draws for ArviZ: one chain of i.i.d. (beta, sigma2, lam), beta by feature.

    An InferenceData with ArviZ before 1.0, a DataTree since.
    """
    try:
        import arviz
    except ImportError as error:
        raise ImportError("`to_arviz` needs ArviZ: pip install 'eblime[arviz]'.") from error
    draws = explanation.posterior.draw(n_draws, rng)
    posterior = {"beta": draws.beta[None]}
    posterior |= {name: values[None] for name, values in draws.extras.items()}
    observed = {"scores": explanation.scores}
    coords, dims = {"feature": list(explanation.features)}, {"beta": ["feature"]}
    if int(arviz.__version__.split(".")[0]) >= 1:
        groups = {"posterior": posterior, "observed_data": observed}
        return arviz.from_dict(groups, coords=coords, dims=dims)
    return arviz.from_dict(posterior=posterior, observed_data=observed, coords=coords, dims=dims)


def to_shap(
    explanations: Iterable[Explanation | Mapping[int, Explanation]], *, prob: float = 0.95
) -> shap.Explanation:
    """Several explanations with the same features as one `shap.Explanation`; it needs shap.

    Parameters
    ----------
    explanations
        One explanation for each input, or what `explain_targets` returns for each input. All
        must have the same features, such as the columns of a table.
    prob
        Probability of the intervals, which are the bounds.

    Returns
    -------
    shap.Explanation
        `values` has shape (inputs, features), or (inputs, features, targets). The fields of each
        input are those of `Explanation.to_shap`.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> explainer = eblime.TabularExplainer(lambda x: 2 * x[:, 0] - x[:, 2], rows, n_masks=50)
    >>> sv = eblime.to_shap(explainer.explain(row, rng=0) for row in rows[:4])
    >>> sv.shape, int(sv.abs.mean(0).values.argmax())
    ((4, 3), 0)
    """
    if isinstance(explanations, (Explanation, Mapping)):
        raise TypeError(
            "`explanations` must be a list with one entry per input; got one entry. Put it into a "
            "list, or use `explanation.to_shap()` for one explanation."
        )
    entries: list[Any] = list(explanations)
    several = bool(entries) and all(isinstance(entry, Mapping) for entry in entries)
    if several:
        targets = list(entries[0])
        table = [_of_targets(entry, targets, k) for k, entry in enumerate(entries)]
    else:
        table = [[entry] for entry in entries]
    found = [[_checked_shap(e, prob) for e in row] for row in table]
    return _stacked(found, [e.label for e in table[0]] if several else None)


def _of_targets(entry: Any, targets: list[int], number: int) -> list[Explanation]:
    """The explanations of one input, in the order of the first input's targets."""
    if set(entry) != set(targets):
        raise ValueError(
            f"All inputs must have the same targets; the first has {sorted(targets)}, input "
            f"{number} has {sorted(entry)}. Give `explain_targets` a list of targets."
        )
    return [entry[target] for target in targets]


def _checked_shap(entry: Any, prob: float) -> shap.Explanation:
    """One explanation for shap; anything else is refused."""
    if not isinstance(entry, Explanation):
        raise TypeError(
            "`explanations` must be explanations, or dictionaries from targets to explanations; "
            f"got {type(entry).__name__}."
        )
    return one_to_shap(entry, prob)


def _stacked(found: list[list[shap.Explanation]], labels: list[str] | None) -> shap.Explanation:
    """One object from a table of them: a row for each input, a column for each target."""
    if not found:
        raise ValueError("`explanations` must have at least one explanation.")
    import shap

    names = found[0][0].feature_names
    for k, row in enumerate(found):
        if any(one.feature_names != names for one in row):
            raise ValueError(f"All explanations must have the same features; input {k} differs.")

    def stack(field: str) -> Any:
        """A field of all explanations, (inputs, ..., targets), or (inputs, ...) without targets."""
        whole = np.stack([np.stack([getattr(one, field) for one in row], -1) for row in found])
        return whole[..., 0] if labels is None else whole

    certain = all(one.lower_bounds is not None for row in found for one in row)
    bounds = ("lower_bounds", "upper_bounds") if certain else ()
    return shap.Explanation(
        values=stack("values"),
        base_values=stack("base_values"),
        data=np.stack([row[0].data for row in found]),
        feature_names=names,
        output_names=labels,
        **{field: stack(field) for field in bounds},
    )


def one_to_shap(explanation: Explanation, prob: float = 0.95) -> shap.Explanation:
    """One explanation for shap; see `Explanation.to_shap`.

    Values are importances times the input as the regression sees it, which is one for a feature
    that is shown. So `base_values + values.sum()` is what the linear fit predicts for the input.
    """
    try:
        import shap
    except ImportError as error:
        raise ImportError("`to_shap` needs shap: pip install 'eblime[shap]'.") from error
    post, shown = explanation.posterior, _itself(explanation)
    level = check_level("prob", prob)
    bounds: dict[str, FloatArray] = {}
    if post.has_spread:
        ends = post.interval(level) * shown[:, None]
        bounds = {"lower_bounds": ends.min(axis=1), "upper_bounds": ends.max(axis=1)}
    names, data = _names_and_data(explanation)
    return shap.Explanation(
        values=post.mean * shown,
        base_values=post.intercept,
        data=data,
        feature_names=names,
        **bounds,
    )


def to_shapiq(
    explanation: Explanation, index: str = "shapley", order: int = 1
) -> shapiq.InteractionValues:
    """The posterior means as `shapiq.InteractionValues`; see `Explanation.to_shapiq`."""
    check_choice("index", index, tuple(_SHAPIQ))
    if order not in (1, 2):
        raise ValueError(f"`order` must be 1 or 2; got {order!r}.")
    try:
        import shapiq
    except ImportError as error:
        raise ImportError("`to_shapiq` needs shapiq: pip install 'eblime[shapiq]'.") from error
    answers = explanation.answers
    single = explanation.importances(index).mean
    nothing = answers.hidden  # a row has no such input: its Shapley values say what is left
    if nothing is None:
        nothing = explanation.importances("shapley").intercept
    values: dict[tuple[int, ...], float] = {(): float(nothing)}
    values |= {(j,): float(mean) for j, mean in enumerate(single)}
    if order == 2:
        pairs = explanation.interactions(index)
        for (i, j), mean in zip(pairs.pairs.tolist(), pairs.posterior.mean, strict=True):
            values[i, j] = float(mean)
    return shapiq.InteractionValues(
        values=np.array(list(values.values())),
        interaction_lookup={players: k for k, players in enumerate(values)},
        index=_SHAPIQ[index][order - 1],
        min_order=0,
        max_order=order,
        n_players=answers.n_features,
        estimated=not explanation.exhaustive,
        estimation_budget=answers.n_masks,
        baseline_value=values[()],
    )


def _itself(explanation: Explanation) -> FloatArray:
    """The input as the regression sees it, (p,): ones for masks, else the first perturbed input."""
    masks = explanation.masks
    binary = bool(((masks == 0) | (masks == 1)).all())
    return np.ones(masks.shape[1]) if binary else np.array(masks[0])


def _names_and_data(explanation: Explanation) -> tuple[list[str], Any]:
    """Names of the features, and what shap shows beside them: values, words, or ones."""
    details, scene = explanation.details(), explanation.scene
    if {"column", "value"} <= set(details):
        return list(details["column"]), _numbers(details["value"])
    if isinstance(scene, Pieced):
        return list(scene.features), np.array(_words(scene), dtype=object)
    return list(scene.features), np.ones(scene.n_features)


def _numbers(values: list[str]) -> Any:
    """Values of a row, as numbers where they are numbers; an array of floats if all are."""
    found: list[Any] = []
    for value in values:
        try:
            found.append(float(value))
        except ValueError:
            found.append(value)
    plain = all(isinstance(value, float) for value in found)
    return np.array(found, dtype=float if plain else object)


def _words(scene: Pieced) -> list[str]:
    """The first occurrence of each feature of a text, with the separator after it."""
    words, current = [""] * len(scene.features), -1
    for piece, owner in zip(scene.pieces, scene.owners, strict=True):
        if owner >= 0:
            current = -1 if words[owner] else owner
        if current >= 0:
            words[current] += piece
    return words


def _lambda(post: Posterior, level: float) -> dict[str, Any] | None:
    """Median and interval of the ridge parameter; None for a method that has none."""
    law = post.extras.get("lam")
    if law is None:
        return None
    tails = [(1 - level) / 2, (1 + level) / 2]
    interval = [_number(value) for value in law.quantile(tails)]
    return {"median": _number(law.median), "interval": interval}


def _number(value: float) -> float | None:
    """A number that JSON has: None for NaN and infinities."""
    return float(value) if math.isfinite(value) else None
