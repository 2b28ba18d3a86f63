"""Rows of tables: what the model gets, what the regression sees, and the labels."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import eblime
from eblime.engine.session import Session

WINE = load_wine(as_frame=True)


def people(n=400, seed=0):
    """A frame of every kind of column, with missing values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 1, n).round(2),
            "job": rng.choice(["cook", "clerk", "smith"], n),
            "single": rng.random(n) < 0.4,
            "rooms": pd.array(rng.integers(1, 6, n), dtype="Int64"),
            "town": pd.Categorical(rng.choice(["A", "B"], n), categories=["A", "B", "C"]),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "planet": "earth",
        }
    )
    frame.loc[::7, "income"] = np.nan
    frame.loc[::11, "rooms"] = pd.NA
    frame.loc[::13, "job"] = None
    return frame


def quiet(*args, **settings):
    """An explainer, without the warning about constant columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eblime.TabularExplainer(*args, **settings)


class Spy:
    """A model that records its inputs."""

    def __init__(self):
        self.seen = []

    def __call__(self, table):
        """Return some scores."""
        self.seen.append(table)
        return np.arange(table.shape[0]) % 7 / 7


def test_frames_keep_their_columns_and_dtypes():
    """Also their order; the row itself comes first, and missing values stay missing."""
    frame, spy = people(), Spy()
    quiet(spy, frame).explain(frame.iloc[3])
    table = pd.concat(spy.seen, ignore_index=True)

    assert list(table.columns) == list(frame.columns)
    assert (table.dtypes == frame.dtypes).all()
    pd.testing.assert_frame_equal(table.iloc[:1], frame.iloc[[3]].reset_index(drop=True))
    assert table["income"].isna().any()
    assert set(table["job"].dropna()) <= set(frame["job"].dropna())


@pytest.mark.parametrize("kind", ["array", "list", "frame", "sparse", "polars"])
def test_a_table_that_changes_later_changes_no_explanation(kind):
    """The explainer has its own copy, also when its settings are replaced."""
    rng = np.random.default_rng(0)
    numbers = np.abs(rng.normal(size=(100, 3)))
    pl = pytest.importorskip("polars") if kind == "polars" else None
    table = {
        "array": lambda: numbers.copy(),
        "list": numbers.tolist,
        "frame": lambda: pd.DataFrame(numbers.copy(), columns=list("abc")),
        "sparse": lambda: sparse.csr_matrix(numbers),
        "polars": lambda: pl.DataFrame(numbers, schema=list("abc")),
    }[kind]()

    def score(rows):
        rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        return rows @ [1.0, 2.0, 3.0]

    explainer = eblime.TabularExplainer(score, table, n_masks=50)
    before = explainer.explain(numbers[3], rng=0).posterior.mean
    if kind == "list":
        table[:] = [[0.0, 1.0, 2.0]] * 100
    elif kind == "sparse":
        table.data[:] = 7.0
    elif kind == "frame":
        table.loc[:, "b"] = 7.0
    elif kind == "polars":
        table.replace_column(1, pl.Series("b", [7.0] * 100))
    else:
        table[:] = 7.0
    again = explainer.explain(numbers[3], rng=0).posterior.mean
    replaced = dataclasses.replace(explainer, n_masks=50).explain(numbers[3], rng=0)

    assert_array_equal(again, before)
    assert_array_equal(replaced.posterior.mean, before)


def test_polars_frames_stay_polars():
    """The same numbers as with pandas, and the model gets polars frames."""
    pl = pytest.importorskip("polars")
    frame = WINE.data.iloc[:, :5]
    other = pl.DataFrame({name: frame[name].to_numpy() for name in frame.columns})
    model = RandomForestClassifier(10, random_state=0).fit(frame.to_numpy(), WINE.target)
    asked = []

    def score(table):
        asked.append(table)
        return model.predict_proba(table.to_numpy())

    one = quiet(score, frame).explain(frame.iloc[5])
    two = quiet(score, other).explain(other[5])

    assert_allclose(two.posterior.mean, one.posterior.mean)
    assert list(two.features) == list(one.features)
    assert isinstance(asked[-1], pl.DataFrame)


def test_arrow_tables_stay_arrow_tables():
    """The same numbers as with pandas; columns of an arrow table are not found by iteration."""
    pa = pytest.importorskip("pyarrow")
    frame = WINE.data.iloc[:, :4]
    table = pa.table({name: frame[name].to_numpy() for name in frame.columns})
    asked = []

    def score(rows):
        asked.append(rows)
        return np.asarray(rows["alcohol"]) + np.asarray(rows["ash"])

    one = quiet(score, frame).explain(frame.iloc[5])
    two = quiet(score, table).explain(table.slice(5, 1))

    assert_allclose(two.posterior.mean, one.posterior.mean)
    assert isinstance(asked[-1], pa.Table)


def test_a_pipeline_with_strings_can_be_explained():
    """Its frames have names, strings and booleans; its classes are the labels."""
    frame = people().drop(columns=["since", "rooms"]).dropna(ignore_index=True)
    wealthy = np.where(frame["income"] + 400 * frame["age"] > 45_000, "rich", "poor")
    strings = ["job", "town", "planet"]
    encode = make_column_transformer((OneHotEncoder(), strings), remainder="passthrough")
    pipe = make_pipeline(encode, RandomForestClassifier(20, random_state=0)).fit(frame, wealthy)
    e = quiet(pipe, frame).explain(frame.iloc[0], target="rich")

    assert e.label == "rich"
    assert abs(e.posterior.mean).argmax() == list(e.scene.columns).index("income")


def test_a_row_may_have_several_types():
    """A series, a dictionary, a frame of one row and a list give the same result."""
    frame = WINE.data
    explainer = eblime.TabularExplainer(lambda t: t["alcohol"].to_numpy(), frame, n_masks=100)
    rows = frame.iloc[7], dict(frame.iloc[7]), frame.iloc[[7]], list(frame.iloc[7])
    means = [explainer.explain(row).posterior.mean for row in rows]

    for mean in means[1:]:
        assert_array_equal(mean, means[0])


def test_the_row_of_a_single_column_may_be_an_array_of_any_shape():
    """Also without a dimension."""
    column = np.random.default_rng(0).normal(size=(50, 1))
    explainer = eblime.TabularExplainer(lambda t: t[:, 0], column, n_masks=50)
    means = [explainer.explain(np.full(shape, 0.3)).posterior.mean for shape in ((), 1, (1, 1))]

    assert_array_equal(means[0], means[1])
    assert_array_equal(means[2], means[1])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"job": ["cook"]}, TypeError, "'job' of the row must be a string, as in"),
        ({"age": "old"}, TypeError, "'age' of the row must be a number"),
        ({"age": np.inf}, ValueError, "'age' of the row must be finite"),
        ({"since": 3}, TypeError, "'since' of the row must be a date"),
        (
            {"planet": np.ones(2)},
            TypeError,
            "'planet' of the row must be a string, as in",
        ),
    ],
)
def test_rows_that_cannot_be_explained_are_refused(change, error, message):
    """With the column and the value, before any model call."""
    frame, spy = people(), Spy()
    explainer = quiet(spy, frame)
    with pytest.raises(error, match=message):
        explainer.explain({**frame.iloc[3], **change})

    assert spy.seen == []


NEW_LEVELS = {
    "a new string": {"job": "baker"},
    "missing strings": {"job": None, "town": np.nan},
    "missing numbers": {"age": np.nan, "rooms": None},
    "a missing boolean": {"single": None},
    "a missing date": {"since": None},
    "an unused category": {"town": "C"},
    "a new category": {"town": "D"},
    "a constant that differs": {"planet": "mars"},
}


@pytest.mark.parametrize("kind", NEW_LEVELS)
@pytest.mark.parametrize("settings", [{}, {"design": "bernoulli", "n_masks": 100}])
def test_values_that_the_background_does_not_have_can_be_explained(kind, settings):
    """Such a value is shown by half of the masks, and its effect is found."""
    change, frame = NEW_LEVELS[kind], people().drop(index=range(0, 400, 13)).reset_index(drop=True)
    frame["rooms"] = frame["rooms"].fillna(3)
    name = next(iter(change))
    row = {**frame.iloc[3], **change}
    asked = []

    def own(table):
        asked.append(table)
        value = row[name]
        return (table[name].isna() if pd.isna(value) else table[name] == value).astype(float)

    e = quiet(own, frame, **settings).explain(row)
    j = list(e.scene.columns).index(name)
    others = np.delete(e.posterior.mean, j)

    assert e.prediction == 1
    assert e.posterior.mean[j] == pytest.approx(1, abs=1e-3)
    assert np.abs(others).max() < 1e-3
    assert 0.4 < e.masks[:, j].mean() < 0.6
    wanted = f"{name} is missing" if pd.isna(row[name]) else f"{name} = {row[name]}"
    assert e.features[j] == wanted
    untouched = [c for c in frame.columns if c not in change]
    assert (asked[0][untouched].dtypes == frame[untouched].dtypes).all()


def test_missing_numbers_in_arrays_can_be_explained(rng):
    """Integers become floats; `None` is a missing value too."""
    data = rng.integers(0, 9, size=(50, 3))
    explainer = eblime.TabularExplainer(lambda rows: np.isnan(rows[:, 1]).astype(float), data)
    e = explainer.explain([3, None, 4])

    assert e.features[1] == "column 1 is missing"
    assert e.posterior.mean == pytest.approx([0, 1, 0], abs=1e-3)


def test_polars_rows_may_have_new_values():
    """Strings and missing values, but not a new value of an Enum."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"job": ["cook", "clerk"] * 20, "age": list(range(40))})
    explainer = eblime.TabularExplainer(lambda t: (t["job"] == "smith").to_numpy() * 1.0, frame)
    e = explainer.explain({"job": "smith", "age": None})
    assert e.features == ["job = smith", "age is missing"]
    assert e.posterior.mean == pytest.approx([1, 0], abs=1e-3)

    enum = frame.with_columns(pl.col("job").cast(pl.Enum(["cook", "clerk"])))
    explainer = eblime.TabularExplainer(lambda t: np.zeros(len(t)), enum)
    with pytest.raises(ValueError, match="'job' of the row must have a value that its dtype"):
        explainer.explain({"job": "smith", "age": 3})


