"""Explanations of rows, with lime's names, settings and draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from eblime._types import FloatArray
from eblime.compat.lime._distances import (
    describe_kernel,
    distances_to_first,
    exponential_kernel,
)
from eblime.compat.lime._random import as_random_state
from eblime.compat.lime._record import Sample, top_classes
from eblime.compat.lime._result import fill
from eblime.compat.lime._table import (
    Neighbours,
    Scaler,
    draw_rows,
    draw_sparse,
    frequencies,
)
from eblime.compat.lime._table_reading import (
    as_row,
    as_rows,
    class_scores,
    column_names,
    column_numbers,
    name_row,
    regression_scores,
)
from eblime.compat.lime.discretize import BaseDiscretizer, named_discretizer
from eblime.compat.lime.explanation import Explanation, check_mode
from eblime.compat.lime.lime_base import Asked, LimeBase, check_settings, fit_asked
from eblime.methods.lime import LIME
from eblime.methods.regression import as_method
from eblime.protocols import Method

__all__ = ["LimeTabularExplainer"]

_STATS = ("means", "mins", "maxs", "stds", "feature_values", "feature_frequencies")


class LimeTabularExplainer:
    """Explains predictions for rows of a table; the parameters are those of lime.

    Parameters
    ----------
    training_data
        Rows, (n, columns): numbers, with categories as whole numbers. An array, a data frame or a
        sparse matrix.
    mode
        "classification" or "regression".
    training_labels
        Classes of the rows, for the entropy discretiser.
    feature_names
        Names of the columns; by default those of the frame, or their numbers.
    categorical_features
        Columns that are categories, by number or by name.
    categorical_names
        Names of the categories, by column.
    kernel_width
        Width of the kernel; None is 0.75 times the root of the number of columns.
    kernel
        A function (distances, kernel_width) -> weights.
    verbose
        Whether to print the intercept and both predictions of each fit.
    class_names
        Names of the classes.
    feature_selection
        "auto", "forward_selection", "highest_weights", "lasso_path" or "none".
    discretize_continuous, discretizer
        Whether to cut numbers into bins, and how: "quartile", "decile", "entropy" or a
        `BaseDiscretizer`.
    sample_around_instance
        Without bins: whether to draw around the row rather than around the mean.
    random_state
        Seed or `RandomState`; None is NumPy's global one.
    training_data_stats
        Statistics to use instead of those of the training data.
    method
        "eblime" (default) gives posteriors, "lime" gives lime's numbers; any method of this
        library.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import LimeTabularExplainer
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 3))
    >>> explainer = LimeTabularExplainer(rows, mode="regression", random_state=0)
    >>> exp = explainer.explain_instance(rows[0], lambda x: x[:, 0] - 2 * x[:, 2], num_features=2)
    >>> [name for name, weight in exp.as_list()]
    ['-0.02 < 2 <= 0.66', '-0.10 < 0 <= 0.66']
    """

    def __init__(
        self,
        training_data: Any,
        mode: str = "classification",
        training_labels: Any = None,
        feature_names: Sequence[Any] | None = None,
        categorical_features: Sequence[int] | None = None,
        categorical_names: Mapping[int, Sequence[Any]] | None = None,
        kernel_width: float | None = None,
        kernel: Callable[..., Any] | None = None,
        verbose: bool = False,
        class_names: Sequence[Any] | None = None,
        feature_selection: str = "auto",
        discretize_continuous: bool = True,
        discretizer: str | BaseDiscretizer = "quartile",
        sample_around_instance: bool = False,
        random_state: Any = None,
        training_data_stats: Mapping[str, Any] | None = None,
        *,
        method: str | Method = "eblime",
    ) -> None:
        check_mode(mode)
        data = as_rows(training_data)
        check_settings(1, 1, feature_selection)
        if training_data_stats:
            self.validate_training_data_stats(training_data_stats)
        self.random_state = as_random_state(random_state)
        self.mode = mode
        self.categorical_names = dict(categorical_names or {})
        self.sample_around_instance = sample_around_instance
        self.training_data_stats = training_data_stats
        self.feature_names = column_names(training_data, feature_names)
        self.categorical_features = column_numbers(categorical_features, self.feature_names)
        self.feature_selection = feature_selection
        self.class_names = class_names
        width = np.sqrt(data.shape[1]) * 0.75 if kernel_width is None else kernel_width
        kernel_fn = partial(kernel or exponential_kernel, kernel_width=float(width))
        self.base = LimeBase(kernel_fn, verbose, self.random_state, method=method)
        self.discretizer: BaseDiscretizer | None = None
        if discretize_continuous and not sparse.issparse(data):
            self.discretizer = self._discretizer(data, discretizer, training_labels)
            self.discretizer.keeps_borders = not isinstance(as_method(method), LIME)
            self.categorical_features = list(range(data.shape[1]))
        self._learn(data)

    @property
    def method(self) -> str | Method:
        """How the linear model is fitted."""
        return self.base.method

    @staticmethod
    def validate_training_data_stats(training_data_stats: Mapping[str, Any]) -> None:
        """Refuse statistics that lack a key."""
        missing = [key for key in _STATS if key not in training_data_stats]
        if missing:
            raise ValueError(f"`training_data_stats` must have {', '.join(missing)}.")

    def explain_instance(
        self,
        data_row: Any,
        predict_fn: Callable[[Any], Any],
        labels: Sequence[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str | Callable[..., Any] = "euclidean",
        model_regressor: Any = None,
    ) -> Explanation:
        """Explain the prediction for a row.

        Parameters
        ----------
        data_row
            One row: an array, a series, or a sparse matrix with one row.
        predict_fn
            From rows to class probabilities, (n, classes), or predictions, (n,).
        labels
            Columns of the model's output to explain; ignored for a regression.
        top_labels
            Explain that many of the most likely classes instead.
        num_features
            How many features to list, at most.
        num_samples
            How many perturbed rows to ask about, with the row itself.
        distance_metric
            How far a perturbed row is from the row: "euclidean", "cosine", "manhattan", another
            metric of SciPy, or a function.
        model_regressor
            A linear regressor of scikit-learn to use instead of `method`.
        """
        check_settings(num_features, num_samples, self.feature_selection)
        row = as_row(data_row, len(self.feature_names))
        drawn = Neighbours.of(row, *self.__data_inverse(row, num_samples))
        scaled = drawn.scaled(self.scaler)
        distances = distances_to_first(scaled, distance_metric)
        mapper, scene = name_row(
            row,
            scaled[0],
            self.feature_names,
            self.categorical_features,
            self.categorical_names,
            self.discretizer,
        )
        scores = self._scores(predict_fn(drawn.inverse))
        result = Explanation(mapper, mode=self.mode, class_names=self.class_names)
        chosen = result.choose_labels(scores, labels, top_labels)
        asked = Asked(
            data=scaled, scores=scores, distances=distances, labels=chosen, features=scene.features
        )
        answers, fits = fit_asked(
            self.base, asked, num_features, self.feature_selection, model_regressor
        )
        about: dict[str, Any] = {"kernel": describe_kernel(self.base, distance_metric)}
        names: Sequence[Any] | None = ["prediction"]
        if self.mode == "classification":
            names = self.class_names
            about |= {"top_classes": top_classes(scores[0], names)}
        sample = Sample.of(answers[0], scene, about)
        fill(result, dict(zip(chosen, fits, strict=True)), sample, scores, names)
        if self.mode == "regression":
            result.mirror()
        if drawn.columns is not None:
            result.renumber(drawn.columns.tolist(), self._listed_at_least(num_features))
        return result

    def _listed_at_least(self, num_features: int) -> int:
        """How many features a sparse row lists, with zeros for those that it does not have."""
        n_columns = len(self.feature_names)
        return n_columns if self.feature_selection == "none" else min(num_features, n_columns)

    def _discretizer(
        self, data: FloatArray, discretizer: str | BaseDiscretizer, labels: Any
    ) -> BaseDiscretizer:
        """The given discretiser, or a new one; statistics of the user come first."""
        kind = "stats" if self.training_data_stats else discretizer
        if isinstance(kind, BaseDiscretizer):
            return kind
        settings = {"labels": labels, "random_state": self.random_state}
        if self.training_data_stats:
            settings["data_stats"] = self.training_data_stats
        return named_discretizer(kind)(
            data, self.categorical_features, self.feature_names, **settings
        )

    def _learn(self, data: Any) -> None:
        """Scales of the columns, and the values and shares of categories and bins."""
        if sparse.issparse(data) and self.categorical_features:
            raise ValueError("`categorical_features` must be empty for sparse training data.")
        self.scaler = Scaler.of(data)
        self.feature_values: dict[int, list[Any]] = {}
        self.feature_frequencies: dict[int, FloatArray] = {}
        stats = self.training_data_stats
        levels = data
        if self.discretizer is not None and not stats:
            levels = self.discretizer.discretize(data)
        for feature in self.categorical_features:
            if stats:
                values = list(stats["feature_values"][feature])
                counts = np.asarray(stats["feature_frequencies"][feature], dtype=float)
                shares = counts / counts.sum()
            else:
                values, shares = frequencies(levels[:, feature])
            self.feature_values[feature] = values
            self.feature_frequencies[feature] = shares
            self.scaler.mean_[feature], self.scaler.scale_[feature] = 0, 1

    def __data_inverse(self, data_row: Any, num_samples: int) -> tuple[Any, Any]:
        """Perturbed rows as the regression and as the model sees them; subclasses may replace it.

        It has lime's name because programs call `_LimeTabularExplainer__data_inverse`.
        """
        row, around = as_row(data_row, len(self.feature_names)), self.sample_around_instance
        if sparse.issparse(row):
            return draw_sparse(
                self.random_state, row, num_samples, around=around, scaler=self.scaler
            )
        centre = row if around else self.scaler.mean_
        levels = {
            column: (self.feature_values[column], self.feature_frequencies[column])
            for column in self.categorical_features
        }
        return draw_rows(
            self.random_state,
            row,
            num_samples,
            normal=(centre, self.scaler.scale_) if self.discretizer is None else None,
            levels=levels,
            discretizer=self.discretizer,
        )

    def _scores(self, predicted: Any) -> FloatArray:
        """The model's answers, (n, outputs); sets the names of the classes if there are none."""
        if self.mode == "regression":
            return regression_scores(predicted)
        scores = class_scores(predicted)
        names = range(scores.shape[1]) if self.class_names is None else self.class_names
        self.class_names = [str(j) for j in names] if self.class_names is None else list(names)
        return scores
