"""Explanations as files: one zip of JSON and plain arrays, no pickle, written atomically.

Format 1: `explanation.json` holds the answers, the method's settings, the scene and a summary of
the posterior, with all that a printed table shows; arrays are `.npy` members beside it. Sizes are
compared with a limit before anything is decompressed. JSON can only name methods that are
registered, and settings that are dataclasses of a method's module or kernels.

A method that the reader has is fitted again, and the result is compared with the summary. If the
method is missing, or fitting it would take more than a few seconds, the posterior is rebuilt from
the summary, which has the exact table of the importances, and from draws.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime import _field_checks as checks
from eblime import kernels, registry
from eblime._checks import check_masks, check_scores, check_weights
from eblime._files import write_whole
from eblime._text import printable
from eblime._warn import warn_user
from eblime.answers import Answers
from eblime.core.derived import select_features
from eblime.core.fit_quality import HeldOut, score_range
from eblime.core.laws import Draws, DrawsLaw, PointMass, PointValue
from eblime.methods.regression import fit_each, is_quick
from eblime.posterior import Posterior
from eblime.protocols import Method
from eblime.results.explanation import Explanation

FORMAT = 1
Arrays = dict[str, NDArray[Any]]
_MAX_BYTES = 1 << 30  # of a file, and of what it unpacks to
_SPARE_BYTES = 3 << 26  # that a file of any size may unpack to
_EXPANSION = 50  # bytes that each byte of a file may unpack to, besides
_NAME = "explanation.json"
_MOST_JSON = 1 << 26  # bytes of the part that is JSON
_SPARE_JSON, _JSON_EXPANSION = 1 << 22, 4  # as above; a byte of JSON takes up to 40 in memory
_MOST_MASKS = (1 << 53) - 1
_PLAIN = ("target", "label", "prediction", "exhaustive", "provenance")
_LONGEST_REASON = 300  # characters: an error may quote the file
_MOST_MEMBERS = 1000
_MOST_AXES = 4
_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LEVEL = 0.95  # of the stored intervals
_MOST_DRAWS, _MOST_NUMBERS = 4_000, 4_000_000  # draws that are stored, and numbers in them
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # those of NumPy
_NEAR = 1e-6  # of a standard deviation, by which a refit may differ


class UnreadableError(ValueError):
    """A file needs a later eblime, or a package that is not installed."""


def save(explanation: Explanation, path: str | os.PathLike[str]) -> Path:
    """Write an explanation to one file; the file appears whole or not at all."""
    target = Path(path)
    write_whole(target, pack(explanation))
    return target


def pack(explanation: Explanation) -> bytes:
    """An explanation as the content of a file."""
    arrays: Arrays = {}
    text = dump(_tree(explanation), arrays)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_NAME, text)
        for name, array in arrays.items():
            file.writestr(f"{name}.npy", array_bytes(array))
    return buffer.getvalue()


def load(
    path: str | os.PathLike[str], *, max_bytes: int | None = None, refit: bool = False
) -> Explanation:
    """Read an explanation that `Explanation.save` wrote.

    The file may come from anybody: no code in it is run, sizes are checked before anything is
    unpacked, values that do not fit together are refused, and no fit is made that takes long.

    Parameters
    ----------
    path
        A regular file.
    max_bytes
        How large the file may be, also once it is unpacked. None allows 192 MiB and 50 times the
        size of the file, at most 1 GiB.
    refit
        Fit the method again however long that takes. Otherwise many masks or features have the
        stored table of the importances, and stored draws for everything else.

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
    content = read_regular(path, _MAX_BYTES if max_bytes is None else max_bytes)
    return unpack(content, Path(path), max_bytes=max_bytes, refit=refit)