def perturbed_rows(explainer, row):
    """The rows that the explainer asks about, repeated ones included."""
    near = Session.begin(explainer.loop, explainer.subject(row), 1, 0).neighbourhood
    return near.inputs(np.arange(len(near.masks))).inputs


def test_one_row_is_a_reference():
    """Every feature has the row's value or the reference's; equal ones are zero."""
    frame = people()
    reference, row = frame.iloc[[2]], {**frame.iloc[3], "single": frame["single"].iloc[2]}
    spy = Spy()
    explainer = eblime.TabularExplainer(spy, reference)
    e = explainer.explain(row)
    table = perturbed_rows(explainer, row)
    names = list(e.scene.columns)
    equal = [names.index("single"), names.index("planet")]

    assert_array_equal(e.posterior.interval()[equal], 0)
    for j, name in enumerate(names):
        shown = np.where(e.masks[:, j] == 1, row[name], reference[name].iloc[0])
        same = table[name].to_numpy(dtype=object) == shown
        assert (same | (pd.isna(shown) & table[name].isna().to_numpy())).all()
    with pytest.raises(ValueError, match="`row` must differ from the background"):
        explainer.explain(reference)


def test_shown_columns_have_the_row_and_hidden_ones_the_background():
    """For each mask, all rows of the background."""
    frame = WINE.data.iloc[::3, :6]
    masks = np.array([[1.0, 0, 0, 1, 0, 0], [0, 1, 1, 0, 1, 1], [0, 0, 0, 0, 0, 0]])
    scene = eblime.TabularExplainer(Spy(), frame).subject(frame.iloc[4]).scene
    table = scene.inputs(masks).inputs.to_numpy().reshape(3, len(frame), 6)

    for mask, rows in zip(masks, table, strict=True):
        own = frame.iloc[4].to_numpy()[mask == 1]
        assert_array_equal(rows[:, mask == 1], np.tile(own, (len(frame), 1)))
        assert_array_equal(rows[:, mask == 0], frame.to_numpy()[:, mask == 0])


