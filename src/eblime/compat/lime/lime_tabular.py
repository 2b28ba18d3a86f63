"""Explanations of rows, with lime's names, settings and draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from eblime._checks import check_choice, check_count, check_masks
from eblime._types import FloatArray, IntArray
from eblime._warn import warn_user
from eblime.compat.lime._explain import LimeExplainer
from eblime.compat.lime.discretize import (
    BaseDiscretizer,
    DecileDiscretizer,
    EntropyDiscretizer,
    QuartileDiscretizer,
    StatsDiscretizer,
)
from eblime.compat.lime.explanation import DomainMapper, Explanation, Weighted, class_name
from eblime.domains.tabular import TableScene
from eblime.domains.tabular.cells import short_text
from eblime.protocols import Method

_DISCRETIZERS = {
    "quartile": QuartileDiscretizer,
    "decile": DecileDiscretizer,
    "entropy": EntropyDiscretizer,
}
_STATS = ("means", "mins", "maxs", "stds", "feature_values", "feature_frequencies")
_FEW_LEVELS = 16  # of a category


@dataclass(eq=False)
class TableDomainMapper(DomainMapper):
    """Names of the features of a row; `feature_indexes` are the columns that a sparse row has."""

    feature_names: Sequence[str]
    feature_values: Sequence[str]
    scaled_row: object
    categorical_features: Sequence[int]
    discretized_feature_names: Sequence[str] | None = None
    feature_indexes: object = None

    def __post_init__(self) -> None:
        self.exp_feature_names, n = self.feature_names, len(self.feature_names)
        self.all_categorical = self.feature_indexes is None and len(self.categorical_features) == n

    def map_exp_ids(self, exp: Weighted) -> list[tuple[str, float]]:  # type: ignore[override]
        """(name, weight) pairs."""
        names = self.discretized_feature_names or self.exp_feature_names
        return [(names[j], weight) for j, weight in exp]


@dataclass(eq=False)
class LimeTabularExplainer(LimeExplainer):
    """Explains predictions for rows of a table; parameters are those of lime.

    Besides lime's: `training_data` may be a data frame of numbers, whose columns give the names,
    and `categorical_features` may be names. `method` is how the linear model is fitted: "eblime"
    (default) gives posteriors, "lime" gives lime's numbers; any method of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import LimeTabularExplainer
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> explainer = LimeTabularExplainer(rows, mode="regression", random_state=0)
    >>> exp = explainer.explain_instance(rows[0], lambda x: x[:, 0] - 2 * x[:, 2], num_features=2)
    >>> [name for name, weight in exp.as_list()]
    ['-0.02 < 2 <= 0.66', '-0.10 < 0 <= 0.66']
    """

    training_data: InitVar[object]
    mode: str = "classification"
    training_labels: InitVar[object] = None
    feature_names: Any = None  # a sequence; None numbers the columns
    categorical_features: Any = None  # a sequence of numbers or names
    categorical_names: Mapping[int, Sequence[object]] | None = None
    kernel_width: float | None = None
    kernel: Callable[..., FloatArray] | None = None
    verbose: bool = False
    class_names: Sequence[object] | None = None
    feature_selection: str = "auto"
    discretize_continuous: bool = True
    discretizer: Any = "quartile"  # a name or a `BaseDiscretizer`
    sample_around_instance: bool = False
    random_state: Any = None
    training_data_stats: Mapping[str, Any] | None = None
    _: KW_ONLY
    method: str | Method = "eblime"

    def __post_init__(self, training_data: Any, training_labels: Any) -> None:
        check_choice("mode", self.mode, ("classification", "regression"))
        stats, is_sparse = self.training_data_stats, sparse.issparse(training_data)
        if stats:
            self.validate_training_data_stats(stats)
        data = training_data if is_sparse else check_masks(training_data, name="training_data")
        p = data.shape[1]
        if self.kernel_width is None:
            self.kernel_width = float(np.sqrt(p) * 0.75)
        LimeExplainer.__post_init__(self)
        names = [str(name) for name in getattr(training_data, "columns", range(p))]
        given = names if self.feature_names is None else list(self.feature_names)
        if len(given) != p:
            message = f"`feature_names` must have {p} entries; got {len(given)}."
            if len(given) < p:
                raise ValueError(message)
            warn_user(f"{message} The first {p} are used.")  # often the last one is the target
        self.feature_names = given[:p]
        known = {name: j for j, name in enumerate(self.feature_names)} | {j: j for j in range(p)}
        columns = [] if self.categorical_features is None else list(self.categorical_features)
        if (is_sparse and columns) or not set(columns) <= set(known):
            raise ValueError(
                f"`categorical_features` must be numbers of columns, 0 .. {p - 1}, or names of "
                f"`feature_names`, and none for sparse data; got {columns!r:.60}."
            )
        self.categorical_features = [known[column] for column in columns]
        cut = self.discretizer
        if is_sparse or not self.discretize_continuous:
            cut = None
        elif stats or not isinstance(cut, BaseDiscretizer):
            check_choice("discretizer", cut, tuple(_DISCRETIZERS))
            kind = StatsDiscretizer if stats else _DISCRETIZERS[cut]
            about = self.categorical_features, self.feature_names, training_labels
            cut = kind(data, *about, self.random_state, stats)
        if cut is not None:
            cut.keeps_borders = self.base.has_posterior()
            self.categorical_features = list(range(p))
        self.discretizer = cut
        self._learn(data)

    @staticmethod
    def validate_training_data_stats(training_data_stats: Mapping[str, Any]) -> None:
        """Refuse statistics that lack a key."""
        missing = [key for key in _STATS if key not in training_data_stats]
        if missing:
            raise ValueError(f"`training_data_stats` must have {', '.join(missing)}.")

    def explain_instance(
        self,
        data_row: Any,
        predict_fn: Callable[[Any], ArrayLike],
        labels: Sequence[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str | Callable[..., float] = "euclidean",
        model_regressor: object = None,
    ) -> Explanation:
        """Explain the prediction for a row: an array, a series, or a sparse matrix with one row.

        `predict_fn` returns class probabilities, (n, classes), or predictions, (n,).
        """
        check_count("num_samples", num_samples)
        n_columns, is_sparse = len(self.feature_names), sparse.issparse(data_row)
        row = np.asarray(data_row.toarray()[0] if is_sparse else data_row, dtype=np.float64)
        if row.shape != (n_columns,) or not np.isfinite(row).all():
            raise ValueError(
                f"`data_row` must be one row of {n_columns} finite values; got shape {row.shape}."
            )
        present = np.flatnonzero(row) if is_sparse else np.arange(n_columns)
        data, inverse = self._draw(row[present], num_samples, present)
        scale, mean = self.scaler.scale_[present], self.scaler.mean_[present]
        scaled = data * scale if is_sparse else (data - mean) / scale  # both as in lime
        mapper, scene = self._name(row[present], scaled[0], present if is_sparse else None)
        result, regression = Explanation(mapper, mode=self.mode), self.mode == "regression"

        def ask() -> FloatArray:
            batch: object = inverse
            if is_sparse:
                starts = np.arange(num_samples + 1) * len(present)
                cells = inverse.ravel(), np.tile(present, num_samples), starts
                batch = sparse.csr_matrix(cells, shape=(num_samples, n_columns))
            scores = np.asarray(predict_fn(batch), dtype=np.float64)
            if regression:  # of several outputs the first one, as in lime
                return scores.reshape(len(scores), -1)[:, :1]
            if scores.ndim == 1:
                raise NotImplementedError(
                    "`predict_fn` must return probabilities of shape (rows, classes); got one "
                    "number per row. Use predict_proba, or mode='regression'."
                )
            if not np.allclose(scores.sum(axis=-1), 1.0):
                warn_user("The probabilities that `predict_fn` returns do not sum to 1.")
            return scores

        chosen = ([0], None) if regression else (labels, top_labels)
        how = *chosen, num_features, distance_metric, model_regressor
        scores = self._fill(result, scene, scaled, ask, *how)
        if is_sparse:  # number features by the columns of the table, and fill up with zeros
            least = n_columns if self.feature_selection == "none" else min(num_features, n_columns)
            absent = [(j, 0.0) for j in range(n_columns) if j not in present]
            for label, exp in result.local_exp.items():
                listed = [(int(present[j]), weight) for j, weight in exp]
                result.local_exp[label] = listed + absent[: max(0, least - len(listed))]
        if regression:  # label 1 is the prediction, and label 0 its opposite
            result.predicted_value = float(scores[0, 0])
            result.min_value, result.max_value = float(scores.min()), float(scores.max())
            result.intercept[1], result.local_exp[1] = result.intercept[0], result.local_exp[0]
            result.local_exp[0] = [(j, -weight) for j, weight in result.local_exp[1]]
            result.explanations = {1: result.explanations[0]}
        return result

    def _learn(self, data: Any) -> None:
        """Scales of the columns, and the values and shares of categories and bins."""
        from sklearn.preprocessing import StandardScaler

        self.scaler = StandardScaler(with_mean=False).fit(data)
        self.feature_values: dict[int, list[float]] = {}
        self.feature_frequencies: dict[int, FloatArray] = {}
        stats, cut = self.training_data_stats, self.discretizer
        levels = data if cut is None or stats else cut.discretize(data)
        for j in self.categorical_features:
            if stats:
                values, counts = stats["feature_values"][j], stats["feature_frequencies"][j]
            else:
                values, counts = np.unique(levels[:, j], return_counts=True)
            self.feature_values[j] = list(values)
            self.feature_frequencies[j] = np.asarray(counts) / float(np.sum(counts))
            self.scaler.mean_[j], self.scaler.scale_[j] = 0, 1

    def _draw(self, row: FloatArray, n: int, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Perturbed rows in lime's order of draws, as the regression and as the model sees them.

        Of a category or a bin the regression sees whether the row's own one was drawn.
        """
        draw, cut = self.random_state, self.discretizer
        data, own = np.zeros((n, len(row)), order="F"), row  # filled column by column
        if cut is None:
            centre = row if self.sample_around_instance else self.scaler.mean_[columns]
            drawn = draw.normal(0, 1, data.size).reshape(data.shape)
            data = drawn * self.scaler.scale_[columns] + centre
        else:
            own = cut.discretize(row)
        data[0] = row
        inverse = data.copy(order="F")
        for j in self.categorical_features:
            levels = np.asarray(self.feature_values[j])
            ends = np.cumsum(self.feature_frequencies[j])
            cuts, shares = ends[:-1] / ends[-1], draw.random_sample(n)
            few = len(cuts) < _FEW_LEVELS  # where to compare with each is faster
            places = sum(shares >= c for c in cuts) if few else cuts.searchsorted(shares, "right")
            inverse[:, j] = levels[places]  # as `draw.choice` draws
            data[:, j] = inverse[:, j] == own[j]
            data[0, j] = 1
        if cut is not None:
            inverse[1:] = cut.undiscretize(inverse[1:])
        inverse[0] = row
        return np.ascontiguousarray(data), np.ascontiguousarray(inverse)

    def _name(self, row: Any, scaled: Any, present: Any) -> tuple[TableDomainMapper, TableScene]:
        """The names and values of a row's features, for lime's methods and for an explanation."""
        columns, cut = [str(name) for name in self.feature_names], self.discretizer
        values, texts = [f"{value:.2f}" for value in row], [short_text(value) for value in row]
        if present is not None:
            mapper = TableDomainMapper(columns, values, scaled, [], None, present)
            names = [columns[j] for j in present]
            return mapper, TableScene(features=names, columns=names, values=texts)
        bins, shown, binned = {} if cut is None else cut.names, list(columns), None
        for j in self.categorical_features:
            if j not in bins:
                texts[j] = class_name((self.categorical_names or {}).get(j), int(row[j]))
                shown[j], values[j] = f"{columns[j]}={texts[j]}", "True"
        if cut is not None:
            places = cut.discretize(row).astype(int)
            binned = [bins[j][places[j]] if j in bins else name for j, name in enumerate(shown)]
        mapper = TableDomainMapper(shown, values, scaled, self.categorical_features, binned)
        return mapper, TableScene(features=binned or shown, columns=columns, values=texts)


