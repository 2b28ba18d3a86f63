"""What results of all kinds of inputs have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eblime.compat.lime._record import Record, Sample, class_name
from eblime.compat.lime._surrogate import Fit
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation as Explained

__all__ = ["Result", "fill"]


class Result:
    """What results of all kinds of inputs have: lime's numbers by label, and ours.

    `score` and `local_pred` are those of the last label that was explained, as in lime 0.2.0.1;
    with `top_labels` that is the most likely one. So are `posterior` and `explanation`.
    """

    def __init__(self) -> None:
        self.local_exp: dict[int, list[tuple[int, float]]] = {}
        self.intercept: dict[int, float] = {}
        self.score: float | None = None
        self.local_pred: Any = None
        self.top_labels: list[int] | None = None
        self._records: dict[int, Record] = {}
        self._built: dict[int, Explained] = {}
        self._last: int | None = None

    @property
    def explanations(self) -> Mapping[int, Explained]:
        """The explanation of each label as this library has it: posterior, plots, files."""
        return {label: self._explained(label) for label in self._records}

    @property
    def explanation(self) -> Explained:
        """The explanation of the last label that was explained."""
        return self._explained(self._last)

    @property
    def posterior(self) -> Posterior:
        """The posterior of the last label that was explained."""
        return self.explanation.posterior

    def _listed(self, label: Any) -> list[tuple[int, float]]:
        """Features of a label and their weights; a label that was not explained is refused."""
        if label not in self.local_exp:
            raise KeyError(_not_explained(label, self.local_exp))
        return self.local_exp[label]

    def _explained(self, label: Any) -> Explained:
        """The explanation of a label, fitted when it is first asked for."""
        if label not in self._records:
            raise KeyError(_not_explained(label, self.local_exp))
        if label not in self._built:
            self._built[label] = self._records[label].explanation()
        return self._built[label]

    def _choose(self, scores: Any, labels: Sequence[int], top_labels: int | None) -> list[int]:
        """The labels to explain, the most likely one last."""
        if not top_labels:
            return [int(label) for label in labels]
        best = [int(label) for label in np.argsort(scores)[-top_labels:]]
        self.top_labels = best[::-1]
        return best

    def _add(self, label: int, fit: Fit, record: Record) -> None:
        """Keep the fit of a label."""
        self.local_exp[label] = list(fit.listed)
        self.intercept[label] = fit.intercept
        self.score, self.local_pred = fit.score, fit.local_pred
        self._records[label], self._last = record, label
        self._built.pop(label, None)


def _not_explained(label: Any, known: Mapping[int, Any]) -> str:
    """The message for a label that has no explanation, or weights only."""
    if known and (label is None or label in known):
        return "There is no posterior: the weights in `local_exp` were not fitted by an explainer."
    names = ", ".join(str(name) for name in known) or "none"
    return f"Label {label!r} was not explained; explained labels: {names}."


def fill(
    result: Result,
    fits: Mapping[int, Fit],
    sample: Sample,
    scores: Any,
    names: Sequence[Any] | None,
) -> None:
    """Put the fits of all labels into a result."""
    for label, fit in fits.items():
        result._add(
            label,
            fit,
            Record(
                sample=sample,
                scores=np.array(scores[:, label]),  # a copy: a view would keep all outputs
                method=fit.method,
                target=label,
                label=class_name(names, label),
            ),
        )