def test_a_reference_gives_the_differences_of_an_additive_model(rng):
    """The importance of a feature is the effect of its change from the reference."""
    reference, row = np.array([[1.0, 5, 2, 7]]), np.array([4.0, 5, 1, 7.5])
    factors = np.array([1.0, 2, 3, 4])
    e = eblime.TabularExplainer(lambda rows: rows @ factors, reference).explain(row)

    assert list(e.features) == ["column 0 = 4", "column 1 = 5", "column 2 = 1", "column 3 = 7.5"]
    assert_allclose(e.posterior.mean, [3, 0, -3, 2], atol=1e-3)


@pytest.mark.parametrize("cell", [[1, 2], (1.0, [2]), {"a": 1}, np.ones(2)])
def test_columns_of_lists_are_refused(cell):
    """With the column, the row and advice."""
    frame = pd.DataFrame({"age": [1, 2, 3], "path": [cell] * 3})
    with pytest.raises(TypeError, match=r"'path' must hold one number.* in row 0. Split it"):
        eblime.TabularExplainer(Spy(), frame)


def test_a_missing_column_is_named():
    """If the row does not have all columns of the background."""
    frame = people()
    explainer = quiet(Spy(), frame)
    with pytest.raises(ValueError, match="missing: 'age', 'town'"):
        explainer.explain(frame.iloc[3].drop(["age", "town"]))
    with pytest.raises(ValueError, match="a value for each of the 8 columns; got 2"):
        explainer.explain([1, 2])
    with pytest.raises(TypeError, match="`row` must be a dictionary"):
        explainer.explain(3)


