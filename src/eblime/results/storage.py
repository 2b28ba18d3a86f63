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
from eblime._field_checks import check_object, number
from eblime._files import write_whole
from eblime._text import printable
from eblime._warn import warn_user
from eblime.answers import Answers
from eblime.core.draws import Draws, DrawsLaw
from eblime.core.fit_quality import score_range
from eblime.core.point import PointMass, PointValue
from eblime.methods.regression import fit_each, with_all_masks
from eblime.posterior import Posterior
from eblime.protocols import Law
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
from eblime.results.legacy import read_schema_1

__all__ = [
    *("MAX_BYTES", "SCHEMA", "NewerSchemaError", "UnknownDomainError"),
    *("load", "packed", "save", "unpacked"),
]

SCHEMA = 2
MAX_BYTES = 1 << 30  # of a file, and of what it unpacks to
_NAME = "explanation.json"
_MOST_JSON = 1 << 26  # bytes of the part that is JSON
_LONGEST_REASON = 300  # characters: an error may quote the file
_DRAWS = 4_000  # stored for methods that a reader may not have
_NEAR = 1e-6  # of a standard deviation, by which a refit may differ


class NewerSchemaError(ValueError):
    """A file was written by a later eblime."""


class UnknownDomainError(ValueError):
    """A file needs a domain of a package that is not installed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredMethod:
    """A placeholder for a method that this installation does not have."""

    name: str

    def fit(self, rng: np.random.Generator, answers: Answers) -> Posterior:
        """Refused: the method is not installed."""
        raise ValueError(
            f"{self.name} is not installed here; its posterior was rebuilt from stored draws. "
            "Choose another method, or install the package that provides it."
        )


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
    post, answers, scene = explanation.posterior, explanation.answers, explanation.scene
    if getattr(scene, "domain", None) not in registry.names("domains"):
        raise TypeError(f"A {type(scene).__name__} cannot be saved: its domain is not registered.")
    method = encode_method(explanation.method, arrays)
    return {
        "schema": SCHEMA,
        "target": explanation.target,
        "label": explanation.label,
        "prediction": explanation.prediction,
        "exhaustive": explanation.exhaustive,
        "provenance": encode(explanation.provenance, arrays),
        "generator": encode(explanation.generator, arrays),
        "answers": encode_fields(_compact(answers), arrays),
        "scene": {"domain": scene.domain, "fields": encode_fields(scene, arrays)},
        "method": method,
        "summary": encode(_summary(post, ours=_is_ours(method)), arrays),
        "draws": encode(_stored_draws(explanation, ours=_is_ours(method)), arrays),
    }


def _compact(answers: Answers) -> Answers:
    """Masks of zeros and ones take one byte each in a file."""
    small = answers.masks.astype(np.uint8)
    same = bool((small == answers.masks).all())
    return dataclasses.replace(answers, masks=small) if same else answers  # type: ignore[arg-type]


def _summary(post: Posterior, *, ours: bool) -> dict[str, Any]:
    """The numbers that a refit is compared with, and that replace it if the method is unknown."""
    found: dict[str, Any] = {"name": post.method, "estimand": post.estimand, "mean": post.mean}
    found |= {"r2": post.r2, "ess": post.ess, "intercept": post.intercept}
    if not ours:  # a reader who has the method computes it again
        found["r2_held_out"] = post.r2_held_out
    return found | ({"sd": post.sd} if post.has_spread else {})


def _stored_draws(explanation: Explanation, *, ours: bool) -> NDArray[Any] | None:
    """Draws that a reader needs: the method may be missing there, or its draws be lost."""
    post = explanation.posterior
    if not post.has_spread:
        return None
    if isinstance(post.law, DrawsLaw) and (explanation.generator is None or not ours):
        return post.law.draws.beta
    return None if ours else post.sample(_DRAWS, rng=0).astype(np.float32)


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
    draws = decode(tree["draws"], arrays)
    posterior = _posterior(method, answers, plain | {"exhaustive": tree["exhaustive"]}, draws)
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


def _posterior(method: Any, answers: Answers, plain: Any, draws: Any) -> Posterior:
    """Fitted again, or rebuilt from draws where the method is not installed."""
    summary = plain["summary"]
    if method is None:
        return _rebuilt(answers, summary, draws)
    generator = np.random.default_rng(0)
    if plain["generator"] is not None:
        generator.bit_generator.state = plain["generator"]
    whole = plain["exhaustive"] is True
    posterior = fit_each(method, generator, [answers], exhaustive=whole)[0]
    if draws is not None and plain["generator"] is None and isinstance(posterior.law, DrawsLaw):
        known = DrawsLaw(draws=Draws(beta=draws), source=posterior.law.source)
        posterior = dataclasses.replace(posterior, law=known, r2=float(summary["r2"]))
        posterior = with_all_masks(posterior, answers) if whole else posterior
    spread = summary.get("sd", np.abs(summary["mean"]).max())
    gap = np.abs(posterior.mean - summary["mean"])
    if not (gap <= _NEAR * (spread + np.abs(summary["mean"]).max()) + 1e-300).all():
        warn_user(
            "Fitting the stored answers again gives other importances than when the file was "
            f"written (largest difference {gap.max():.3g}): this version of eblime computes "
            f"{posterior.method} differently."
        )
    return posterior


def _rebuilt(answers: Answers, summary: Any, draws: Any) -> Posterior:
    """The posterior of a method that is not installed."""
    law: Law
    if draws is None:
        law = PointMass(mean=np.asarray(summary["mean"], dtype=float), method=summary["name"])
    else:
        law = DrawsLaw(draws=Draws(beta=np.asarray(draws, dtype=np.float64)))
    return Posterior(
        law=law,
        estimand=summary["estimand"],
        method=summary["name"],
        n_masks=answers.n_masks,
        r2=float(summary["r2"]),
        held_out=_known_r2(summary.get("r2_held_out")),
        score_range=score_range(answers.scores, answers.weights),
        ess=float(summary["ess"]),
        extras={"intercept": PointValue(value=float(summary["intercept"]))},
    )


def _known_r2(value: Any) -> float | None:
    """A held-out R^2 of a file, checked."""
    if value is not None and not number(high=1.0, nan=True).holds(value):
        raise ValueError(f"`r2_held_out` must be a number <= 1 or null; got {value!r:.40}")
    return None if value is None else float(value)


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