def unpack(
    content: bytes, source: object, *, max_bytes: int | None = None, refit: bool = False
) -> Explanation:
    """Read an explanation from the content of a file; error messages name the source."""
    limit, most_json = max_bytes, _MOST_JSON
    if limit is None:
        limit = min(_MAX_BYTES, _SPARE_BYTES + _EXPANSION * len(content))
        most_json = min(_MOST_JSON, _SPARE_JSON + _JSON_EXPANSION * len(content))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            total = check_members(file, len(content))
            _check_size(total, limit)
            text = read_member(file, _NAME, most_json)
            _check_readable(parse(text), source)
            arrays = {
                name.removesuffix(".npy"): parse_array(read_member(file, name))
                for name in file.namelist()
                if name.endswith(".npy")
            }
        tree = parse(text, arrays)
        grown = [a for a in (tree["answers"]["masks"], tree["draws"]) if isinstance(a, np.ndarray)]
        _check_size(total + sum(8 * array.size for array in grown), limit)
        found = _explanation(tree, refit=refit)
        checks.check_object(found, _EXPLANATION, _RULES)
        known = {name: found.provenance.get(name) for name in _PROVENANCE}
        checks.check_fields(known, _PROVENANCE, "`provenance.")
        return found
    except UnreadableError:
        raise
    except Exception as error:  # zip, JSON and arrays fail in many ways on damaged content
        reason = printable(str(error)[:_LONGEST_REASON]) or type(error).__name__
        raise ValueError(
            f"{source} is not a whole eblime explanation: it may be cut short or damaged "
            f"({reason})."
        ) from error


def _tree(explanation: Explanation) -> dict[str, Any]:
    """An explanation as plain values and arrays."""
    scene = explanation.scene
    if getattr(scene, "domain", None) not in registry.names("domains"):
        raise TypeError(f"A {type(scene).__name__} cannot be saved: its domain is not registered.")
    method = describe_method(explanation.method)
    answers, small = fields_of(explanation.answers), explanation.masks.astype(np.uint8)
    if (small == explanation.masks).all():  # zeros and ones take one byte each
        answers["masks"] = small
    state = json.dumps(explanation.generator, default=lambda part: part.tolist())
    return {
        "format": FORMAT,
        **{name: getattr(explanation, name) for name in _PLAIN},
        "generator": json.loads(state),
        "answers": answers,
        "scene": {"domain": scene.domain, "fields": fields_of(scene)},
        "method": method,
        "summary": summarise(explanation.posterior),
        "draws": draws_to_store(explanation, encoded=method is not None),
    }


def _explanation(tree: Any, *, refit: bool) -> Explanation:
    """The explanation of a file."""
    answers = _answers(tree["answers"])
    domain = registry.find("domains", tree["scene"]["domain"])
    scene = domain.scene(**tree["scene"]["fields"])
    domain.check_scene(scene)
    method = build_method(tree["method"])
    posterior = read_posterior(
        method,
        answers,
        tree["summary"],
        draws=tree["draws"],
        generator=tree["generator"],
        exhaustive=tree["exhaustive"] is True,
        refit=refit,
    )
    return Explanation(
        posterior=posterior,
        answers=answers,
        method=StoredMethod(name=posterior.method) if method is None else method,
        scene=scene,
        generator=tree["generator"],
        **{name: tree[name] for name in _PLAIN},
    )


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


