"""Several explanations as one `shap.Explanation`, for plots of many rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime.results.explanation import Explanation
from eblime.results.export import to_shap as one_to_shap

if TYPE_CHECKING:
    import shap

__all__ = ["to_shap"]


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
    found = [[_checked(e, prob) for e in row] for row in table]
    return _stacked(found, [e.label for e in table[0]] if several else None)


def _of_targets(entry: Any, targets: list[int], number: int) -> list[Explanation]:
    """The explanations of one input, in the order of the first input's targets."""
    if set(entry) != set(targets):
        raise ValueError(
            f"All inputs must have the same targets; the first has {sorted(targets)}, input "
            f"{number} has {sorted(entry)}. Give `explain_targets` a list of targets."
        )
    return [entry[target] for target in targets]


def _checked(entry: Any, prob: float) -> shap.Explanation:
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
