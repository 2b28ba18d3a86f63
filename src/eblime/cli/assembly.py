"""From the values of options to the model, the names of its outputs and the explainer."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime import registry
from eblime._lazy import import_extra
from eblime.cli.options import Values, own_values, settings_of
from eblime.domains.record import Command, Domain
from eblime.engine.calls import Calls


def make_explainer(
    domain: Domain, command: Command, model: Any, values: Values, argument: str
) -> Any:
    """The explainer of a domain, from the values of all options and the argument of the command."""
    given = {name: value for name, value in values.items() if value is not None}
    method = values["method"]
    if "index" in given:
        made: Any = registry.find("methods", method)()
        if not hasattr(made, "index"):
            raise ValueError(f"--index needs --method quadrature; got --method {method}.")
        method = replace(made, index=given["index"])
    shared: dict[str, Any] = {
        "n_masks": values["masks"] or "auto",
        "method": method,
        "labels": load_labels(Path(given["labels"])) if "labels" in given else None,
        **{name: given[name] for name in ("design", "kernel") if name in given},
        "calls": Calls(**{n: given[n] for n in ("retry", "timeout", "concurrency") if n in given}),
    }
    options = own_values(command, values)
    settings = settings_of((o for o in command.options if o.used_by == "explainer"), options)
    if command.explainer is not None:
        return registry.resolve(command.explainer)(model, settings | shared, options, argument)
    explainer = registry.of_domain(domain, "explainer")
    if explainer is not None:
        return explainer(model, **settings, **shared)
    from eblime.explainers.general import Explainer

    return Explainer(model, kind=domain.name, settings=settings, **shared)


def model_of(command: Command, values: Values, *, trust_pickle: bool) -> Any:
    """The model of a command, with the settings among the domain's options."""
    settings = settings_of((o for o in command.options if o.used_by == "model"), values)
    return load_model(values["model"], trust_pickle=trust_pickle, **settings)


PICKLES = (".pkl", ".pickle", ".joblib")
_KINDS = "an .onnx or .skops file, a .pkl or .joblib file with --trust-pickle, or module:name"
_METRICS = (
    "BrayCurtis Canberra Chebyshev Dice Euclidean Hamming Haversine Jaccard Mahalanobis Manhattan "
    "Minkowski RogersTanimoto RussellRao SEuclidean SokalMichener SokalSneath"
)
# classes of scikit-learn that skops reports as untrusted and that only hold numbers
_DATA_HOLDERS = frozenset(
    {
        "numpy.dtype",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        *(
            f"sklearn.metrics._dist_metrics.{name}Distance{n}"
            for name in _METRICS.split()
            for n in (32, 64)
        ),
    }
)


def load_model(
    spec: str,
    *,
    trust_pickle: bool = False,
    normalise: str = "unit",
    activation: str = "auto",
    output: str | None = None,
) -> Any:
    """Load an .onnx, .skops, .pkl or .joblib file, or import `package.module:name`.

    Modules are looked for in the current folder, too; `package.module:name()` is called, for
    functions that create a model. The address of a server is returned as it is. Files that can run
    code need `trust_pickle`; the other settings are for ONNX files.
    """
    if spec.startswith(("http://", "https://")):  # a language model, for `eblime explain prompt`
        return spec
    path = Path(spec)
    suffix = path.suffix.lower()
    if ":" in spec and not path.exists() and suffix not in (".onnx", ".skops", *PICKLES):
        return _import_model(spec)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {spec!r}; --model takes {_KINDS}.")
    if suffix == ".onnx":
        return _read_onnx(path, normalise, {"activation": activation, "output": output})
    if suffix == ".skops":
        return _read_skops(path, trust_pickle)
    if suffix in PICKLES:
        return _unpickle(path, trust_pickle)
    raise ValueError(f"--model does not know {suffix or 'such'!r} files; it takes {_KINDS}.")


