"""The results for tables and texts, with lime's attributes and methods."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eblime._files import write_whole
from eblime.compat.lime._record import class_name
from eblime.compat.lime._result import Result
from eblime.compat.lime.exceptions import LimeError
from eblime.results.explanation import Explanation as Explained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DomainMapper", "Explanation", "check_mode"]

_DUMMY = 1  # the label of a regression


class DomainMapper:
    """From numbers of features to their names."""

    page_options: tuple[str, ...] = ()  # lime's options of `as_html`; they have no effect here

    def map_exp_ids(self, exp: Any, **kwargs: Any) -> list[tuple[Any, float]]:
        """(feature, weight) pairs with names instead of numbers; here unchanged."""
        return list(exp)


class Explanation(Result):
    """The explanation of a row or a text.

    Parameters
    ----------
    domain_mapper
        Gives names to features.
    mode
        "classification" or "regression".
    class_names
        Names of the classes.
    random_state
        Kept as an attribute.

    Examples
    --------
    `LimeTabularExplainer` and `LimeTextExplainer` return one:

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

    def __init__(
        self,
        domain_mapper: Any,
        mode: str = "classification",
        class_names: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        Result.__init__(self)
        check_mode(mode)
        self.domain_mapper = domain_mapper
        self.mode = mode
        self.random_state = random_state
        self.class_names = class_names
        self.predict_proba: Any = None
        self._columns: Mapping[int, int] | None = None  # of the posterior; None where the same
        if mode == "regression":
            self.class_names = ["negative", "positive"]
            self.predicted_value: Any = None
            self.min_value, self.max_value = 0.0, 1.0
            self.dummy_label = _DUMMY

    def available_labels(self) -> list[int]:
        """The labels that were explained, the most likely one first with `top_labels`."""
        if self.mode != "classification":
            raise NotImplementedError("A regression has no labels.")
        return list(self.top_labels or self.local_exp)

    def as_list(
        self, label: int = 1, *, intervals: bool = False, prob: float = 0.95, **kwargs: Any
    ) -> list[tuple[Any, ...]]:
        """Features and their weights, the largest first.

        Parameters
        ----------
        label
            The label; ignored for a regression.
        intervals
            Whether to add the ends of the credible interval: (name, weight, low, high).
        prob
            Probability of the interval.
        kwargs
            For `domain_mapper`, such as `positions=True` for a text.
        """
        label = label if self.mode == "classification" else self.dummy_label
        exp = self._listed(label)
        named = self.domain_mapper.map_exp_ids(exp, **kwargs)
        pairs = [(name, float(weight)) for name, weight in named]
        if not intervals:
            return list(pairs)
        ends = self._explained(label).posterior.interval(prob)
        if not self._fitted(label):
            raise ValueError("The weights in `local_exp` were changed: they have no intervals.")
        return [(*pair, *self._interval(ends, j)) for pair, (j, _) in zip(pairs, exp, strict=True)]

    def as_map(self) -> dict[int, list[tuple[int, float]]]:
        """Numbers of features and their weights, by label."""
        return self.local_exp

    def as_pyplot_figure(
        self, label: int = 1, *, figsize: tuple[float, float] | None = None, **kwargs: Any
    ) -> Figure:
        """A pyplot figure: bars, with 95 % intervals where the method has them."""
        from eblime.compat.lime._figure import bar_figure

        target = label if self.mode == "classification" else self.dummy_label
        certain = self._fitted(target) and self._explained(target).posterior.has_spread
        rows = self.as_list(label, intervals=certain, **kwargs)
        title = "Local explanation"
        if self.mode == "classification" and self.class_names is not None:
            title = f"{title} for class {class_name(self.class_names, label)}"
        return bar_figure(rows, title, figsize)

    def as_html(
        self,
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: Any,
    ) -> str:
        """One self-contained page; names and texts in it are escaped.

        Parameters
        ----------
        labels
            The labels to show; None shows all.
        predict_proba
            Whether to list the most likely classes.
        show_predicted_value
            Has no effect: the page always names the prediction.
        kwargs
            lime's `show_table`, `show_all` (tables), `text` and `opacity` (texts) are accepted and
            have no effect: the page always shows the row or the text.
        """
        from eblime.reporting.page import report
        from eblime.reporting.weights import weights_page

        chosen = self._labels_to_show(labels, kwargs)
        if all(self._fitted(label) for label in chosen):
            return report(self._shown(chosen, predict_proba))
        return weights_page(self._weights(chosen))

    def save_to_file(
        self,
        file_path: str | os.PathLike[str],
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: Any,
    ) -> None:
        """Write the page of `as_html` to a file."""
        page = self.as_html(labels, predict_proba, show_predicted_value, **kwargs)
        write_whole(Path(file_path).resolve(), page.encode())

    def show_in_notebook(
        self,
        labels: Sequence[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **kwargs: Any,
    ) -> None:
        """Show the explanations of the labels below the cell of a notebook."""
        try:
            from IPython.display import HTML, display
        except ImportError as error:
            raise ImportError(
                "`show_in_notebook` needs IPython: pip install ipython. Outside of a notebook, use "
                "`save_to_file`."
            ) from error
        from eblime.reporting.weights import weights_fragment

        chosen = self._labels_to_show(labels, kwargs)
        if all(self._fitted(label) for label in chosen):
            parts = [entry._repr_html_() for entry in self._shown(chosen, predict_proba)]
        else:
            parts = [weights_fragment(self._weights(chosen))]
        for part in parts:
            display(HTML(part))

    def _labels_to_show(
        self, labels: Sequence[int] | None, options: Mapping[str, Any]
    ) -> list[int]:
        """The labels of a page; unknown options are refused."""
        unknown = sorted(set(options) - set(getattr(self.domain_mapper, "page_options", ())))
        if unknown:
            raise TypeError(f"`{unknown[0]}` is not an option of this page.")
        if self.mode == "regression":
            return [self.dummy_label]
        return self.available_labels() if labels is None else list(labels)

    def _fitted(self, label: Any) -> bool:
        """Whether the weights of a label are those of its posterior, not the user's own."""
        exp = self._listed(label)
        if label not in self._records:
            return False
        mean = self._explained(label).posterior.mean
        places = [self._place(j) for j, _ in exp]
        found = [0.0 if place is None else mean[place] for place in places]
        rounding = 1e-8 * float(np.abs(mean).max())
        return bool(np.allclose([weight for _, weight in exp], found, atol=rounding))

    def _weights(self, labels: Sequence[int]) -> dict[str, list[tuple[Any, ...]]]:
        """Features and weights by the name of the label, for a page without posteriors."""
        if self.mode == "regression":
            return {"prediction": self.as_list()}
        return {class_name(self.class_names, label): self.as_list(label) for label in labels}

    def _shown(self, labels: Sequence[int], predict_proba: bool) -> list[Explained]:
        """The explanations of a page, with or without the other classes."""
        found = [self._explained(label) for label in labels]
        if predict_proba:
            return found
        dropped = "top_classes"
        return [
            replace(e, provenance={k: v for k, v in e.provenance.items() if k != dropped})
            for e in found
        ]

    def choose_labels(
        self, scores: Any, labels: Sequence[int], top_labels: int | None
    ) -> list[int]:
        """The labels to explain, the most likely one last; also keeps the prediction."""
        if self.mode == "regression":
            self.predicted_value = float(scores[0, 0])
            self.min_value, self.max_value = float(scores.min()), float(scores.max())
            return [0]
        self.predict_proba = scores[0]
        return self._choose(scores[0], labels, top_labels)

    def mirror(self) -> None:
        """Make the fit of a regression's only output that of label 1, and its opposite label 0."""
        listed, record = self.local_exp[0], self._records.pop(0)
        self.intercept[_DUMMY] = self.intercept[0]
        self.local_exp[_DUMMY] = listed
        self.local_exp[0] = [(j, -weight) for j, weight in listed]
        self._records[_DUMMY], self._last = record, _DUMMY

    def renumber(self, columns: Sequence[int], least: int) -> None:
        """Number features by the columns of the table, and list zeros up to `least` features.

        For a sparse row, whose posterior has only the columns that the row has.
        """
        self._columns = {column: j for j, column in enumerate(columns)}
        absent = (j for j in itertools.count() if j not in self._columns)
        fillers = [(j, 0.0) for j in itertools.islice(absent, least)]
        for label, exp in self.local_exp.items():
            listed = [(columns[j], weight) for j, weight in exp]
            self.local_exp[label] = listed + fillers[: max(0, least - len(listed))]

    def _interval(self, ends: Any, j: int) -> tuple[float, float]:
        """The interval of a feature; zeros for one that the input does not have."""
        place = self._place(j)
        if place is None:
            return 0.0, 0.0
        return float(ends[place, 0]), float(ends[place, 1])

    def _place(self, j: int) -> int | None:
        """The number of a feature in the posterior; None if the input does not have it."""
        return j if self._columns is None else self._columns.get(j)


def check_mode(mode: str) -> None:
    """Refuse a mode that is not one of the two."""
    if mode not in ("classification", "regression"):
        raise LimeError(f"`mode` must be 'classification' or 'regression'; got {mode!r:.60}.")
