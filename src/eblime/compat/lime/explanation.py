"""The results, with lime's attributes and methods."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._files import write_whole
from eblime.compat.lime.exceptions import LimeError
from eblime.posterior import Posterior
from eblime.results.explanation import Explanation as Explained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Weighted = Sequence[tuple[int, float]]  # features and their weights
_PAGE_OPTIONS = {"show_table", "show_all", "text", "opacity"}  # of lime; they have no effect here


@dataclass(eq=False, repr=False)
class Result:
    """What results of all kinds of inputs have: lime's numbers by label, and ours.

    `score` and `local_pred` are those of the last label that was explained, as in lime 0.2.0.1;
    with `top_labels` that is the most likely one. So are `posterior` and `explanation`;
    `explanations` has those of all labels as this library has them, with plots and files.
    """

    local_exp: dict[int, list[tuple[int, float]]] = field(default_factory=dict, init=False)
    intercept: dict[int, float] = field(default_factory=dict, init=False)
    score: float | None = field(default=None, init=False)
    local_pred: object = field(default=None, init=False)
    top_labels: list[int] | None = field(default=None, init=False)
    predict_proba: object = field(default=None, init=False)
    explanations: dict[int, Explained] = field(default_factory=dict, init=False)

    @property
    def explanation(self) -> Explained:
        """The explanation of the last label that was explained."""
        if not self.explanations:
            raise KeyError("There is no posterior: no explainer fitted the weights in `local_exp`.")
        return self.explanations[next(reversed(self.explanations))]

    @property
    def posterior(self) -> Posterior:
        """The posterior of the last label that was explained."""
        return self.explanation.posterior

    def _weights_of(self, label: int) -> list[tuple[int, float]]:
        """Features of a label and their weights; a label that was not explained is refused."""
        if label not in self.local_exp:
            known = ", ".join(str(name) for name in self.local_exp) or "none"
            raise KeyError(f"Label {label!r} was not explained; explained labels: {known}.")
        return self.local_exp[label]

    def _has_own_fit(self, label: int) -> bool:
        """Whether the weights of a label are those of its posterior, not the user's own."""
        weights, e = {weight for _, weight in self._weights_of(label)}, self.explanations.get(label)
        return e is not None and weights <= {0.0, *e.posterior.mean.tolist()}


class DomainMapper:
    """From numbers of features to their names."""

    def map_exp_ids(self, exp: Weighted, **kwargs: object) -> list[tuple[Any, float]]:
        """(feature, weight) pairs with names instead of numbers; here unchanged."""
        return list(exp)