def load_labels(path: Path) -> list[str] | dict[int, str]:
    """Names of the model's outputs: one per line, or a JSON list, or a JSON object by column."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() != ".json":
            return [line.strip() for line in text.splitlines() if line.strip()]
        found = json.loads(text)
        if isinstance(found, dict):
            return {int(column): str(name) for column, name in found.items()}
        return [str(name) for name in found]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must be a text in UTF-8 with a name per line, a JSON list of names, or a JSON "
            f"object from column numbers to names: {error}."
        ) from error


def _import_model(spec: str) -> Any:
    """Import `package.module:name`, and call it for `package.module:name()`."""
    module, _, name = spec.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = attrgetter(name.removesuffix("()"))(importlib.import_module(module))
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"There is no Python module {error.name!r} to import for --model {spec!r}; is it in "
            "the current folder, or installed? A module is named without .py."
        ) from error
    if not name.endswith("()"):
        return found
    try:
        return found()
    except ImportError:
        raise
    except Exception as error:
        raise RuntimeError(f"--model {spec} raised {type(error).__name__}: {error}") from error


def _read_onnx(path: Path, normalise: str, settings: dict[str, Any]) -> Any:
    """An ONNX network that scales pixels as it was trained to expect them."""
    from eblime.models.onnx import OnnxModel

    model = OnnxModel.load(path, **settings)
    entry = model.session.get_inputs()[0]
    if normalise != "unit" and entry.type == "tensor(uint8)":
        raise ValueError(
            f"--normalise must be left out: {path} takes whole numbers from 0 to 255 as they are."
        )
    return replace(model, preprocess=_SCALINGS[normalise])


@dataclass(frozen=True, slots=True)
class Scaling:
    """Pixels minus a mean, divided by a scale: one for all, or one for each of three colours."""

    mean: float | tuple[float, ...]
    sd: float | tuple[float, ...]

    def __call__(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scale a batch."""
        shape: tuple[int, ...] = ()
        if np.ndim(self.mean):
            if images.ndim != 4 or 3 not in (images.shape[1], images.shape[-1]):
                raise ValueError(
                    f"--normalise imagenet needs photos with three channels; got {images.shape}."
                )
            shape = (3, 1, 1) if images.shape[1] == 3 else (3,)
        mean, sd = (np.array(row, dtype=np.float32).reshape(shape) for row in (self.mean, self.sd))
        return np.asarray((images - mean) / sd)


_SCALINGS = {
    "unit": None,
    "imagenet": Scaling((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "symmetric": Scaling(0.5, 0.5),
    "bytes": Scaling(0.0, 1 / 255),
}
NORMALISATIONS = tuple(_SCALINGS)


def _read_skops(path: Path, trust: bool) -> Any:
    """Load a skops file; types that may do more than hold data need trust."""
    import_extra("skops", "sklearn", safe_since="0.12")  # earlier ones mistake types in a file
    io = importlib.import_module("skops.io")
    try:
        asked = io.get_untrusted_types(file=path)
    except Exception as error:
        raise ValueError(f"{path} cannot be read as a skops file: {error}") from error
    unknown = sorted(set(asked) - _DATA_HOLDERS)
    if unknown and not trust:
        raise PermissionError(
            f"{path} holds types that skops does not know: {', '.join(unknown)}. If you trust "
            "its author, add --trust-pickle."
        )
    return io.load(path, trusted=asked)


def _unpickle(path: Path, trust: bool) -> Any:
    """Load a pickle, which can run any code when it is read, if the user trusts it."""
    if not trust:
        raise PermissionError(
            f"{path} is a pickle, which can run any code when it is read. If you trust its "
            "author, add --trust-pickle; ONNX and skops files need no trust."
        )
    if path.suffix.lower() == ".joblib":
        import joblib

        return joblib.load(path)
    import pickle

    with path.open("rb") as file:
        return pickle.load(file)