def test_labels_are_readable():
    """Labels of bins, categories, booleans and missing values."""
    frame = people()
    row = {**frame.iloc[3], "age": 40, "income": np.nan, "job": "cook", "single": True}
    e = quiet(Spy(), frame).explain(row)
    names = dict(zip(e.scene.columns, e.features, strict=True))

    assert names["age"] == "age = 40"
    assert names["income"] == "income is missing"
    assert names["job"] == "job = cook"
    assert names["single"] == "single = True"
    assert e.scene.values[0] == "40"


def test_constant_columns_are_zero():
    """A warning names them once; a row that does not differ there has zero, with zero width."""
    with pytest.warns(UserWarning, match="'planet'") as caught:
        explainer = eblime.TabularExplainer(Spy(), people(), n_masks=60)
    e = explainer.explain(people().iloc[1])
    place = list(e.scene.columns).index("planet")

    assert list(e.scene.columns) == list(people().columns)
    assert (e.masks[:, place] == 1).all()
    assert_array_equal(e.posterior.interval()[place], [0, 0])
    assert e.posterior.mean[place] == e.posterior.sd[place] == 0
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_constant_background_is_refused():
    """There is nothing to compare with."""
    with pytest.raises(ValueError, match="all are constant"):
        eblime.TabularExplainer(Spy(), np.ones((5, 2)))


def test_columns_of_a_group_change_together():
    """Dummy variables of one category are one feature, and exactly one of them is 1."""
    frame = pd.get_dummies(people()[["age", "job"]].dropna(ignore_index=True), dtype=int)
    dummies = [name for name in frame.columns if name.startswith("job_")]
    spy = Spy()
    explainer = eblime.TabularExplainer(spy, frame, groups={"job": dummies})
    e = explainer.explain(frame.iloc[2])

    assert list(e.scene.columns) == ["age", "job"]
    assert e.features[1].startswith("job: job_")
    assert (pd.concat(spy.seen)[dummies].sum(axis=1) == 1).all()
    with pytest.raises(ValueError, match="must not share columns"):
        eblime.TabularExplainer(spy, frame, groups={"a": dummies, "b": dummies[:1]})
    with pytest.raises(ValueError, match="`groups` must name columns"):
        eblime.TabularExplainer(spy, frame, groups={"a": ["no such"]})


def test_the_batch_size_changes_no_number():
    """The same seed gives the same rows for every batch size."""
    data = WINE.data.to_numpy()
    model = RandomForestClassifier(5, random_state=0).fit(data, WINE.target)
    means = [
        eblime.TabularExplainer(model, data, n_masks=250, calls=eblime.Calls(batch_size=size))
        .explain(data[2])
        .posterior.mean
        for size in (None, 10, 171)
    ]

    assert_array_equal(means[0], means[1])
    assert_array_equal(means[0], means[2])


