"""Explanations for other programs: data frames, JSON, ArviZ, shap and shapiq."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._checks import check_choice, check_count, check_level
from eblime._lazy import import_extra
from eblime._types import FloatArray, Record, RNGLike
from eblime.posterior import Posterior
from eblime.results.indices import check_game

if TYPE_CHECKING:
    import pandas as pd
    import shap
    import shapiq

    from eblime.results.explanation import Explanation

JSON_SCHEMA = "eblime.explanation/1"
_OF_EXPLANATION = ("target", "label", "prediction", "exhaustive", "estimand", "provenance")
_OF_POSTERIOR = ("method", "n_masks", "r2", "r2_held_out", "ess", "intercept")
_SHAPIQ = {"banzhaf": ("BV", "BII"), "shapley": ("SV", "SII")}  # shapiq's names, by order


def to_json(explanation: Explanation, prob: float = 0.95, k: int = 5) -> str:
    """The explanation's numbers as JSON text; see docs/reference/index.md.

    Numbers that a point estimate does not have are null.
    """
    level, post = check_level("prob", prob), explanation.posterior
    columns: dict[str, Any] = {"mean": post.mean, **_columns(post, level, k)}
    columns |= explanation.details()
    lam, tails = post.extras.get("lam"), [(1 - level) / 2, (1 + level) / 2]
    found = {
        "schema": JSON_SCHEMA,
        "prob": level,
        "k": k,
        **{name: getattr(explanation, name) for name in _OF_EXPLANATION},
        **{name: getattr(post, name) for name in _OF_POSTERIOR},
        **_question(explanation.scene, explanation.target),
        "lambda": lam and {"median": lam.median, "interval": lam.quantile(tails)},
        "features": [
            {"name": str(feature), **{name: values[j] for name, values in columns.items()}}
            for j, feature in enumerate(explanation.features)
        ],
    }
    return as_json(found)


def as_json(found: Record) -> str:
    """A record as JSON text that UTF-8 can hold; numbers that are not finite are null."""
    text = json.dumps(without_nan(found), ensure_ascii=False, indent=1, allow_nan=False)
    return re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", text)


def _question(scene: Any, target: int) -> Record:
    scores = getattr(scene, "scores", ())
    if target < len(scores):
        kept = {name: part for name, part in scores[target].items() if name != "mask"}
        return {"score": kept}
    names = ("question", "answer", "score") if scene.domain == "prompt" else ()
    return {name: getattr(scene, name) for name in names}


def without_nan(value: object) -> Any:
    """A value that JSON can hold: numbers that are not finite become None."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: without_nan(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_frame(explanation: Explanation, prob: float = 0.95, k: int = 5) -> pd.DataFrame:
    """One row per feature; see `Explanation.to_frame`.

    Characters that UTF-8 cannot hold become question marks.
    """
    from eblime._pandas import pd

    post = explanation.posterior
    columns: dict[str, object] = {"feature": list(explanation.features)}
    columns |= {"mean": post.mean, **_columns(post, check_level("prob", prob), k)}
    columns |= explanation.details()
    return pd.DataFrame({_encodable(name): _encodable(v) for name, v in columns.items()})


def _encodable(value: object) -> Any:
    if isinstance(value, list):
        return [_encodable(entry) for entry in value]
    return value.encode("utf8", "replace").decode() if isinstance(value, str) else value


def _columns(post: Posterior, level: float, k: int) -> dict[str, FloatArray]:
    """Spread, interval and probabilities of each importance; NaN for a point estimate."""
    check_count("k", k)
    names = ("sd", "low", "high", "prob_positive", "top_k")
    if not post.has_spread:
        return dict.fromkeys(names, np.full(post.n_features, np.nan))
    found = post.columns(level) | {"top_k": post.top_k_probability(min(k, post.n_features))}
    return {name: found[name] for name in names}