def _check_readable(tree: Any, source: object) -> None:
    """Refuse a format that no eblime, or a later one, wrote, and a domain that is not installed."""
    found, domain = tree["format"], tree["scene"]["domain"]
    if type(found) is not int or found < 1:
        raise ValueError(f"`format` must be a whole number >= 1; got {found!r:.40}")
    if found > FORMAT:
        raise UnreadableError(
            f"{source} has format {found!r:.40}; this eblime reads up to format {FORMAT}. "
            "Update it: pip install -U eblime."
        )
    if isinstance(domain, str) and domain not in registry.names("domains"):
        raise UnreadableError(
            f"{source} needs the domain {printable(domain)!r:.60}, which is not installed here. "
            "Install the package that provides it."
        )


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
    "scores": checks.floats("n"),
    "weights": checks.floats("n", low=0.0),
    "sampling": checks.optional(checks.floats("n", low=0.0)),
    "rounds": checks.optional(checks.array_of("iu", 1)),
    "noisy": checks.flag(),
    "fixed": checks.optional(checks.array_of("b", 1)),
}
_SECONDS = checks.optional(checks.number(low=0.0))
_EXPLANATION = {
    "posterior": checks.instance(Posterior),
    "target": checks.whole(0, _MOST_MASKS),
    "label": checks.text(),
    "prediction": checks.number(),
    "exhaustive": checks.flag(),
    "provenance": checks.plain(),
    "generator": checks.optional(checks.plain()),
}
_PROVENANCE = {  # what is read from it; other entries are only shown
    "seconds": _SECONDS,
    "input": checks.optional(checks.plain()),
}
_RULES = {
    "one number of features throughout": _one_size,
    "finite importances": lambda e: bool(np.isfinite(e.posterior.mean).all()),
}


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read a file of at most `limit` bytes; pipes, devices and folders are refused unread."""
    options = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, os.O_RDONLY | options)  # non-blocking: a pipe must not hang
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{os.fspath(path)} must be a regular file; it is not.")
        if found.st_size > limit:
            raise ValueError(
                f"{os.fspath(path)} must have at most {limit} bytes; it has {found.st_size}."
            )
        with open(handle, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(handle)


def check_members(archive: zipfile.ZipFile, size: int) -> int:
    """The bytes that all members unpack to, as the archive states; strange archives are refused.

    `size` is that of the archive itself: members that share their bytes add up to more.
    """
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise ValueError(f"it must have at most {_MOST_MEMBERS} parts; it has {len(members)}")
    if len({member.filename for member in members}) < len(members):
        raise ValueError("its parts must have different names")
    if any(member.compress_type not in _COMPRESSION for member in members):
        raise ValueError("its parts must be stored or deflated")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("its parts must not overlap")
    return sum(member.file_size for member in members)


def read_member(archive: zipfile.ZipFile, name: str, limit: int | None = None) -> bytes:
    """Decompress one member, which `check_members` has passed."""
    member = archive.getinfo(name)
    if limit is not None and member.file_size > limit:
        raise ValueError(f"{name} must have at most {limit} bytes; it has {member.file_size}")
    return archive.read(member)  # reads no more than the size that the archive states


def parse_array(data: bytes) -> NDArray[Any]:
    """An array in NumPy's own format, in native byte order; only plain numbers are accepted."""
    file = io.BytesIO(data)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, fortran, dtype = readers[np.lib.format.read_magic(file)](file)
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or len(shape) > _MOST_AXES:
        raise ValueError(f"arrays must hold plain numbers; got dtype {dtype} and shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has another size")
    found = np.frombuffer(data, dtype, offset=file.tell())  # not a copy
    found = found.reshape(shape, order="F" if fortran else "C")
    return np.ascontiguousarray(found, dtype=dtype.newbyteorder("=")).reshape(shape)


def array_bytes(array: NDArray[Any]) -> bytes:
    """An array in NumPy's own format."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def dump(tree: Any, arrays: Arrays) -> str:
    """A tree of plain values as JSON; arrays are put into `arrays` and replaced by their name."""

    def encode(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            name = f"array-{len(arrays)}"
            arrays[name] = value
            return {"array": name}
        if isinstance(value, (np.generic, Mapping)):
            return value.item() if isinstance(value, np.generic) else dict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {"dataclass": type(value).__name__, "fields": fields_of(value)}
        raise TypeError(f"A {type(value).__name__} cannot be saved.")

    return json.dumps(tree, default=encode)


def parse(text: bytes, arrays: Mapping[str, NDArray[Any]] | None = None) -> Any:
    """The tree of JSON, with its arrays in place of their names; names stay without `arrays`."""

    def decode(value: dict[str, Any]) -> Any:
        return value if arrays is None or list(value) != ["array"] else arrays[value["array"]]

    return json.loads(text, object_hook=decode)


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, from which it can be built again."""
    fields = dataclasses.fields(value)
    return {field.name: getattr(value, field.name) for field in fields if field.init}


def describe_method(method: Any) -> dict[str, Any] | None:
    """A method by its class and settings; None if it cannot be built again from them."""
    if not dataclasses.is_dataclass(method) or type(method) not in _known_methods().values():
        return None
    settings = fields_of(method)
    try:
        dump(settings, {})
    except TypeError:
        return None
    return {"class": type(method).__name__, "settings": settings}


def build_method(stored: Any) -> Any | None:
    """The method of a file, or None where this installation does not have it."""
    kind = None if stored is None else _known_methods().get(stored["class"])
    if kind is None:
        return None
    home = sys.modules[kind.__module__]
    return kind(**{name: _build(value, home) for name, value in stored["settings"].items()})