def test_sparse_rows_are_explained_by_their_nonzero_columns(rng):
    """The model gets sparse matrices with all columns; zeros stay zeros."""
    matrix = sparse.random(200, 1000, density=0.02, format="csr", random_state=0)
    row = matrix[5]
    asked = []

    def model(batch):
        asked.append(batch)
        return np.asarray(batch.sum(axis=1)).ravel()

    e = eblime.TabularExplainer(model, matrix, n_masks=400).explain(row)

    assert e.scene.n_features == row.nnz
    assert all(sparse.issparse(batch) and batch.shape[1] == 1000 for batch in asked)
    assert (asked[0][0] != row).nnz == 0
    wanted = row.toarray().ravel()[row.indices]
    assert np.corrcoef(e.posterior.mean, wanted)[0, 1] > 0.9
    with pytest.raises(ValueError, match="not all of them zero"):
        eblime.TabularExplainer(model, matrix).explain(np.zeros(1000))


@pytest.mark.slow
def test_a_feature_that_the_model_ignores_is_not_important():
    """Over many rows its interval contains zero, and its sign is uncertain."""
    data, target = load_breast_cancer(return_X_y=True)
    data = data[:, :8]
    model = LogisticRegression(max_iter=5000).fit(data[:, :7], target)
    explainer = eblime.TabularExplainer(
        lambda rows: model.predict_proba(rows[:, :7]), data, n_masks=64
    )
    found = [explainer.explain(row, target=1, rng=k).posterior for k, row in enumerate(data[:60])]
    covered = np.mean([p.interval()[7, 0] < 0 < p.interval()[7, 1] for p in found])
    signs = np.array([p.prob_positive()[7] for p in found])

    assert covered > 0.85  # .95 with a standard error of .028
    assert abs(signs.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 60)


def test_regression_and_several_outputs():
    """One number, several numbers, several classifiers, and a classifier without probabilities."""
    data, classes = load_wine(return_X_y=True)
    two = np.stack([data[:, 0], data[:, 1]], axis=1)
    forest = RandomForestRegressor(10, random_state=0).fit(data, two)
    found = eblime.TabularExplainer(forest, data).explain_targets(data[0], targets=[0, 1])
    assert [abs(found[t].posterior.mean).argmax() for t in (0, 1)] == [0, 1]

    pair = np.stack([classes == 0, classes == 1], axis=1).astype(int)
    both = MultiOutputClassifier(RandomForestClassifier(5, random_state=0)).fit(data, pair)
    e = eblime.TabularExplainer(both, data).explain(data[0], target="output 1: 1")
    assert e.target == 3

    ridge = RidgeClassifier().fit(data, classes)
    assert eblime.TabularExplainer(ridge, data).explain(data[0]).label == "0"

    class Named:
        classes_ = np.array(["low", "high"])

        def predict(self, rows):
            return self.classes_[(rows[:, 0] > 13).astype(int)]

    e = eblime.TabularExplainer(Named(), data).explain(data[0])
    assert e.label == "high"
    assert e.prediction == 1


@pytest.mark.parametrize("package", ["xgboost", "lightgbm", "catboost"])
def test_gradient_boosters_can_be_explained(package):
    """Through their scikit-learn interface."""
    module = pytest.importorskip(package)
    kinds = {
        "xgboost": "XGBClassifier",
        "lightgbm": "LGBMClassifier",
        "catboost": "CatBoostClassifier",
    }
    quietly = {"xgboost": {}, "lightgbm": {"verbose": -1}, "catboost": {"verbose": False}}
    model = getattr(module, kinds[package])(n_estimators=5, **quietly[package])
    model.fit(WINE.data, WINE.target)
    e = eblime.TabularExplainer(model, WINE.data).explain(WINE.data.iloc[0])

    assert e.posterior.r2 > 0.2