@dataclass(eq=False, repr=False)
class Explanation(Result):
    """The explanation of a row or a text.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import LimeTextExplainer
    >>> good = lambda texts: np.array([[1.0 - ("good" in t), "good" in t] for t in texts])
    >>> explainer = LimeTextExplainer(class_names=["bad", "good"], random_state=0)
    >>> exp = explainer.explain_instance("a good film", good, num_features=1, num_samples=100)
    >>> [(word, round(weight, 1)) for word, weight in exp.as_list()]
    [('good', 1.0)]
    >>> word, weight, low, high = exp.as_list(intervals=True)[0]
    >>> low <= weight <= high
    True
    """

    domain_mapper: Any
    mode: str = "classification"
    class_names: Sequence[object] | None = None
    random_state: object = None

    def __post_init__(self) -> None:
        if self.mode not in ("classification", "regression"):
            raise LimeError(
                f"`mode` must be 'classification' or 'regression'; got {self.mode!r:.60}."
            )
        if self.mode == "regression":
            self.class_names = ["negative", "positive"]
            self.predicted_value: object = None
            self.min_value, self.max_value = 0.0, 1.0
            self.dummy_label = 1

    def available_labels(self) -> list[int]:
        """The labels that were explained, the most likely one first with `top_labels`."""
        if self.mode != "classification":
            raise NotImplementedError("A regression has no labels.")
        return list(self.top_labels or self.local_exp)

    def as_list(
        self, label: int = 1, *, intervals: bool = False, prob: float = 0.95, **kwargs: object
    ) -> list[tuple[Any, ...]]:
        """Features and their weights, the largest first; the label of a regression is ignored.

        With `intervals` both ends of the credible interval of probability `prob` are added: (name,
        weight, low, high). `kwargs` are for `domain_mapper`, such as `positions=True` for a text.
        """
        label = label if self.mode == "classification" else self.dummy_label
        exp = self._weights_of(label)
        pairs = [(name, float(w)) for name, w in self.domain_mapper.map_exp_ids(exp, **kwargs)]
        if not intervals:
            return list(pairs)
        if not self._has_own_fit(label):
            raise ValueError("The weights in `local_exp` are not those of a fit: no intervals.")
        ends = self.explanations[label].posterior.interval(prob).tolist()
        columns = getattr(self.domain_mapper, "feature_indexes", None)  # those of a sparse row
        known = dict(zip(range(len(ends)) if columns is None else columns, ends, strict=True))
        return [(*row, *known.get(j, (0.0, 0.0))) for row, (j, _) in zip(pairs, exp, strict=True)]

    def as_map(self) -> dict[int, list[tuple[int, float]]]:
        """Numbers of features and their weights, by label."""
        return self.local_exp

    def as_pyplot_figure(
        self, label: int = 1, *, figsize: tuple[float, float] | None = None, **kwargs: Any
    ) -> Figure:
        """A pyplot figure: bars, with 95 % intervals where the method has them."""
        from matplotlib import pyplot

        from eblime.plot.style import INK, caption, clean, sign_colour

        title, regression = "Local explanation", self.mode == "regression"
        if not regression and self.class_names is not None:
            title = f"{title} for class {class_name(self.class_names, label)}"
        label = self.dummy_label if regression else label
        certain = self._has_own_fit(label) and self.explanations[label].posterior.has_spread
        rows = self.as_list(label, intervals=certain, **kwargs)[::-1]
        figure = pyplot.figure(figsize=figsize or (6.4, 1.1 + 0.34 * len(rows)), layout="tight")
        axes, places = figure.subplots(), range(len(rows))
        axes.barh(places, [row[1] for row in rows], color=[sign_colour(row[1]) for row in rows])
        if certain:
            axes.hlines(places, *np.array([row[2:] for row in rows]).T, color=INK, linewidth=1.6)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yticks(places, [caption(row[0]) for row in rows])
        axes.set_title(caption(title, 60))
        clean(axes)
        return figure

    def as_html(
        self,
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: object,
    ) -> str:
        """One self-contained page; names and texts in it are escaped.

        lime's `predict_proba`, `show_predicted_value`, `show_table`, `show_all`, `text` and
        `opacity` have no effect: the page always shows the classes, the prediction and the input.
        """
        from eblime.reporting.page import report

        return report(self._shown(labels, kwargs))

    def save_to_file(
        self,
        file_path: str | os.PathLike[str],
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: object,
    ) -> None:
        """Write the page of `as_html` to a file."""
        page = self.as_html(labels, predict_proba, show_predicted_value, **kwargs)
        write_whole(Path(file_path).resolve(), page.encode())

    def show_in_notebook(
        self,
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: object,
    ) -> None:
        """Show the explanations of the labels below the cell of a notebook."""
        from IPython.display import HTML, display

        for e in self._shown(labels, kwargs):
            display(HTML(e._repr_html_()))

    def _shown(
        self, labels: Sequence[int] | None, options: Mapping[str, object]
    ) -> list[Explained]:
        """What a page shows."""
        for name in set(options) - _PAGE_OPTIONS:
            raise TypeError(f"`{name}` is not an option of this page.")
        chosen: Sequence[int] = [1]
        if self.mode == "classification":
            chosen = self.available_labels() if labels is None else labels
        if not all(map(self._has_own_fit, chosen)):
            raise ValueError("The weights in `local_exp` are not those of a fit: use `as_list`.")
        return [self.explanations[label] for label in chosen]


def class_name(names: Any, label: int) -> str:
    """The name of a class, or its number if the class has no name."""
    known = names if isinstance(names, Mapping) else dict(enumerate(() if names is None else names))
    return str(known.get(label, label))