@dataclass(eq=False)
class RecurrentTabularExplainer(LimeTabularExplainer):
    """Explains models of rows with time steps; other parameters as in `LimeTabularExplainer`.

    `training_data` has shape (n, time steps, features); a time step is listed as "name_t-lag".

    Examples
    --------
    >>> import numpy as np
    >>> from eblime.compat.lime import RecurrentTabularExplainer
    >>> rows = np.random.default_rng(0).random((60, 3, 2))
    >>> explainer = RecurrentTabularExplainer(rows, mode="regression", feature_names=["a", "b"])
    >>> exp = explainer.explain_instance(rows[0], lambda batch: batch[:, -1, 0], num_features=1)
    >>> "a_t-0" in exp.as_list()[0][0]
    True
    """

    sample_around_instance: bool = field(default=False, init=False)
    training_data_stats: Mapping[str, Any] | None = field(default=None, init=False)

    def __post_init__(self, training_data: Any, training_labels: object) -> None:
        """Make one column of each feature and time step."""
        _, self.n_timesteps, self.n_features = np.shape(training_data)
        lags = range(self.n_timesteps)[::-1]
        names = range(self.n_features) if self.feature_names is None else self.feature_names
        self.feature_names = [f"{name}_t-{lag}" for name in names for lag in lags]
        long_rows = np.transpose(training_data, (0, 2, 1)).reshape(len(training_data), -1)
        LimeTabularExplainer.__post_init__(self, long_rows, training_labels)

    def explain_instance(  # lime names the model in another way
        self,
        data_row: object,
        classifier_fn: Callable[[np.ndarray], ArrayLike],
        labels: Sequence[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str | Callable[..., float] = "euclidean",
        model_regressor: object = None,
    ) -> Explanation:
        """Explain the prediction for a row of shape (time steps, features)."""

        def model(rows: np.ndarray) -> ArrayLike:
            shape = (len(rows), self.n_features, self.n_timesteps)
            return classifier_fn(np.transpose(rows.reshape(shape), (0, 2, 1)))

        long_row, how = np.asarray(data_row).T.ravel(), (distance_metric, model_regressor)
        settings = labels, top_labels, num_features, num_samples, *how
        return LimeTabularExplainer.explain_instance(self, long_row, model, *settings)
