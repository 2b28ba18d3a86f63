"""Outputs of networks: choose one of several, and check that it has one score per column."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["as_columns", "default_output", "pick_output"]

_DEFAULT = "logits"  # what Hugging Face calls the scores, beside hidden states and attentions


def default_output(names: Sequence[str | int]) -> str | int | None:
    """The output to take where the user chose none: the only one, else `logits`, else None."""
    if len(names) == 1:
        return names[0]
    return _DEFAULT if _DEFAULT in names else None


def pick_output(outputs: Any, wanted: str | int | None, names: Sequence[str] | None = None) -> Any:
    """One tensor or array of what a network returned.

    Parameters
    ----------
    outputs
        A tensor, or several: a dictionary, a tuple, a list, a named tuple or a dataclass such as
        the outputs of Hugging Face models.
    wanted
        Name or position of the output; None takes the only one, else the one named `logits`.
    names
        Names of the outputs, for networks that know them and return a list.
    """
    entries = _entries(outputs, names)
    if wanted is None:
        wanted = default_output(list(entries))
    elif isinstance(wanted, int) and wanted not in entries:
        wanted = list(entries)[wanted] if 0 <= wanted < len(entries) else wanted
    if wanted not in entries:
        raise ValueError(
            f"The network returns {_listed(entries)}. Choose one of them with `output`, such as "
            f"output={next(iter(entries), 0)!r}; got {wanted!r}."
        )
    found = entries[wanted]
    if not hasattr(found, "shape"):
        raise TypeError(
            f"The network must return a tensor of scores, shape (n, outputs); output {wanted!r} is "
            f"a {type(found).__name__}. Wrap the network in a function that returns the scores."
        )
    return found


def as_columns(outputs: Any) -> Any:
    """Outputs as (n, outputs): axes of size 1 are dropped, and maps of scores are refused.

    Segmentation networks, for example, return (n, C, H, W), one score per class and pixel. Which
    number should be explained then is the user's choice.
    """
    shape = tuple(outputs.shape)
    if not shape or sum(size > 1 for size in shape[1:]) > 1:
        raise ValueError(
            "The network must return one score per output, shape (n, outputs); it returned shape "
            f"{shape}. Wrap it in a function that returns one score per output, such as the mean "
            "of each class over the pixels."
        )
    return outputs.reshape(shape[0], -1)


def _entries(outputs: Any, names: Sequence[str] | None) -> dict[str | int, Any]:
    """What a network returned, by name or position; entries that are None are left out."""
    found: dict[str | int, Any]
    if isinstance(outputs, Mapping):
        found = dict(outputs)
    elif hasattr(outputs, "_fields"):  # a named tuple
        found = dict(zip(outputs._fields, outputs, strict=True))
    elif dataclasses.is_dataclass(outputs):
        found = {field.name: getattr(outputs, field.name) for field in dataclasses.fields(outputs)}
    else:
        several = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        known = names is not None and len(names) == len(several)
        found = dict(zip(names if known and names else range(len(several)), several, strict=True))
    return {name: entry for name, entry in found.items() if entry is not None}


def _listed(entries: Mapping[str | int, Any]) -> str:
    """Names and shapes of outputs, for a message."""
    shapes = [
        f"{name!r} of shape {tuple(entry.shape)}" if hasattr(entry, "shape") else repr(name)
        for name, entry in entries.items()
    ]
    plural = "output" if len(shapes) == 1 else "outputs"
    return f"{len(shapes)} {plural}: {', '.join(shapes)}"