@pytest.mark.slow
def test_memory_stays_bounded():
    """100,000 perturbed rows of 50 columns are never in memory at once."""
    import tracemalloc

    rng = np.random.default_rng(0)
    data = rng.random((500, 50))
    explainer = eblime.TabularExplainer(
        lambda rows: rows[:, 0], data, n_masks=100_000, method="lime"
    )
    tracemalloc.start()
    explainer.explain(data[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    masks = 100_000 * 50 * 8

    assert peak < 6 * masks


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows_per_mask": 0}, "`rows_per_mask`"),
        ({"groups": {"pair": ["nothing"]}}, "`groups` must name columns"),
        ({"groups": [["alcohol", "ash"]]}, r"`groups` must be a dictionary .*; got \[\['alcohol'"),
        ({"groups": {"pair": "ash"}}, r"`groups` must be a dictionary .*; got {'pair': 'ash'}"),
        ({"groups": {"pair": 3}}, "`groups` must be a dictionary"),
        ({"n_masks": 0}, "`n_masks` must be >= 2"),
        ({"names": ["x"]}, "`names` must be None for a data frame"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    """When the explainer is created."""
    with pytest.raises((ValueError, TypeError), match=message):
        eblime.TabularExplainer(Spy(), WINE.data, **settings)


@pytest.mark.parametrize(
    "background", [np.empty((0, 3)), 7, np.ones(4), pd.DataFrame(), pd.Series([1.0, 2.0])]
)
def test_a_background_must_be_a_table(background):
    """With rows and columns."""
    with pytest.raises((ValueError, TypeError), match="`background` must"):
        eblime.TabularExplainer(Spy(), background)


@pytest.mark.parametrize(
    ("background", "advice"),
    [
        ([{"a": 1.0}, {"a": 2.0}], "pandas.DataFrame"),
        (np.ones(3, dtype=[("a", float), ("b", int)]), "pandas.DataFrame"),
        ({"a": [1.0, 2.0]}, "pandas.DataFrame"),
    ],
)
def test_a_background_of_another_type_gets_advice(background, advice):
    """How to convert records, dictionaries of columns and tensors."""
    with pytest.raises((ValueError, TypeError), match=advice):
        eblime.TabularExplainer(Spy(), background)


def test_tables_can_be_saved_drawn_and_shown_on_pages(tmp_path):
    """With the row's values; plots of other domains are refused."""
    frame = WINE.data
    e = eblime.TabularExplainer(lambda t: t["alcohol"].to_numpy(), frame).explain(frame.iloc[3])
    again = eblime.load(e.save(tmp_path / "e.eblime"))

    assert list(again.features) == list(e.features)
    assert list(again.scene.values) == list(e.scene.values)
    assert len(e.plot("means", top=12).patches) == 12
    assert "alcohol" in e.to_html()
    with pytest.raises(TypeError, match="needs a text explanation"):
        e.plot("text")
    with pytest.raises(TypeError, match="needs an image explanation"):
        e.plot("map")


def test_objects_stay_objects_and_none_stays_none():
    """A column of strings of dtype object reaches the model unchanged."""
    frame = pd.DataFrame({"s": pd.Series(["a", None, "b"] * 50, dtype=object), "x": range(150)})
    spy = Spy()
    eblime.TabularExplainer(spy, frame).explain(frame.iloc[1])

    assert spy.seen[0]["s"].dtype == object
    assert spy.seen[0]["s"].iloc[0] is None


def test_groups_of_a_sparse_matrix_use_its_column_numbers():
    """Also those of columns in which the row is zero."""
    matrix = sparse.random(80, 30, density=0.3, format="csc", random_state=1).tocsr()
    row = matrix[4]
    there, gone = row.indices[:2], np.setdiff1d(np.arange(30), row.indices)[:1]
    explainer = eblime.TabularExplainer(
        lambda m: np.asarray(m.sum(axis=1)).ravel(),
        matrix,
        groups={"pair": [int(there[1]), int(gone[0])]},
    )

    assert "pair" in explainer.explain(row).scene.columns


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "Etc/GMT+5"])
def test_times_may_be_in_every_time_zone(zone):
    """Values of another kind are refused."""
    days = pd.date_range("2020-01-01", periods=100, freq="D", tz=zone)
    frame = pd.DataFrame({"day": days, "x": np.arange(100.0)})
    e = eblime.TabularExplainer(Spy(), frame).explain(frame.iloc[10])

    assert e.features[0] == "day = 2020-01-11"
    with pytest.raises(TypeError, match="must be a date"):
        eblime.TabularExplainer(Spy(), frame).explain({"day": 5, "x": 1.0})
    with pytest.raises(TypeError, match="must be a number"):
        eblime.TabularExplainer(Spy(), frame).explain({"day": days[0], "x": days[0]})


def test_masked_arrays_and_narrow_dtypes():
    """Masked values are missing; a value that does not fit the dtype widens it."""
    data = np.ma.masked_array(np.arange(40.0).reshape(20, 2), mask=False)
    data[::3, 1] = np.ma.masked
    e = eblime.TabularExplainer(Spy(), data).explain([3.0, np.nan])
    assert e.features[1] == "column 1 is missing"

    frame = pd.DataFrame({"a": np.arange(40, dtype=np.int8), "b": np.arange(40.0)})
    spy = Spy()
    eblime.TabularExplainer(spy, frame).explain({"a": 400, "b": 1.0})
    assert spy.seen[0]["a"].iloc[0] == 400


def test_durations_are_refused():
    """With the column and advice."""
    frame = pd.DataFrame({"span": pd.to_timedelta(np.arange(9), "h"), "x": np.arange(9.0)})
    with pytest.raises(TypeError, match="'span' must hold numbers, dates"):
        eblime.TabularExplainer(Spy(), frame)


def test_point_estimates_have_frames_and_plots():
    """LIME's frame has no intervals, and its plot has bars."""
    data = WINE.data
    e = eblime.TabularExplainer(lambda t: t["alcohol"].to_numpy(), data, method="lime").explain(
        data.iloc[0]
    )

    assert e.to_frame()["low"].isna().all()
    assert e.plot() is not None


@pytest.mark.parametrize("progress", [True, None, lambda done, total: None])
def test_progress_changes_no_number(progress, capsys):
    """The model gets the same batches with every progress setting."""
    data, sizes = WINE.data.to_numpy(), {}
    for setting in (False, progress):
        asked = sizes.setdefault(setting, [])

        def score(rows, asked=asked):
            asked.append(len(rows))
            return rows[:, 0] + 1e-3 * len(rows)  # a model that notices

        eblime.TabularExplainer(score, data, n_masks=2000, progress=setting).explain(data[0])

    assert sizes[False] == sizes[progress]


def test_column_names_must_differ():
    """By their text: a frame with the labels 0 and "0" is refused."""
    frame = pd.DataFrame(np.eye(4)[:, :2], columns=[0, "0"])
    with pytest.raises(ValueError, match="must be 2 different names"):
        eblime.TabularExplainer(Spy(), frame)


def test_duplicate_columns_are_named():
    """All of them, by narwhals."""
    frame = pd.DataFrame(np.ones((4, 5)), columns=["a", "b", "a", "c", "c"])
    with pytest.raises(
        ValueError, match=r"another name for each column(.|\n)* 'a' 2 times(.|\n)* 'c' 2 times"
    ):
        eblime.TabularExplainer(Spy(), frame)


def test_dates_are_labelled_by_value():
    """As the other columns."""
    frame = people()
    e = quiet(Spy(), frame, n_masks=60).explain(frame.iloc[1])
    place = list(e.scene.columns).index("since")

    assert e.features[place] == f"since = {frame['since'].iloc[1].date()}"


class Sum:
    """A model that counts the rows that it gets."""

    def __init__(self):
        self.rows = 0

    def __call__(self, rows):
        """Return the sum of each row."""
        self.rows += len(rows)
        return rows.sum(axis=1)


@pytest.mark.parametrize(("given", "kept"), [(10, 10), (None, 100), (300, 300)])
def test_some_rows_are_kept_of_a_large_background(rng, given, kept):
    """No explanation asks about more than these for everything hidden, and it says so."""
    model, background = Sum(), rng.normal(size=(5000, 4))
    explainer = eblime.TabularExplainer(
        model, background, n_masks=16, **({"rows_per_mask": given} if given else {})
    )
    e = explainer.explain(background[0])
    hidden = e.answers.hidden

    assert model.rows == e.provenance["model_calls"] == 1 + 15 * kept
    assert f"the mean over {kept} of 5000 rows of the background" in e.estimand
    assert hidden == pytest.approx(e.answers.scores[~e.masks.any(axis=1)][0])
    assert np.abs(hidden - background.sum(axis=1).mean()) < 5 * 2 / np.sqrt(kept)


def test_rounding_does_not_choose_the_rows_of_a_background(rng, monkeypatch):
    """Categories make columns of opposite signs, whose weights are equal but for rounding."""
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 600), "owns": rng.choice(["yes", "no"], 600)}
    )
    frame["age"] = rng.integers(20, 70, 600)

    def kept():
        """The mean age of the rows."""
        model = lambda rows: np.asarray(rows["age"], dtype=float)  # noqa: E731
        return eblime.TabularExplainer(model, frame, n_masks=8).explain(frame.iloc[0]).answers

    exact, eigh = kept().scores, np.linalg.eigh

    def rounded(matrix):
        """As another number of threads would have it."""
        values, vectors = eigh(matrix)
        return values, vectors * (1 + 1e-13 * rng.standard_normal(vectors.shape))

    monkeypatch.setattr("numpy.linalg.eigh", rounded)
    assert_allclose(kept().scores, exact, rtol=1e-12)


