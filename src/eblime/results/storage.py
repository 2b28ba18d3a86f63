"""Explanations as files: one zip of JSON and plain arrays, no pickle, written atomically.

Format 1: `explanation.json` holds the answers, the method's settings, the scene and a summary of
the posterior, with all that a printed table shows; arrays are `.npy` members beside it. Sizes are
compared with a limit before anything is decompressed. JSON can only name methods that are
registered, and settings that are dataclasses of a method's module or kernels.

A method that the reader has is fitted again. If it is missing, or fitting it would take more than
a few seconds, the posterior is rebuilt from the summary, which has the exact table of the
importances, and from draws.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import stat
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime import _field_checks as checks
from eblime import kernels, registry
from eblime._checks import check_masks, check_scores, check_weights
from eblime._files import write_whole
from eblime._text import printable
from eblime.answers import Answers
from eblime.core.derived import select_features
from eblime.core.laws import Draws, DrawsLaw, PointMass, PointValue
from eblime.methods.regression import fit_each, is_quick
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation, NotRefitted

FORMAT = 1
Arrays = dict[str, NDArray[np.generic]]
_MAX_BYTES = 1 << 30  # of a file, and of what it unpacks to
_SPARE_BYTES, _EXPANSION = 3 << 26, 50  # that a file may unpack to: any, and per byte of it
_SPARE_JSON, _JSON_EXPANSION = 1 << 22, 4  # as above; a byte of JSON takes up to 40 in memory
_NAME = "explanation.json"
_MAX_TARGET = (1 << 53) - 1
_PLAIN = ("target", "label", "prediction", "exhaustive", "provenance")
_MAX_REASON = 300  # characters: an error may quote the file
_MAX_AXES = 4
_LEVEL = 0.95  # of the stored intervals
_MAX_DRAWS, _MAX_NUMBERS = 4_000, 4_000_000  # draws that are stored, and numbers in them


def save(explanation: Explanation, path: str | os.PathLike[str]) -> Path:
    """Write an explanation to one file; the file appears whole or not at all."""
    target = Path(path)
    write_whole(target, pack(explanation))
    return target


def pack(explanation: Explanation) -> bytes:
    """An explanation as the content of a file."""
    arrays: Arrays = {}
    text = _dump(_tree(explanation), arrays)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_NAME, text)
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(f"{name}.npy", content.getvalue())
    return buffer.getvalue()


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Explanation:
    """Read an explanation that `Explanation.save` wrote.

    The file may come from anybody: no code in it is run, sizes are checked before anything is
    unpacked, values that do not fit together are refused, and no fit is made that takes long: many
    masks or features have the stored table, and draws for all else, until you call `refit`.

    Parameters
    ----------
    path
        A regular file.
    max_bytes
        How large the file may be, also once it is unpacked. None allows 192 MiB and 50 times the
        size of the file, at most 1 GiB.

    Examples
    --------
    >>> import tempfile
    >>> import eblime
    >>> model = lambda texts: [float("good" in text) for text in texts]
    >>> explanation = eblime.TextExplainer(model).explain("a good day")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = explanation.save(f"{folder}/day.eblime")
    ...     eblime.load(path).features[1]
    "word 'good'"
    """
    file, limit = Path(path), max_bytes or _MAX_BYTES
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):  # a pipe must not hang
        raise ValueError(f"{file} must be a regular file; it is not.")
    if found.st_size > limit:
        raise ValueError(f"{file} must have at most {limit} bytes; it has {found.st_size}.")
    return unpack(file.read_bytes(), file, max_bytes=max_bytes)


def unpack(content: bytes, source: object, *, max_bytes: int | None = None) -> Explanation:
    """Read an explanation from the content of a file; error messages name the source."""
    limit = max_bytes or min(_MAX_BYTES, _SPARE_BYTES + _EXPANSION * len(content))
    most_json = max_bytes or _SPARE_JSON + _JSON_EXPANSION * len(content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            members = file.infolist()
            if {one.compress_type for one in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise ValueError("its parts must be stored or deflated")  # others may be denser
            total = sum(one.file_size for one in members)
            _check_size(total, limit)
            needed = file.getinfo(_NAME).file_size
            if needed > most_json:
                raise ValueError(f"{_NAME} must have at most {most_json} bytes; it has {needed}")
            text = file.read(_NAME)
            unknown = _unknown_part(json.loads(text))
            arrays = {
                name.removesuffix(".npy"): _parse_array(file.read(name))
                for name in file.namelist()
                if name.endswith(".npy") and not unknown
            }
        if not unknown:
            tree = json.loads(
                text, object_hook=lambda v: arrays[v["array"]] if list(v) == ["array"] else v
            )
            grown = [tree["answers"]["masks"], tree["draws"]]
            _check_size(total + sum(8 * np.size(array) for array in grown), limit)
            return _explanation(tree)
    except Exception as error:  # zip, JSON and arrays fail in many ways on damaged content
        reason = printable(str(error)[:_MAX_REASON]) or type(error).__name__
        raise ValueError(
            f"{source} is not a whole eblime explanation: it may be cut short or damaged "
            f"({reason})."
        ) from error
    raise ValueError(f"{source} {unknown}")


def _tree(explanation: Explanation) -> dict[str, object]:
    scene, post = explanation.scene, explanation.posterior
    if getattr(scene, "domain", None) not in registry.names("domains"):
        raise TypeError(f"A {type(scene).__name__} cannot be saved: its domain is not registered.")
    method, encoded = explanation.method, _is_known(explanation.method)
    answers, masks = _fields_of(explanation.answers), explanation.answers.masks
    small = masks.astype(np.uint8)
    if (small == masks).all():  # zeros and ones take one byte each
        answers["masks"] = small
    return {
        "format": FORMAT,
        **{name: getattr(explanation, name) for name in _PLAIN},
        "generator": explanation.generator if _is_repeatable(explanation) else None,
        "answers": answers,
        "scene": {"domain": scene.domain, "fields": _fields_of(scene)},
        "method": method if encoded else None,
        "summary": {  # what a printed table shows
            "name": post.method,
            **{name: getattr(post, name) for name in _SUMMARY if name != "name"},
            **post.columns(_LEVEL),
        },
        "draws": _draws_to_store(explanation, encoded=encoded),
    }


def _explanation(tree: Any) -> Explanation:
    answers, summary = _answers(tree["answers"]), tree["summary"]
    domain = registry.find("domains", tree["scene"]["domain"])
    scene = domain.scene(**tree["scene"]["fields"])
    domain.check_scene(scene)
    method: Any = _build_method(tree["method"])
    checks.check_fields(summary, _SUMMARY, "`summary.")
    generator = tree["generator"]
    lost = tree["draws"] is not None and generator is None  # draws that cannot be made again
    quick = method is not None and is_quick(method, answers) and not lost
    if not quick:
        posterior = _stored_posterior(answers, summary, tree["draws"])
    else:
        rng = np.random.default_rng(0)
        if generator is not None:
            rng.bit_generator.state = generator
        (posterior,) = fit_each(method, rng, [answers])
    found = Explanation(
        posterior=posterior,
        answers=answers,
        method=NotRefitted(name=posterior.method) if method is None else method,
        scene=scene,
        generator=generator,
        **{name: tree[name] for name in _PLAIN},
    )
    checks.check_object(found, _EXPLANATION, _RULES)
    checks.check_fields(
        {name: found.provenance.get(name) for name in _PROVENANCE}, _PROVENANCE, "`provenance."
    )
    return found


def _answers(fields: Mapping[str, Any]) -> Answers:
    """Answers from the fields of a file, checked like those of a user and made read-only."""
    masks = check_masks(fields["masks"])
    scores = check_scores(fields["scores"], len(masks), ndim=1)
    weights = check_weights(fields["weights"], len(masks))
    for array in (masks, scores, weights):
        array.flags.writeable = False
    made = Answers(**{**fields, "masks": masks, "scores": scores, "weights": weights})
    checks.check_object(made, _ANSWERS)
    return made


def _check_size(needed: int, limit: int) -> None:
    """Refuse a file that unpacks to too much; masks and draws count as 8 bytes per number."""
    if needed > limit:
        raise ValueError(
            f"it must unpack to at most {limit} bytes, but needs {needed}; "
            f"if you trust the file, pass max_bytes={needed}"
        )


def _unknown_part(tree: Any) -> str:
    """What this installation lacks to read the tree of a file; empty if nothing."""
    found, domain = tree["format"], tree["scene"]["domain"]
    if type(found) is not int or found < 1:
        raise ValueError(f"`format` must be a whole number >= 1; got {found!r:.40}")
    if found > FORMAT:
        return (
            f"has format {found!r:.40}; this eblime reads up to format {FORMAT}. "
            "Update it: pip install -U eblime."
        )
    if isinstance(domain, str) and domain not in registry.names("domains"):
        return (
            f"needs the domain {printable(domain)!r:.60}, which is not installed here. "
            "Install the package that provides it."
        )
    return ""


def _one_size(e: Explanation) -> bool:
    """Whether posterior, scene and answers have the same features."""
    p = e.answers.n_features
    known = (e.posterior.n_features, e.scene.n_features, len(e.scene.features))
    return p <= checks.MOST_FEATURES and known == (p, p, p)


_ANSWERS: dict[str, checks.Check] = {
    "original": checks.optional(checks.number()),
    "hidden": checks.optional(checks.number()),
    "features": checks.optional(checks.NAMES),
    "masks": checks.floats("n", "p"),
    "sampling": checks.optional(checks.floats("n", low=0.0)),
    "rounds": checks.optional(checks.array_of("iu", 1)),
    "noisy": checks.flag(),
    "fixed": checks.optional(checks.array_of("b", 1)),
}
_EXPLANATION = {
    "posterior": checks.instance(Posterior),
    "target": checks.whole(0, _MAX_TARGET),
    "label": checks.text(),
    "prediction": checks.number(),
    "exhaustive": checks.flag(),
    "provenance": checks.plain(),
    "generator": checks.optional(checks.plain()),
}
_OUTPUT = checks.Check(
    must="a name and a number",
    holds=lambda v: isinstance(v, list) and [type(part) for part in v] == [str, float],
)
_PROVENANCE = {  # what is read from it; other entries are only shown
    "seconds": checks.optional(checks.number(low=0.0)),
    "input": checks.optional(checks.plain()),
    "top_classes": checks.optional(checks.list_of(_OUTPUT, "outputs", most=10)),
}
_RULES = {
    "one number of features throughout": _one_size,
    "finite importances": lambda e: bool(np.isfinite(e.posterior.mean).all()),
}


def _parse_array(data: bytes) -> NDArray[np.generic]:
    """An array in NumPy's own format, in native byte order; only plain numbers are accepted."""
    file = io.BytesIO(data)
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)  # `pack` writes in C order
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or len(shape) > _MAX_AXES:
        raise ValueError(f"arrays must hold plain numbers; got dtype {dtype} and shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has another size")
    found = np.frombuffer(data, dtype, offset=file.tell()).reshape(shape)  # not a copy
    return found.astype(dtype.newbyteorder("="), copy=False)


