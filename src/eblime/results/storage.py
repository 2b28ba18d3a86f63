"""Explanations as files: one zip of JSON and plain arrays, no pickle, written atomically.

Layout, schema 2: `explanation.json` holds the answers, the method's settings, the scene and a
summary; arrays are `.npy` members beside it. Loading fits the method to the answers again, which
takes milliseconds, and compares the result with the summary. For a method that the reader does
not have, the posterior is rebuilt from stored draws. Schema 1 is read by `legacy`.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eblime import registry
from eblime._field_checks import check_object
from eblime._files import write_whole
from eblime._text import printable
from eblime.answers import Answers
from eblime.results.codec import (
    Arrays,
    decode,
    decode_method,
    encode,
    encode_fields,
    encode_method,
)
from eblime.results.explanation import Explanation
from eblime.results.file_archive import check_members, parse_array, read_member, read_regular
from eblime.results.file_layouts import EXPLANATION, POSTERIOR, checked_answers
from eblime.results.generator import plain_state
from eblime.results.legacy import read_schema_1
from eblime.results.stored_posterior import (
    StoredMethod,
    read_posterior,
    stored_draws,
    summarise,
)

__all__ = [
    *("MAX_BYTES", "SCHEMA", "NewerSchemaError", "UnknownDomainError"),
    *("load", "packed", "save", "unpacked"),
]

SCHEMA = 2
MAX_BYTES = 1 << 30  # of a file, and of what it unpacks to
_NAME = "explanation.json"
_MOST_JSON = 1 << 26  # bytes of the part that is JSON
_LONGEST_REASON = 300  # characters: an error may quote the file


class NewerSchemaError(ValueError):
    """A file was written by a later eblime."""


class UnknownDomainError(ValueError):
    """A file needs a domain of a package that is not installed."""


def save(explanation: Explanation, path: str | os.PathLike[str]) -> Path:
    """Write an explanation to one file; the file appears whole or not at all."""
    target = Path(path)
    write_whole(target, packed(explanation))
    return target


def packed(explanation: Explanation) -> bytes:
    """An explanation as the content of a file."""
    arrays: Arrays = {}
    tree = _tree(explanation, arrays)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_NAME, json.dumps(tree, allow_nan=True))
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", _array_bytes(array))
    return buffer.getvalue()


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Explanation:
    """Read an explanation that `Explanation.save` wrote.

    The file may come from anybody: no code in it is run, sizes are checked before anything is
    unpacked, and values that do not fit together are refused.

    Parameters
    ----------
    path
        A regular file.
    max_bytes
        How large the file may be, also once it is unpacked; 1 GiB by default.

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
    return unpacked(read_regular(path, max_bytes), Path(path), max_bytes=max_bytes)


