"""Which outputs of a model to explain, by column, by label or by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eblime._checks import check_count
from eblime._types import FloatArray
from eblime.models.conversion import is_ranked

Labels = Sequence[str] | Mapping[int, str]

_SHOWN = 10  # labels that a message lists
ONE_CLASS = object()  # the only output of a model, or the second of two classes


class UnchosenClassError(ValueError):
    """A model has several outputs, and the user must choose one."""


def check_labels(labels: Any) -> None:
    """Refuse labels that are not strings, or not in a list or a dictionary by column."""
    if labels is None:
        return
    is_mapping = isinstance(labels, Mapping)
    names = [*labels.values()] if is_mapping else labels
    if (
        not isinstance(names, (list, tuple))
        or not all(isinstance(name, str) for name in names)
        or not all(isinstance(key, (int, np.integer)) for key in (labels if is_mapping else ()))
    ):
        raise TypeError(
            "`labels` must be a list of names, or a dictionary from column number to name; "
            f"got {labels!r:.80}."
        )


def check_one_class(model: object, labels: Labels | None) -> None:
    """Refuse a classifier of more than two known classes, of which none was chosen."""
    if labels is not None and is_ranked(model):
        _one_class(len(labels), labels)


def check_targets(targets: Any, labels: Labels | None) -> None:
    """Refuse targets that no model can have, before the model is called."""
    if targets is ONE_CLASS:
        return
    if isinstance(targets, (int, np.integer)):
        check_count("targets", int(targets))
    elif not isinstance(targets, (list, tuple)):
        raise TypeError(f"`targets` must be a number or a list of targets; got {targets!r}.")
    else:
        _columns(targets, None, labels)


def columns_of(
    targets: Any, original: FloatArray, labels: Labels | None, ranked: bool
) -> list[int]:
    """Columns of the model's output: the k highest for a number, else those listed, or one class.

    `original` are the outputs for the input itself, and `ranked` is whether they can be compared
    with each other, as those of a classifier; if not, the targets must be listed.
    """
    outputs = len(original)
    if labels is not None and not isinstance(labels, Mapping) and len(labels) != outputs:
        raise ValueError(
            f"`labels` must name each of the model's {outputs} outputs; got {len(labels)} names."
        )
    if targets is ONE_CLASS:
        if ranked:
            return [_one_class(outputs, labels)]
        targets = 1
    if isinstance(targets, (int, np.integer)):
        if not ranked and targets < outputs:
            raise UnchosenClassError(
                "`target` must be given for a model with several outputs that are not classes of "
                f"one question; it has {outputs}: "
                f"{_names(label_outputs(outputs, labels))}."
            )
        order = np.argsort(-original, kind="stable")
        return [int(column) for column in order[: int(targets)]]
    return _columns(targets, outputs, labels)


def _one_class(outputs: int, labels: Labels | None) -> int:
    if outputs > 2:
        names = label_outputs(outputs, labels)
        raise UnchosenClassError(
            f"`targets` must be given for a model with {outputs} outputs: {_names(names)}. Give a "
            'class, or "predicted" for the predicted class of each input.'
        )
    return outputs - 1


def label_outputs(outputs: int, labels: Labels | None) -> list[str]:
    """A name for each output."""
    named = _by_column(labels)
    return [named.get(j, "output" if outputs == 1 else f"output {j}") for j in range(outputs)]


def target_of(column: int, labels: Labels | None) -> int | str:
    """A column as `explain` takes it: by its label if no other output has it, else by its number.

    The number alone may be ambiguous, if it is the label of another output.
    """
    named = _by_column(labels)
    label = named.get(column)
    return column if label is None or list(named.values()).count(label) > 1 else label


def _columns(targets: Sequence[Any], outputs: int | None, labels: Labels | None) -> list[int]:
    chosen = [_column(target, outputs, labels) for target in targets]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"`targets` must list at least one output, each once; got {targets!r}.")
    return chosen


def _column(target: Any, outputs: int | None, labels: Labels | None) -> int:
    if isinstance(target, (float, bool, np.bool_)) and str(target) in _by_column(labels).values():
        target = str(target)  # a class such as True or 1.0
    if isinstance(target, bool) or not isinstance(target, (str, int, np.integer)):
        raise TypeError(
            f"`target` must be a whole number, a label or None; got {target!r:.80}. For an image "
            "alone it may be an eblime.scores.Box or Region."
        )
    column = class_number(target, labels)
    if not isinstance(target, str):
        _check_unambiguous(column, _by_column(labels))
    if column < 0:
        raise ValueError(f"`target` must be >= 0; got {column}.")
    if outputs is not None and column >= outputs:
        raise ValueError(
            f"`target` must be < {outputs}, the number of outputs of the model; got {column}."
        )
    return column


def _check_unambiguous(number: int, named: Mapping[int, str]) -> None:
    found = [column for column, label in named.items() if label in (f"{number}", f"{number}.0")]
    if not found or number in found:
        return
    label = named[found[0]]
    raise ValueError(
        f"`target` {number} is ambiguous: the output with the label {label!r} is in column "
        f"{found[0]}. Give the label as a string, {label!r}."
    )


def class_number(label: Any, labels: Labels | None) -> int:
    """The column with that label, else with that number; similar labels are suggested."""
    if not isinstance(label, str):
        return int(label)
    named = _by_column(labels)
    found = [column for column, name in named.items() if name == label]
    if len(found) > 1:
        raise ValueError(
            f"`target` {label!r} is the label of several outputs, columns {found}; give the number."
        )
    if found or (label.isascii() and label.isdigit()):  # digits as on the command line
        return found[0] if found else int(label)
    if labels is None:
        raise ValueError(
            f"`target` must be a column number if the outputs have no `labels`; got {label!r}."
        )
    near = [name for name in named.values() if label.lower() in name.lower()][:5]
    hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
    raise ValueError(
        f"`target` must be among `labels`, {_names(list(named.values()))}; got {label!r}.{hint}"
    )


def _by_column(labels: Labels | None) -> dict[int, str]:
    if labels is None:
        return {}
    pairs = labels.items() if isinstance(labels, Mapping) else enumerate(labels)
    return {int(column): str(label) for column, label in pairs}


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown}, ... ({len(names)} in all)"