def _build(value: Any, home: Any) -> Any:
    """A setting; one that is a dataclass is a kernel or belongs to the module of the method."""
    if not (isinstance(value, dict) and "dataclass" in value):
        return value
    name = value["dataclass"]
    kind = getattr(home, name, None) or getattr(kernels, name, None)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ValueError(f"`{name!s:.60}` is not a known class of settings.")
    return kind(**{key: _build(entry, home) for key, entry in value["fields"].items()})


def _known_methods() -> dict[str, type]:
    """Classes of all methods that the registry can import, by name."""
    found: dict[str, type] = {}
    for name in registry.names("methods"):
        try:
            kind = type(registry.find("methods", name)())
        except Exception:  # a package whose entry point is broken must not break files
            continue
        found.setdefault(kind.__name__, kind)
    return found


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredMethod:
    """A placeholder for a method that this installation does not have."""

    name: str

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Refused: the method is not installed."""
        raise ValueError(
            f"{self.name} is not installed here. Choose another method, or install the package "
            "that provides it."
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredLaw:
    """Means, standard deviations and 95 % intervals as they were; draws for everything else."""

    mean: NDArray[np.float64]  # (p,)
    columns: Mapping[str, NDArray[np.float64]]  # of a table with 95 % intervals, (p,) each
    drawn: DrawsLaw

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.mean)

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviations, (p,)."""
        return self.columns["sd"]

    def quantile(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles, (K,) -> (K, p); those of the 95 % interval are not of the draws."""
        tail = (1 - _LEVEL) / 2
        if np.array_equal(q, [tail, 1 - tail]):  # no draws need to be sorted
            return np.stack([self.columns["low"], self.columns["high"]])
        found = self.drawn.quantile(q)
        found[q == tail], found[q == 1 - tail] = self.columns["low"], self.columns["high"]
        return found

    def prob_positive(self) -> NDArray[np.float64]:
        """P(beta_j > 0), (p,)."""
        return self.columns["prob_positive"]

    def select(self, features: NDArray[np.intp]) -> StoredLaw:
        """The law of some of the features."""
        columns = {name: values[features] for name, values in self.columns.items()}
        drawn: Any = select_features(self.drawn, features)
        return StoredLaw(mean=self.mean[features], columns=columns, drawn=drawn)

    def __getattr__(self, name: str) -> Any:
        """Everything else: the covariance, densities, joint probabilities and draws."""
        if name.startswith("__"):  # of copy and pickle, before there are fields
            raise AttributeError(name)
        return getattr(self.drawn, name)


def summarise(post: Posterior) -> dict[str, Any]:
    """What a printed table shows; a refit is compared with it, or it replaces the refit."""
    return {
        "name": post.method,
        "estimand": post.estimand,
        "mean": post.mean,
        "r2": post.r2,
        "r2_held_out": post.r2_held_out,
        "ess": post.ess,
        "intercept": post.intercept,
        **post.columns(_LEVEL),
    }


def draws_to_store(explanation: Explanation, *, encoded: bool) -> NDArray[Any] | None:
    """Draws for a reader who does not have the method or would have to wait for a refit.

    `encoded` says whether the file has the method. None if every reader fits it again.
    """
    post, method = explanation.posterior, explanation.method
    if not post.has_spread:
        return None
    law = post.law.drawn if isinstance(post.law, StoredLaw) else post.law
    ours = encoded and type(method).__module__.startswith("eblime.")
    repeatable = explanation.generator is not None or not isinstance(law, DrawsLaw)
    quick = is_quick(method, explanation.answers, exhaustive=explanation.exhaustive)
    if ours and repeatable and quick:
        return None
    if isinstance(law, DrawsLaw):
        small = law.draws.beta.astype(np.float32)
        return small if (small == law.draws.beta).all() else law.draws.beta
    n = min(_MOST_DRAWS, max(2, _MOST_NUMBERS // post.n_features))
    return post.sample(n, rng=0).astype(np.float32)


def read_posterior(
    method: Method | None,
    answers: Answers,
    summary: Mapping[str, Any],
    *,
    draws: NDArray[Any] | None,
    generator: Mapping[str, Any] | None,
    exhaustive: bool,
    refit: bool,
) -> Posterior:
    """The posterior of a file: `summary` and `draws` are of `summarise` and `draws_to_store`.

    `method` is None if it is not installed. With `refit` it is fitted even if that takes long, by
    a generator in the stored state.
    """
    checks.check_fields(summary, _SUMMARY, "`summary.")
    lost = draws is not None and generator is None  # draws that cannot be made again
    if method is None or not (
        refit or (is_quick(method, answers, exhaustive=exhaustive) and not lost)
    ):
        return _stored_posterior(answers, summary, draws, exhaustive=exhaustive)
    found = fit_each(method, _generator_in(generator), [answers], exhaustive=exhaustive)[0]
    _compare(found, summary)
    if isinstance(found.held_out, float) or summary["r2_held_out"] is None:
        return found
    return dataclasses.replace(found, held_out=HeldOut.known(summary["r2_held_out"]))


def _generator_in(state: Mapping[str, Any] | None) -> np.random.Generator:
    """A generator in the given state; that of seed 0 if None."""
    if state is None:
        return np.random.default_rng(0)
    kind = state["bit_generator"]
    if kind not in _GENERATORS:
        raise ValueError(f"`generator` must be one of {', '.join(_GENERATORS)}; got {kind!r:.40}")
    bits = getattr(np.random, kind)(0)
    bits.state = state
    return np.random.Generator(bits)


def _compare(posterior: Posterior, summary: Mapping[str, Any]) -> None:
    """Warn if a refit gives other importances than those of the file."""
    largest = np.abs(summary["mean"]).max()
    gap = np.abs(posterior.mean - summary["mean"])
    if not (gap <= _NEAR * (summary.get("sd", largest) + largest) + 1e-300).all():
        warn_user(
            "Fitting the stored answers again gives other importances than when the file was "
            f"written (largest difference {gap.max():.3g}): this version of eblime computes "
            f"{posterior.method} differently."
        )


def _stored_posterior(
    answers: Answers, summary: Mapping[str, Any], draws: NDArray[Any] | None, *, exhaustive: bool
) -> Posterior:
    """The posterior without a fit."""
    law: Any = PointMass(mean=summary["mean"], method=summary["name"])
    if "sd" in summary:
        if draws is None:
            raise ValueError(
                f"fitting {summary['name']!s:.40} again to {answers.n_masks} masks of "
                f"{answers.n_features} features may take long; if you trust the file, pass "
                "refit=True"
            )
        checks.check_fields(summary, _COLUMNS, "`summary.")
        drawn = DrawsLaw(draws=Draws(beta=np.asarray(draws, dtype=np.float64)))
        if drawn.n_features != answers.n_features or not np.isfinite(drawn.draws.beta).all():
            raise ValueError("`draws` must be finite, with one column per feature")
        columns = {name: summary[name] for name in ("sd", "low", "high", "prob_positive")}
        law = StoredLaw(mean=summary["mean"], columns=columns, drawn=drawn)
    held_out: Any = summary["r2_held_out"]
    if held_out is not None:  # all masks leave nothing to hold out
        held_out = float(held_out) if exhaustive else HeldOut.known(held_out)
    return Posterior(
        law=law,
        estimand=summary["estimand"],
        method=summary["name"],
        n_masks=answers.n_masks,
        r2=float(summary["r2"]),
        held_out=held_out,
        score_range=score_range(answers.scores, answers.weights),
        ess=float(summary["ess"]),
        extras={"intercept": PointValue(value=float(summary["intercept"]))},
        by_function=summary["name"] == "Quadrature",
    )


def _is_column(value: Any) -> bool:
    """Whether a value is a column of a table."""
    return isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1


_COLUMN = checks.Check(must="a float64 array of one axis", holds=_is_column, axes=("p",))
_SUMMARY = {
    "name": checks.text(),
    "estimand": checks.text(),
    "mean": _COLUMN,
    "r2": checks.number(high=1.0, nan=True),
    "r2_held_out": checks.optional(checks.number(high=1.0, nan=True)),
    "ess": checks.number(low=0.0),
    "intercept": checks.number(),
}
_COLUMNS = dict.fromkeys(("mean", "sd", "low", "high", "prob_positive"), _COLUMN)