@pytest.mark.parametrize("method", ["eblime", eblime.Quadrature(index="shapley")])
def test_model_calls_of_a_large_background(rng, method):
    """Of any background, the rows that are kept for each mask but the row itself, which is one."""
    model, background = Sum(), rng.normal(size=(200_000, 8))
    explainer = eblime.TabularExplainer(model, background, n_masks=40, method=method)
    e = explainer.explain(background[0])
    masks = np.unique(e.masks, axis=0)
    one = 1 + 100 * int((~masks.all(axis=1)).sum())

    assert model.rows == e.provenance["model_calls"] == one
    assert 38 * 100 < one <= 1 + 42 * 100
    explainer.explain_many(background[:20], progress=False)
    assert abs(model.rows - 21 * one) <= 21 * 200  # the ends are among the masks of some


def kept_rows(table, most):
    """The rows of a table that an explainer keeps."""
    explainer = eblime.TabularExplainer(lambda rows: np.zeros(len(rows)), table, rows_per_mask=most)
    row = table.iloc[0] if isinstance(table, pd.DataFrame) else table[0]
    return explainer.subject(row).scene.table.native[:-1]


def test_rows_of_each_kind_are_kept(rng):
    """As many of each as there are in the background: of numbers, and of categories."""
    counts = [500, 300, 150, 50]
    kind = rng.permutation(np.repeat(np.arange(4), counts))
    numbers = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])[kind] + rng.normal(size=(1000, 2))
    words = pd.DataFrame({"a": np.array(list("kkll"))[kind], "b": np.array(list("xyxy"))[kind]})
    found = kept_rows(numbers, 100)
    nearest = 2 * (found[:, 1] > 4.5) + (found[:, 0] > 4.5)

    assert_allclose(np.bincount(nearest, minlength=4), np.array(counts) / 10, atol=1)
    for (a, b), n in kept_rows(words, 40).value_counts().items():
        expected = counts[2 * (a == "l") + (b == "y")] / 25
        assert abs(n - expected) <= 1


