"""Explanations of rows with time steps: (time steps, features) as one long row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eblime.compat.lime._tabular import LimeTabularExplainer
from eblime.compat.lime.discretize import BaseDiscretizer
from eblime.compat.lime.explanation import Explanation
from eblime.protocols import Method

__all__ = ["RecurrentTabularExplainer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flattened:
    """The shape of rows with time steps, and their form as long rows.

    A long row has all time steps of the first feature, then those of the second, and so on.
    """

    n_timesteps: int
    n_features: int

    def rows(self, data: Any) -> Any:
        """Rows of shape (n, time steps, features) as long rows."""
        return np.transpose(data, (0, 2, 1)).reshape(len(data), -1)

    def names(self, names: Sequence[Any]) -> list[str]:
        """Names such as "price_t-2"."""
        steps = range(self.n_timesteps)
        return [f"{name}_t-{self.n_timesteps - 1 - k}" for name in names for k in steps]

    def model(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A model of long rows, from a model of rows with time steps."""

        def predict(rows: Any) -> Any:
            shape = (len(rows), self.n_features, self.n_timesteps)
            return function(np.transpose(rows.reshape(shape), (0, 2, 1)))

        return predict


class RecurrentTabularExplainer:
    """Explains models of rows with time steps; other parameters as in `LimeTabularExplainer`.

    Parameters
    ----------
    training_data
        Rows, (n, time steps, features).
    feature_names
        Names of the features; each time step is listed as "name_t-lag".

    Examples
    --------
    Rows of three time steps and two features; the model reads the last step of the first one:

    >>> import numpy as np
    >>> from eblime.compat.lime import RecurrentTabularExplainer
    >>> rows = np.random.default_rng(0).random((60, 3, 2))
    >>> names = ["price", "noise"]
    >>> explainer = RecurrentTabularExplainer(rows, feature_names=names, random_state=0)
    >>> last = lambda batch: np.column_stack([1 - batch[:, -1, 0], batch[:, -1, 0]])
    >>> exp = explainer.explain_instance(rows[0], last, num_features=1, num_samples=300)
    >>> "price_t-0" in exp.as_list()[0][0]
    True
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
        random_state: Any = None,
        *,
        method: str | Method = "eblime",
    ) -> None:
        _, self.n_timesteps, self.n_features = np.shape(training_data)
        self._flat = Flattened(n_timesteps=self.n_timesteps, n_features=self.n_features)
        names = range(self.n_features) if feature_names is None else feature_names
        self._explainer = LimeTabularExplainer(
            self._flat.rows(np.asarray(training_data)),
            mode=mode,
            training_labels=training_labels,
            feature_names=self._flat.names(list(names)),
            categorical_features=categorical_features,
            categorical_names=categorical_names,
            kernel_width=kernel_width,
            kernel=kernel,
            verbose=verbose,
            class_names=class_names,
            feature_selection=feature_selection,
            discretize_continuous=discretize_continuous,
            discretizer=discretizer,
            random_state=random_state,
            method=method,
        )

    def __getattr__(self, name: str) -> Any:
        """What the explainer of long rows has: `feature_names`, `base`, `scaler` and so on."""
        if name.startswith("__") or name in ("_explainer", "_flat"):  # not set while unpickling
            raise AttributeError(name)
        return getattr(self._explainer, name)

    validate_training_data_stats = staticmethod(LimeTabularExplainer.validate_training_data_stats)

    def explain_instance(
        self,
        data_row: Any,
        classifier_fn: Callable[[Any], Any],
        labels: Sequence[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str | Callable[..., Any] = "euclidean",
        model_regressor: Any = None,
    ) -> Explanation:
        """Explain the prediction for a row of shape (time steps, features)."""
        return self._explainer.explain_instance(
            self._flat.rows(np.asarray(data_row)[None])[0],
            self._flat.model(classifier_fn),
            labels=labels,
            top_labels=top_labels,
            num_features=num_features,
            num_samples=num_samples,
            distance_metric=distance_metric,
            model_regressor=model_regressor,
        )
