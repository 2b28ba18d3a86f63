"""Files of schema 1, written before answers and methods were stored as such.

Schema 1 stored the fields of internal classes. Here they are read as plain values: the answers
and the method's settings are found among them, and the method is fitted again.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import numpy as np

from eblime import registry
from eblime.core.draws import Draws, DrawsLaw
from eblime.methods.bayeslime import BayesLIME
from eblime.methods.eblime import EBLIME, PublishedGrid
from eblime.methods.lime import LIME
from eblime.methods.regression import fit_each, with_all_masks
from eblime.results.codec import Arrays, rebuild
from eblime.results.explanation import Explanation
from eblime.results.file_layouts import checked_answers

__all__ = ["read_schema_1"]

_CLASSES: dict[str, Any] = {
    kind.__name__: kind for kind in (BayesLIME, EBLIME, LIME, PublishedGrid)
}
_DOMAINS = {"ImageScene": "image", "TableScene": "tabular", "TextScene": "text"}


def read_schema_1(tree: Any, arrays: Arrays) -> Explanation:
    """The explanation of a file of schema 1."""
    found = _Plain(arrays).decode(tree["explanation"])
    fields = found["fields"]
    known = {name: fields[name] for name in ("masks", "scores", "weights")}
    answers = checked_answers(known | {"original": fields["prediction"]})
    domain = registry.find("domains", _DOMAINS[fields["scene"]["type"]])
    scene = domain.scene(**fields["scene"]["fields"])
    domain.check_scene(scene)
    method = _method(fields["provenance"]["method"])
    whole = fields["exhaustive"] is True
    posterior = fit_each(method, np.random.default_rng(0), [answers], exhaustive=whole)[0]
    law = fields["posterior"]["fields"]["law"]
    if law["type"] == "Empirical":  # draws cannot be made again: schema 1 has no generator
        drawn = _with_draws(posterior, law["fields"]["draws"]["fields"])
        posterior = replace(drawn, r2=fields["posterior"]["fields"]["r2"])
        posterior = with_all_masks(posterior, answers) if whole else posterior
    return Explanation(
        posterior=posterior,
        answers=answers,
        method=method,
        scene=scene,
        target=fields["target"],
        label=fields["label"],
        prediction=fields["prediction"],
        exhaustive=fields["exhaustive"],
        provenance=fields["provenance"],
    )


def _with_draws(posterior: Any, fields: Any) -> Any:
    """The posterior with the stored draws in place of new ones."""
    draws = Draws(
        beta=np.asarray(fields["beta"], dtype=np.float64),
        extras={name: np.asarray(fields[name]) for name in ("sigma2", "lam")},
    )
    return replace(posterior, law=DrawsLaw(draws=draws, source=posterior.law.source))


def _method(printed: str) -> Any:
    """A method from its printed form, `EBLIME(a=1e-06, grid=None)`; no code is run."""
    return _built(ast.parse(printed, mode="eval").body)


def _built(node: ast.expr) -> Any:
    """A constant, or one of our classes with constants as settings."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        kind = _CLASSES[node.func.id]
        return rebuild(kind, {str(entry.arg): _built(entry.value) for entry in node.keywords})
    return ast.literal_eval(node)


class _Plain:
    """Reads the objects of schema 1 as dictionaries; shared objects are read once."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._seen: dict[int, Any] = {}

    def decode(self, value: Any) -> Any:
        """A plain value, or `{"type": ..., "fields": ...}` for an object."""
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self._arrays[str(value["array"])]
        if "list" in value:
            return [self.decode(entry) for entry in value["list"]]
        if "mapping" in value:
            return {self.decode(key): self.decode(entry) for key, entry in value["mapping"]}
        if "ref" in value:
            return self._seen[value["ref"]]
        fields = {name: self.decode(entry) for name, entry in value["fields"].items()}
        made = {"type": value["type"], "fields": fields}
        self._seen[value["number"]] = made
        return made