def test_kept_rows_have_the_mean_of_all(rng):
    """Nearer than rows drawn at random: the mean squared distance is below a half of theirs."""
    errors = []
    for _ in range(20):
        table = rng.normal(size=(700, 4)) @ rng.normal(size=(4, 4))
        found = kept_rows(table, 50)
        assert len(np.unique(found, axis=0)) == 50
        errors.append(np.mean((found.mean(axis=0) - table.mean(axis=0)) ** 2 / table.var(axis=0)))

    assert np.mean(errors) < 0.5 * (1 - 50 / 700) / 50


def test_a_constant_column_changes_no_kept_row(rng):
    """Nor does a missing value here and there stop the choice."""
    table = rng.normal(size=(300, 3))
    table[:5, 1] = np.nan
    with pytest.warns(UserWarning, match="same in all rows"):
        wide = kept_rows(np.insert(table, 1, 7.0, axis=1), 20)

    assert_array_equal(np.delete(wide, 1, axis=1), kept_rows(table, 20))


def test_rare_categories_are_known_though_not_kept():
    """Values are checked against the whole background, and whole numbers read as its digits."""
    codes = pd.Series(np.repeat(["10", "20"], 500))
    codes.iloc[0] = "30"
    frame = pd.DataFrame({"code": codes, "age": np.arange(1000.0)})

    def model(table):
        return (table["code"] == "30").to_numpy() + 0.0

    explainer = eblime.TabularExplainer(model, frame, n_masks=4)

    assert explainer.explain({"code": 30, "age": 3.0}).prediction == 1