def _dump(tree: object, arrays: Arrays) -> str:
    """A tree of plain values as JSON; arrays are put into `arrays` and replaced by their name.

    A dataclass becomes a record of its name and settings.
    """

    def encode(value: object) -> Any:
        if isinstance(value, np.ndarray):
            name = f"array-{len(arrays)}"
            arrays[name] = value
            return {"array": name}
        if isinstance(value, (np.generic, Mapping)):
            return value.item() if isinstance(value, np.generic) else dict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {"name": type(value).__name__, "settings": _fields_of(value)}
        raise TypeError(f"A {type(value).__name__} cannot be saved.")

    return json.dumps(tree, default=encode)


def _fields_of(value: Any) -> dict[str, Any]:
    fields = dataclasses.fields(value)
    return {field.name: getattr(value, field.name) for field in fields if field.init}


def _is_known(method: object) -> bool:
    """Whether a file can name the method, with all its settings."""
    if not dataclasses.is_dataclass(method) or type(method) not in _known_methods():
        return False
    try:
        _dump(method, {})
    except TypeError:
        return False
    return True


def _build_method(record: Any) -> Any | None:
    """The method of a file, or None where this installation does not have it."""
    name = None if record is None else record["name"]
    kind = next((known for known in _known_methods() if known.__name__ == name), None)
    if kind is None:
        return None
    home = sys.modules[kind.__module__]
    return kind(**{name: _build(value, home) for name, value in record["settings"].items()})