def to_arviz(explanation: Explanation, n_draws: int = 4_000, rng: RNGLike = 0) -> Any:
    """Draws for ArviZ: one chain of i.i.d. (beta, sigma2, lam), beta by feature.

    An InferenceData with ArviZ before 1.0, a DataTree since.
    """
    arviz = import_extra("arviz", "arviz")
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

    Its `values` have shape (inputs, features), or (inputs, features, targets). The fields of each
    input are those of `Explanation.to_shap`.

    Parameters
    ----------
    explanations
        One explanation for each input, or what `explain_targets` returns for each input. All
        must have the same features, such as the columns of a table.
    prob
        Probability of the intervals, which are the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> import eblime
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> explainer = eblime.TabularExplainer(lambda x: 2 * x[:, 0] - x[:, 2], rows, n_masks=50)
    >>> sv = eblime.results.to_shap(explainer.explain(row, rng=0) for row in rows[:4])
    >>> sv.shape, int(sv.abs.mean(0).values.argmax())
    ((4, 3), 0)
    """
    from eblime.results.explanation import Explanation

    entries: list[Any] = [] if isinstance(explanations, Explanation) else list(explanations)
    several = bool(entries) and isinstance(entries[0], Mapping)
    rows: list[Any] = [one if isinstance(one, Mapping) else {0: one} for one in entries]
    if not rows or not all(isinstance(e, Explanation) for row in rows for e in row.values()):
        raise TypeError(
            "`explanations` must be a list with an explanation, or a dictionary from targets to "
            "explanations, for each input; for one explanation, use `explanation.to_shap()`."
        )
    targets = list(rows[0])
    table = []
    for k, row in enumerate(rows):
        if set(row) != set(targets):
            raise ValueError(
                f"All inputs must have the same targets; the first has {sorted(targets)}, input "
                f"{k} has {sorted(row)}. Give `explain_targets` a list of targets."
            )
        table.append([one_to_shap(row[target], prob) for target in targets])
        if any(one.feature_names != table[0][0].feature_names for one in table[-1]):
            raise ValueError(f"All explanations must have the same features; input {k} differs.")

    def stack(field: str) -> Any:
        """A field of all explanations, (inputs, ..., targets), or (inputs, ...) without targets."""
        whole = np.stack([np.stack([getattr(one, field) for one in row], -1) for row in table])
        return whole if several else whole[..., 0]

    certain = all(one.lower_bounds is not None for row in table for one in row)
    return type(table[0][0])(
        values=stack("values"),
        base_values=stack("base_values"),
        data=np.stack([row[0].data for row in table]),
        feature_names=table[0][0].feature_names,
        output_names=[rows[0][target].label for target in targets] if several else None,
        **{field: stack(field) for field in ("lower_bounds", "upper_bounds") if certain},
    )


def one_to_shap(explanation: Explanation, prob: float = 0.95) -> shap.Explanation:
    """One explanation for shap; see `Explanation.to_shap`.

    Values are importances times the input as the regression sees it, which is one for a feature
    that is shown. So `base_values + values.sum()` is what the linear fit predicts for the input.
    """
    post, masks = explanation.posterior, explanation.masks
    binary = ((masks == 0) | (masks == 1)).all()
    shown = np.ones(masks.shape[1]) if binary else masks[0]  # the input, as the regression sees it
    level = check_level("prob", prob)
    bounds: dict[str, FloatArray] = {}
    if post.has_spread:
        ends = post.interval(level) * shown[:, None]
        bounds = {"lower_bounds": ends.min(axis=1), "upper_bounds": ends.max(axis=1)}
    names, data = _names_and_data(explanation)
    found: shap.Explanation = import_extra("shap", "shap").Explanation(
        values=post.mean * shown,
        base_values=post.intercept,
        data=data,
        feature_names=names,
        **bounds,
    )
    return found


def to_shapiq(
    explanation: Explanation, index: str = "shapley", order: int = 1
) -> shapiq.InteractionValues:
    """The posterior means as `shapiq.InteractionValues`; see `Explanation.to_shapiq`."""
    check_choice("index", index, tuple(_SHAPIQ))
    if order not in (1, 2):
        raise ValueError(f"`order` must be 1 or 2; got {order!r}.")
    found: Any = import_extra("shapiq", "shapiq").InteractionValues
    answers = explanation.answers
    check_game(answers, "shapley")  # for the baseline, whatever the index
    single = explanation.importances(index).mean
    nothing = answers.hidden
    if nothing is None:  # it was not asked: Shapley values say what is left
        nothing = explanation.importances("shapley").intercept
    values: dict[tuple[int, ...], float] = {(): float(nothing)}
    values |= {(j,): float(mean) for j, mean in enumerate(single)}
    if order == 2:
        pairs = explanation.interactions(index)
        for (i, j), mean in zip(pairs.pairs.tolist(), pairs.posterior.mean, strict=True):
            values[i, j] = float(mean)
    return found(
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


def _names_and_data(explanation: Explanation) -> tuple[list[str], Any]:
    """Names of the features, and what shap shows beside them: values, words, or ones."""
    details, scene = explanation.details(), explanation.scene
    if {"column", "value"} <= set(details):
        return list(details["column"]), _numbers(details["value"])
    if hasattr(scene, "pieces"):
        return list(scene.features), np.array(_words(scene), dtype=object)
    return list(scene.features), np.ones(scene.n_features)


def _numbers(values: list[str]) -> Any:
    found: list[object] = list(values)
    for place, value in enumerate(values):
        with suppress(ValueError):
            found[place] = float(value)
    plain = all(isinstance(value, float) for value in found)
    return np.array(found, dtype=float if plain else object)


def _words(scene: Any) -> list[str]:
    """The first occurrence of each feature of a text, with the separator after it."""
    words, current = [""] * len(scene.features), -1
    for piece, owner in zip(scene.pieces, scene.owners, strict=True):
        if owner >= 0:
            current = -1 if words[owner] else owner
        if current >= 0:
            words[current] += piece
    return words
