"""Explanations as files: one zip of JSON and plain arrays, no pickle, written atomically.

Format 1: `explanation.json` holds the answers, the method's settings, the scene and a summary of
the posterior, with all that a printed table shows; arrays are `.npy` members beside it.
`stored_posterior.py` says what loading computes.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eblime import _field_checks as checks
from eblime import registry
from eblime._checks import check_masks, check_scores, check_weights
from eblime._files import write_whole
from eblime._text import printable
from eblime.answers import Answers
from eblime.posterior import Posterior
from eblime.results import archive
from eblime.results.archive import Arrays, fields_of
from eblime.results.explanation import Explanation
from eblime.results.stored_posterior import StoredMethod, draws_to_store, read_posterior, summarise

__all__ = ["FORMAT", "UnreadableError", "load", "pack", "save", "unpack"]

FORMAT = 1
_MAX_BYTES = 1 << 30  # of a file, and of what it unpacks to
_SPARE_BYTES = 3 << 26  # that a file of any size may unpack to
_EXPANSION = 50  # bytes that each byte of a file may unpack to, besides
_NAME = "explanation.json"
_MOST_JSON = 1 << 26  # bytes of the part that is JSON
_SPARE_JSON, _JSON_EXPANSION = 1 << 22, 4  # as above; a byte of JSON takes up to 40 in memory
_MOST_MASKS = (1 << 53) - 1
_PLAIN = ("target", "label", "prediction", "exhaustive", "provenance")
_LONGEST_REASON = 300  # characters: an error may quote the file


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
    text = archive.dump(_tree(explanation), arrays)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_NAME, text)
        for name, array in arrays.items():
            file.writestr(f"{name}.npy", archive.array_bytes(array))
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
    content = archive.read_regular(path, _MAX_BYTES if max_bytes is None else max_bytes)
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
            total = archive.check_members(file, len(content))
            _check_size(total, limit)
            text = archive.read_member(file, _NAME, most_json)
            _check_readable(archive.parse(text), source)
            arrays = {
                name.removesuffix(".npy"): archive.parse_array(archive.read_member(file, name))
                for name in file.namelist()
                if name.endswith(".npy")
            }
        tree = archive.parse(text, arrays)
        grown = [a for a in (tree["answers"]["masks"], tree["draws"]) if isinstance(a, np.ndarray)]
        _check_size(total + sum(8 * array.size for array in grown), limit)
        found = _explanation(tree, refit=refit)
        checks.check_object(found, _EXPLANATION, _RULES)
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
    method = archive.describe_method(explanation.method)
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
    method = archive.build_method(tree["method"])
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
    "noisy": checks.flag(),
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
_RULES = {
    "one number of features throughout": _one_size,
    "finite importances": lambda e: bool(np.isfinite(e.posterior.mean).all()),
    "a number of seconds in its provenance": lambda e: _SECONDS.holds(e.provenance.get("seconds")),
}