def _build(value: object, home: object) -> Any:
    """A setting; one that is a record is a kernel or belongs to the module of the method."""
    if not isinstance(value, dict):
        return value
    name = value["name"]
    kind = getattr(home, name, None) or getattr(kernels, name, None)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ValueError(f"`{name!s:.60}` is not a known class of settings.")
    return kind(**{key: _build(entry, home) for key, entry in value["settings"].items()})


def _known_methods() -> Iterator[type]:
    """Classes of all methods that the registry can import, the first names first."""
    for name in registry.names("methods"):
        with suppress(Exception):  # a package whose entry point is broken must not break files
            found = registry.find("methods", name)
            yield found if isinstance(found, type) else type(found())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredLaw:
    """Means, standard deviations and 95 % intervals as they were; draws for everything else."""

    columns: Mapping[str, NDArray[np.float64]]  # of a table with 95 % intervals, (p,) each
    drawn: DrawsLaw

    def quantile(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles, (K,) -> (K, p); those of the 95 % interval are not of the draws."""
        tail, found = (1 - _LEVEL) / 2, self.drawn.quantile(q)
        found[q == tail], found[q == 1 - tail] = self.columns["low"], self.columns["high"]
        return found

    def prob_positive(self) -> NDArray[np.float64]:
        """P(beta_j > 0), (p,)."""
        return self.columns["prob_positive"]

    def select(self, features: NDArray[np.intp]) -> StoredLaw:
        """The law of some of the features."""
        columns = {name: values[features] for name, values in self.columns.items()}
        drawn: Any = select_features(self.drawn, features)
        return StoredLaw(columns=columns, drawn=drawn)

    def __getattr__(self, name: str) -> Any:
        """Mean and sd; everything else, such as the covariance and densities, is of the draws."""
        if name.startswith("__"):  # of copy and pickle, before there are fields
            raise AttributeError(name)
        return self.columns[name] if name in ("mean", "sd") else getattr(self.drawn, name)


def _draws_to_store(explanation: Explanation, *, encoded: bool) -> np.ndarray | None:
    """Draws for a reader who does not have the method or would have to wait for a refit.

    `encoded` says whether the file has the method. None if every reader fits it again.
    """
    post, method = explanation.posterior, explanation.method
    if not post.has_spread:
        return None
    law = post.law.drawn if isinstance(post.law, StoredLaw) else post.law
    ours = encoded and type(method).__module__.startswith("eblime.")
    repeatable = _is_repeatable(explanation) or not isinstance(law, DrawsLaw)
    quick = is_quick(method, explanation.answers)
    if ours and repeatable and quick:
        return None
    if isinstance(law, DrawsLaw):
        small = law.draws.beta.astype(np.float32)
        return small if (small == law.draws.beta).all() else law.draws.beta
    n = min(_MAX_DRAWS, max(2, _MAX_NUMBERS // post.n_features))
    return post.sample(n, rng=0).astype(np.float32)


def _is_repeatable(explanation: Explanation) -> bool:
    """Whether the state of the generator is known, and one of the kind of `default_rng`."""
    state = explanation.generator
    return state is not None and state["bit_generator"] == "PCG64"


def _stored_posterior(
    answers: Answers, summary: Mapping[str, Any], draws: np.ndarray | None
) -> Posterior:
    law: Any = PointMass(mean=summary["mean"], method=summary["name"])
    if "sd" in summary:
        if draws is None:
            raise ValueError(
                f"fitting {summary['name']!s:.40} again to {answers.n_masks} masks of "
                f"{answers.n_features} features may take long, and it has no draws"
            )
        checks.check_fields(summary, dict.fromkeys(_COLUMNS, _COLUMN), "`summary.")
        drawn = DrawsLaw(draws=Draws(beta=np.asarray(draws, dtype=np.float64)))
        if drawn.n_features != answers.n_features or not np.isfinite(drawn.draws.beta).all():
            raise ValueError("`draws` must be finite, with one column per feature")
        law = StoredLaw(columns={name: summary[name] for name in _COLUMNS}, drawn=drawn)
    made = Posterior.from_law(
        law,
        answers,
        method=summary["name"],
        estimand=summary["estimand"],
        extras={"intercept": PointValue(value=float(summary["intercept"]))},
    )
    by_function = summary["name"] == "Quadrature"
    known = {"r2": summary["r2"], "held_out": summary["r2_held_out"]}
    return dataclasses.replace(made, **known, by_function=by_function)


_COLUMN = checks.Check(
    must="a float64 array of one axis",
    holds=lambda v: isinstance(v, np.ndarray) and v.dtype == np.float64 and v.ndim == 1,
    axes=("p",),
)
_SUMMARY = {
    "name": checks.text(),
    "estimand": checks.text(),
    "mean": _COLUMN,
    "r2": checks.number(high=1.0, nan=True),
    "r2_held_out": checks.optional(checks.number(high=1.0, nan=True)),
    "intercept": checks.number(),
}
_COLUMNS = ("mean", "sd", "low", "high", "prob_positive")
