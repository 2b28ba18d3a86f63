"""Targets: which outputs of the model to explain, by number or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eblime._checks import check_count
from eblime._types import FloatArray

__all__ = [
    "Labels",
    "Target",
    "check_labels",
    "check_targets",
    "chosen_columns",
    "label_of",
    "top_classes",
]

Target = int | str | None
Labels = Sequence[str] | Mapping[int, str]


def check_labels(labels: Any) -> None:
    """Refuse labels that are not names."""
    if labels is None:
        return
    names = list(labels.values()) if isinstance(labels, Mapping) else labels
    keys = list(labels) if isinstance(labels, Mapping) else []
    if (
        isinstance(labels, str)
        or not isinstance(names, (list, tuple))
        or not all(isinstance(name, str) for name in names)
        or not all(isinstance(key, (int, np.integer)) for key in keys)
    ):
        raise TypeError(
            "`labels` must be a list of names, or a dictionary from column number to name; "
            f"got {labels!r:.80}."
        )


def check_targets(targets: Any, labels: Labels | None) -> None:
    """Refuse targets that no model can have, before it is called."""
    if isinstance(targets, str) or not isinstance(targets, (int, np.integer, list, tuple)):
        raise TypeError(f"`targets` must be a number or a list of targets; got {targets!r}.")
    if isinstance(targets, (list, tuple)):
        for target in targets:
            _column(target, 1 << 62, labels)


def chosen_columns(targets: Any, original: FloatArray, labels: Labels | None) -> list[int]:
    """Columns of the model's output: the k highest for a number, else those listed."""
    outputs = len(original)
    if labels is not None and not isinstance(labels, Mapping) and len(labels) != outputs:
        raise ValueError(
            f"`labels` must name each of the model's {outputs} outputs; got {len(labels)} names."
        )
    if isinstance(targets, (int, np.integer)):
        check_count("targets", int(targets))
        order = np.argsort(-original, kind="stable")
        return [int(column) for column in order[: int(targets)]]
    chosen = [_column(target, outputs, labels) for target in targets]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"`targets` must list at least one output, each once; got {targets!r}.")
    return chosen


def _column(target: Any, outputs: int, labels: Labels | None) -> int:
    """One column, by number or by name."""
    if isinstance(target, str):
        target = _column_of_name(target, labels)
    if isinstance(target, bool) or not isinstance(target, (int, np.integer)):
        raise TypeError(f"`target` must be a whole number, a name or None; got {target!r}.")
    if target < 0:
        raise ValueError(f"`target` must be >= 0; got {target}.")
    if target >= outputs:
        raise ValueError(
            f"`target` must be < {outputs}, the number of outputs of the model; got {target}."
        )
    return int(target)


def _column_of_name(name: str, labels: Labels | None) -> int:
    """The column of that name; an unknown name gets suggestions."""
    if labels is None:
        raise ValueError(
            f"`target` must be a number where the explainer has no `labels`; got {name!r}."
        )
    named = labels.items() if isinstance(labels, Mapping) else enumerate(labels)
    columns = [(int(column), label) for column, label in named]
    found = [column for column, label in columns if label == name]
    if len(found) > 1:
        raise ValueError(f"`target` {name!r} names several outputs, {found}; give the number.")
    if not found:
        near = [label for _, label in columns if name.lower() in label.lower()][:5]
        hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"`target` must be among `labels`; got {name!r}.{hint}")
    return found[0]


def label_of(column: int, outputs: int, labels: Labels | None) -> str:
    """The readable name of an output."""
    plain = "output" if outputs == 1 else f"output {column}"
    if labels is None:
        return plain
    return str(labels.get(column, plain) if isinstance(labels, Mapping) else labels[column])


def top_classes(original: FloatArray, labels: Labels | None, count: int = 5) -> list[list[Any]]:
    """The highest outputs of the input itself, [label, score] each."""
    order = np.argsort(-original, kind="stable")[:count]
    outputs = len(original)
    return [[label_of(int(k), outputs, labels), float(original[k])] for k in order]
