"""What goes into a model and comes out of it, in the form that it or the engine needs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eblime._warn import warn_user
from eblime.protocols import MeanBatch

Names = Sequence[str] | None  # of outputs
ACTIVATIONS = ("auto", "softmax", "sigmoid", "none")


def descends(thing: object, package: str, name: str) -> bool:
    """Whether an object is an instance of a class of a package, or of a subclass.

    Examples
    --------
    >>> from fractions import Fraction
    >>> descends(Fraction(1, 2), "numbers", "Rational"), descends(0.5, "numbers", "Rational")
    (True, False)
    """
    return any(
        kind.__name__ == name and kind.__module__.split(".")[0] == package
        for kind in type(thing).__mro__
    )


def as_array(batch: Any) -> Any:
    """A batch for a network: a data frame or an array of objects becomes floats, (n, columns).

    Missing values become NaN. A column that does not hold numbers is refused. Other batches, such
    as images and texts, are unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> as_array(pd.DataFrame({"age": [30, 41], "member": [True, False]}))
    array([[30.,  1.],
           [41.,  0.]])
    """
    if isinstance(batch, np.ndarray):
        if batch.dtype != object or batch.ndim != 2:
            return batch
        columns = list(enumerate(batch.T))
    elif is_frame(batch):
        import narwhals as nw

        every = nw.from_native(batch, eager_only=True).iter_columns()
        columns = [(series.name, np.asarray(series.to_numpy())) for series in every]
    else:
        return batch
    return np.column_stack([_numbers(name, values) for name, values in columns])


def is_ranked(model: object) -> bool:
    """Whether the highest output is the prediction, as for a classifier.

    Not where a model has `ranked = False`, nor where a function reads its outputs, as boxes.
    """
    return bool(getattr(model, "ranked", True)) and getattr(model, "reader", None) is None


def join_batches(batches: Sequence[Any]) -> Any:
    """Batches of the same type as one batch."""
    first = batches[0]
    if len(batches) == 1:
        return first
    if isinstance(first, MeanBatch):
        inputs = join_batches([batch.inputs for batch in batches])
        sizes = np.concatenate([batch.sizes for batch in batches])
        return MeanBatch(inputs=inputs, sizes=sizes, link=first.link)
    if isinstance(first, list):
        return [entry for batch in batches for entry in batch]
    if isinstance(first, np.ndarray):
        return np.concatenate(batches)
    if hasattr(first, "tocsr"):
        from scipy import sparse

        return sparse.vstack(batches, format="csr")
    if hasattr(first, "iloc"):  # narwhals takes ten times as long
        import pandas as pd

        return pd.concat(batches, ignore_index=True)
    import narwhals as nw

    return nw.concat([nw.from_native(batch) for batch in batches], how="vertical").to_native()


def is_frame(batch: object) -> bool:
    """Whether a batch is a data frame of any library."""
    return getattr(batch, "columns", None) is not None


def _numbers(name: object, values: NDArray[np.generic]) -> NDArray[np.float64]:
    if values.dtype.kind in "buif":
        return values.astype(np.float64)
    known = [np.nan if _is_missing(value) else value for value in values]
    other = [value for value in known if not isinstance(value, (Number, np.bool_))]
    if other:
        raise TypeError(
            f"A network takes numbers; column {name!r} holds {other[0]!r:.60}. Pass a function "
            "that encodes the column and calls the network."
        )
    return np.array(known, dtype=np.float64)


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def default_output(names: Sequence[str | int]) -> str | int | None:
    """The output to use if the user chose none: the only one, or `logits`, or None."""
    if len(names) == 1:
        return names[0]
    return "logits" if "logits" in names else None  # the name in Hugging Face outputs


def read_scores(model: Any, returned: object, n: int, names: Names = None) -> Any:
    """The scores in what a network returned for n inputs, an array or a tensor, (n, outputs).

    `model` has the settings: `reader`, or `output` and `activation`, and notes in `decided` which
    activation is applied. `names` are those of the outputs, for networks that have them and return
    a list.
    """
    if model.reader is not None:
        chosen = model.output is not None
        return model.reader(pick_output(returned, model.output, names) if chosen else returned, n)
    found = pick_output(returned, model.output, names)
    is_tensor = descends(found, "torch", "Tensor")
    outputs = as_columns(found.float() if is_tensor else np.asarray(found, dtype=np.float64))
    if "activation" not in model.decided:  # by the first batch: a GPU is not waited for again
        model.decided["activation"] = _choose_activation(model, outputs)
    return activate(outputs, model.decided["activation"])


def activate(values: Any, activation: str) -> Any:
    """The "softmax" over axis 1, the "sigmoid" or "none" of them, of an array or a tensor."""
    if activation == "none":
        return values
    if descends(values, "torch", "Tensor"):
        return values.softmax(1) if activation == "softmax" else values.sigmoid()
    return special.softmax(values, axis=1) if activation == "softmax" else special.expit(values)


def pick_output(outputs: object, wanted: str | int | None, names: Names = None) -> Any:
    """Select one tensor or array of what a network returned, by name or position."""
    entries = entries_of(outputs, names)
    if wanted is None:
        wanted = default_output(list(entries))
    elif isinstance(wanted, int) and wanted not in entries:
        wanted = list(entries)[wanted] if 0 <= wanted < len(entries) else wanted
    found = None if wanted is None else entries.get(wanted)
    if getattr(found, "shape", None) is None:
        shapes = {name: tuple(getattr(entry, "shape", ())) for name, entry in entries.items()}
        words = ", ".join(f"{name!r} of shape {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"The network returns {len(entries)} outputs: {words}. Choose a tensor of scores with "
            f"`output`, such as output={next(iter(entries), 0)!r}; got {wanted!r}. For a detector, "
            "explain a box: target=eblime.scores.Box(label)."
        )
    return found


def as_columns(outputs: Any) -> Any:
    """Outputs as (n, outputs): axes of size 1 are dropped, and maps of scores are refused.

    A segmentation network, for example, returns one score per class and pixel, (n, C, H, W). Then
    the user must choose which number to explain.
    """
    shape = tuple(outputs.shape)
    if not shape or sum(size > 1 for size in shape[1:]) > 1:
        raise ValueError(
            "The network must return one score per output, shape (n, outputs); it returned shape "
            f"{shape}. For a map of scores, explain a region, target=eblime.scores.Region(label); "
            "for a detector a box, target=eblime.scores.Box(label). Or wrap the network in a "
            "function that returns one score per output."
        )
    return outputs.reshape(shape[0], -1)


_SUM = 2e-3  # how far the sum of probabilities may be from 1: half precision


def _choose_activation(model: Any, outputs: Any) -> str:
    """The activation of a network with these outputs, (n, outputs).

    Probabilities get no softmax; with "auto", one output does not either.
    """
    wanted, kind = str(model.activation), type(model).__name__
    if wanted in ("sigmoid", "none"):
        return wanted
    if outputs.shape[1] == 1 and wanted == "auto":
        return "none"
    if outputs.shape[1] == 1:
        raise ValueError(
            "The softmax of one output is always 1; set `activation` to 'sigmoid' or 'none' in "
            f"{kind} for a network with one output."
        )
    if (outputs < 0).any():
        return "softmax"
    if (abs(outputs.sum(1) - 1) <= _SUM).all():
        if wanted == "softmax":
            warn_user(
                "The network's outputs are probabilities already, and are explained as they are, "
                f"without another softmax. Set activation='none' in {kind} to silence this warning."
            )
        return "none"
    if wanted == "auto" and outputs.shape[1] > 2 and (outputs <= 1).all():
        warn_user(
            "The network's outputs are between 0 and 1 and do not sum to 1. They get a softmax, as "
            f"logits do. Set activation='none' in {kind} if they are probabilities of several "
            "labels, and 'softmax' to silence this warning."
        )
    return "softmax"


def entries_of(outputs: object, names: Names) -> dict[str | int, Any]:
    """What a network returned, by name or position, without entries that are None."""
    found: dict[str | int, Any]
    if isinstance(outputs, Mapping):
        found = dict(outputs)
    elif hasattr(outputs, "_asdict"):  # a named tuple
        found = outputs._asdict()
    elif dataclasses.is_dataclass(outputs):
        found = {field.name: getattr(outputs, field.name) for field in dataclasses.fields(outputs)}
    else:
        several = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        known = names is not None and len(names) == len(several)
        found = dict(zip(names if known and names else range(len(several)), several, strict=True))
    return {name: entry for name, entry in found.items() if entry is not None}


_ADVICE = "Return an array of shape (n,) or (n, outputs) with one row per input."


def is_async(model: object) -> bool:
    """Whether calling a model returns a coroutine instead of scores."""
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(
        getattr(model, "__call__", None)  # noqa: B004  the method itself is inspected
    )


def as_scores(returned: object) -> NDArray[np.generic]:
    """What a model returned, as an array of real numbers."""
    try:
        if np.ma.is_masked(returned):
            raise TypeError("some are masked")
        scores = returned if isinstance(returned, np.ndarray) else np.asarray(on_cpu(returned))
        if scores.dtype == object:  # perhaps other numbers, such as Decimal; digits are a label
            if any(isinstance(score, (str, bytes, type(None))) for score in scores.flat):
                raise TypeError("some are no numbers")
            scores = scores.astype(np.float64)
        if scores.dtype.kind not in "biuf":
            raise TypeError(scores.dtype)
    except (TypeError, ValueError) as error:
        wrong = f"The model must return scores; it returned {_describe(returned)}"
        raise TypeError(wrong) from error
    return scores


def on_cpu(returned: Any) -> Any:
    """A tensor of torch in main memory, in a dtype that NumPy has; all else as it is."""
    if not descends(returned, "torch", "Tensor"):
        return returned
    found = returned.detach().cpu()
    return found.double() if found.is_floating_point() else found


def _describe(returned: object) -> str:
    """The type of what was returned, with an example, and what to return instead."""
    kind, advice = f"a {type(returned).__name__}", _ADVICE
    if inspect.iscoroutine(returned):
        returned.close()  # it is never awaited
        advice = "Pass an `async def` function itself: it is awaited."
    elif isinstance(returned, Mapping):
        kind += f" with the keys {', '.join(map(repr, list(returned)[:5]))}"
        advice = (
            "Return one of its entries as an array, or explain a box or a region, "
            "target=eblime.scores.Box(label) or eblime.scores.Region(label)."
        )
    elif np.ma.is_masked(returned):
        kind += " in which some are masked"
    elif isinstance(returned, (list, tuple, np.ndarray)) and len(returned) > 0:
        first = np.ravel(returned)[0] if isinstance(returned, np.ndarray) else returned[0]
        first = first.item() if isinstance(first, np.generic) else first
        kind += f" of {type(first).__name__}, such as {first!r:.80}"
    return f"{kind}. {advice}"