def unpacked(content: bytes, source: object, *, max_bytes: int = MAX_BYTES) -> Explanation:
    """Read an explanation from the content of a file; error messages name the source."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_members(archive, len(content), max_bytes)
            tree = json.loads(read_member(archive, _NAME, _MOST_JSON))
            schema = _checked_schema(tree, source)
            _check_domain(tree, schema, source)
            members = [name for name in archive.namelist() if name.endswith(".npy")]
            arrays = {
                name.removesuffix(".npy"): parse_array(read_member(archive, name))
                for name in members
            }
        found = read_schema_1(tree, arrays) if schema == 1 else _explanation(tree, arrays)
        check_object(found.posterior, POSTERIOR)
        check_object(found, EXPLANATION)
        return found
    except (NewerSchemaError, UnknownDomainError):
        raise
    except Exception as error:  # zip, JSON and arrays fail in many ways on damaged content
        reason = printable(str(error)[:_LONGEST_REASON]) or type(error).__name__
        raise ValueError(
            f"{source} is not a whole eblime explanation: it may be cut short or damaged "
            f"({reason})."
        ) from error


def _tree(explanation: Explanation, arrays: Arrays) -> dict[str, Any]:
    """An explanation as JSON and arrays."""
    scene = explanation.scene
    if getattr(scene, "domain", None) not in registry.names("domains"):
        raise TypeError(f"A {type(scene).__name__} cannot be saved: its domain is not registered.")
    method = encode_method(explanation.method, arrays)
    ours = _is_ours(method)
    return {
        "schema": SCHEMA,
        "target": explanation.target,
        "label": explanation.label,
        "prediction": explanation.prediction,
        "exhaustive": explanation.exhaustive,
        "provenance": encode(explanation.provenance, arrays),
        "generator": encode(plain_state(explanation.generator), arrays),
        "answers": encode_fields(_compact(explanation.answers), arrays),
        "scene": {"domain": scene.domain, "fields": encode_fields(scene, arrays)},
        "method": method,
        "summary": encode(summarise(explanation.posterior, ours=ours), arrays),
        "draws": encode(stored_draws(explanation, ours=ours), arrays),
    }


def _compact(answers: Answers) -> Answers:
    """Masks of zeros and ones take one byte each in a file."""
    small = answers.masks.astype(np.uint8)
    same = bool((small == answers.masks).all())
    return dataclasses.replace(answers, masks=small) if same else answers  # type: ignore[arg-type]


def _is_ours(method: Any) -> bool:
    """Whether every installation of eblime has the method."""
    kind = type(decode_method(method, {})) if isinstance(method, dict) else None
    return kind is not None and kind.__module__.startswith("eblime.")


def _explanation(tree: Any, arrays: Arrays) -> Explanation:
    """The explanation of a file of schema 2."""
    plain = {name: decode(tree[name], arrays) for name in ("provenance", "generator", "summary")}
    answers = _answers(tree["answers"], arrays)
    domain = registry.find("domains", tree["scene"]["domain"])
    fields = tree["scene"]["fields"]
    scene = domain.scene(**{name: decode(value, arrays) for name, value in fields.items()})
    domain.check_scene(scene)
    method = decode_method(tree["method"], arrays)
    posterior = read_posterior(
        method,
        answers,
        plain["summary"],
        draws=decode(tree["draws"], arrays),
        generator=plain["generator"],
        exhaustive=tree["exhaustive"] is True,
    )
    return Explanation(
        posterior=posterior,
        answers=answers,
        method=StoredMethod(name=posterior.method) if method is None else method,
        scene=scene,
        target=tree["target"],
        label=tree["label"],
        prediction=tree["prediction"],
        exhaustive=tree["exhaustive"],
        provenance=plain["provenance"],
        generator=plain["generator"],
    )


def _answers(fields: Any, arrays: Arrays) -> Answers:
    """The answers of a file, checked like those of a user."""
    return checked_answers({name: decode(value, arrays) for name, value in fields.items()})


def _checked_schema(tree: Any, source: object) -> int:
    """Refuse a file that a later eblime wrote, and a schema that no eblime wrote."""
    schema = tree["schema"]
    if type(schema) is not int or schema < 1:
        raise ValueError(f"`schema` must be a whole number >= 1; got {schema!r:.40}")
    if schema > SCHEMA:
        raise NewerSchemaError(
            f"{source} has schema {schema!r:.40}; this eblime reads up to schema {SCHEMA}. "
            "Update it: pip install -U eblime."
        )
    return schema


def _check_domain(tree: Any, schema: int, source: object) -> None:
    """Refuse a file of a domain that is not installed; schema 1 has built-in domains only."""
    name = tree["scene"]["domain"] if schema > 1 else None
    if isinstance(name, str) and name not in registry.names("domains"):
        raise UnknownDomainError(
            f"{source} needs the domain {printable(name)!r:.60}, which is not installed here. "
            "Install the package that provides it."
        )


def _array_bytes(array: NDArray[Any]) -> bytes:
    """An array in NumPy's own format."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()
