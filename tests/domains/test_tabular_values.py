"""Values of a row: the model sees what the labels say, in every kind of table."""

import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import eblime
from eblime.domains.tabular.frames import table_kind
from eblime.engine.session import Session

NEW_YORK = ZoneInfo("America/New_York")


class Spy:
    """A model that records its inputs."""

    def __init__(self):
        self.seen = []

    def __call__(self, table):
        """Return some scores."""
        self.seen.append(table)
        return np.arange(len(table), dtype=float)


def masks_and_rows(explainer, row):
    """The masks, and the rows that the model is asked about."""
    question = Session.begin(explainer.loop, explainer.subject(row), 1, 0).question
    neighbourhood = question.neighbourhood
    return neighbourhood.masks, neighbourhood.inputs(np.arange(len(neighbourhood.masks)))


@pytest.mark.parametrize(
    ("values", "own", "message"),
    [
        (["1", "5", "7"], 3, "must be a string, as in the background; got 3"),
        (["1", "5", "7"], 5.0, "must be a string, as in the background; got 5.0"),
        ([True, False], "no", "must be True or False, as in the background; got 'no'"),
        ([True, False], 2.5, "must be True or False, as in the background; got 2.5"),
        (pd.Categorical([10, 20, 30]), "10", "must be a number, as in the background; got '10'"),
        (["a", 1, True], None, None),
        (["a", 1, "b"], 3, None),
        (pd.Categorical([10, 20, 30]), 40, None),
    ],
)
def test_a_category_of_another_kind_is_refused(values, own, message):
    """Otherwise pandas converts it, and the model sees another category than the label says."""
    frame = pd.DataFrame({"kind": list(values) * 20, "x": np.arange(20.0 * len(values))})
    if isinstance(values, pd.Categorical):
        frame["kind"] = frame["kind"].astype("category")
    spy = Spy()
    explainer = eblime.TabularExplainer(spy, frame, n_masks=50)
    if message is None:
        assert explainer.explain({"kind": own, "x": 1.0}).posterior.mean.shape == (2,)
        return
    with pytest.raises(TypeError, match=message):
        explainer.explain({"kind": own, "x": 1.0})

    assert spy.seen == []


def test_polars_strings_are_not_numbers_either():
    """The check does not depend on the library of the table."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"kind": ["1", "5"] * 20, "x": list(range(40))})
    with pytest.raises(TypeError, match="'kind' of the row must be a string"):
        eblime.TabularExplainer(Spy(), frame).explain({"kind": 3, "x": 3})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_digits_may_be_given_as_a_number(library):
    """As a CSV file whose other rows have no letters in this column is read."""
    table = table_of(library, {"zip": ["94110", "10115", "SW1"] * 20, "x": list(range(60))})
    model = lambda rows: (rows["zip"] == "10115").to_numpy().astype(float)  # noqa: E731
    e = eblime.TabularExplainer(model, table, n_masks=100).explain({"zip": 10115, "x": 3})

    assert e.features[0] == "zip = 10115"
    assert e.posterior.mean == pytest.approx([1, 0], abs=1e-3)


def test_labels_show_the_values_of_the_background():
    """A row of a frame may hold 1.0 for 1 and 1 for True."""
    frame = pd.DataFrame({"kind": [10, 20, 30, 40] * 10, "on": [True, False] * 20})
    frame["kind"] = frame["kind"].astype("category")
    e = eblime.TabularExplainer(Spy(), frame, n_masks=50).explain({"kind": 10.0, "on": 1})

    assert e.features == ["kind = 10", "on = True"]
    assert list(e.to_frame()["value"]) == ["10", "True"]


def test_a_number_is_in_the_bin_of_what_the_model_sees():
    """0.7 in a column of single precision is 0.69999999, which is not above the edge 0.69999999."""
    numbers = np.array([0.1, 0.7, 0.8, 0.9] * 25, dtype=np.float32)
    frame = pd.DataFrame({"x": numbers, "y": np.arange(100.0)})
    explainer = eblime.TabularExplainer(Spy(), frame, bins={"x": [float(np.float32(0.7))]})
    masks, rows = masks_and_rows(explainer, {"x": 0.7, "y": 3.0})

    assert_array_equal(masks[:, 0] == 1, rows["x"].to_numpy() <= np.float32(0.7))


@pytest.mark.parametrize(
    "settings",
    [
        {"perturb": "normal"},
        {"perturb": "normal", "bins": "decile"},
        {"perturb": "normal", "design": "paired"},
        {"representation": "continuous"},
        {"representation": "continuous-mean"},
    ],
)
@pytest.mark.parametrize("library", ["array", "pandas", "nullable", "polars", "pyarrow"])
def test_new_numbers_are_whole_in_columns_of_whole_numbers(library, settings):
    """In the dtype of the column and its range; the masks describe what the model sees."""
    rng = np.random.default_rng(0)
    small, other = rng.integers(0, 9, 200).astype(np.uint8), rng.integers(0, 200, 200)
    columns = {"small": small, "other": other}
    if library == "array":
        table = np.column_stack([small, other]).astype(np.uint8)
    elif library == "nullable":
        table = pd.DataFrame(columns).astype({"small": "UInt8", "other": "Int64"})
        table.loc[::9, "other"] = pd.NA
    else:
        table = table_of(library, columns)
    explainer = eblime.TabularExplainer(Spy(), table, n_masks=300, **settings)
    masks, rows = masks_and_rows(explainer, [int(small[3]), int(other[3])])

    assert table_kind(rows) == table_kind(table)
    seen = np.asarray(rows[:, 0] if library == "array" else rows["small"]).astype(float)
    if "representation" in settings:
        assert_allclose(masks[:, 0], (seen - small.mean()) / small.std(), atol=1e-12)
        return
    percents = range(10, 100, 10) if "bins" in settings else (25, 50, 75)
    edges = np.percentile(small, percents)
    own, found = np.searchsorted(edges, small[3]), np.searchsorted(edges, seen)
    assert_array_equal(masks[:, 0] == 1, found == own)


def hours(zone=None):
    """One time per hour."""
    start = datetime.datetime(2021, 6, 1, tzinfo=zone)
    return [start + datetime.timedelta(hours=k) for k in range(96)]


def table_of(library, columns):
    """Columns as a table of a library."""
    package = pytest.importorskip(library)
    return package.table(columns) if library == "pyarrow" else package.DataFrame(columns)


def values_of(column):
    """A column of a table of any library as a list."""
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("zone", [NEW_YORK, datetime.timezone.utc])
@pytest.mark.parametrize("position", [25, 46])  # the first and the last hours of a quarter
def test_times_of_a_row_may_be_in_any_time_zone(library, zone, position):
    """The mask says whether the time that the model sees is in the bin of the row's time."""
    times = hours(NEW_YORK)
    table = table_of(library, {"at": times, "x": list(range(96))})
    row = {"at": times[position].astimezone(zone), "x": 1}
    masks, rows = masks_and_rows(eblime.TabularExplainer(Spy(), table, n_masks=300), row)
    in_second_quarter = [times[24] <= time <= times[47] for time in values_of(rows["at"])]

    assert_array_equal(masks[:, 0] == 1, in_second_quarter)


def test_a_time_with_a_zone_does_not_fit_a_column_without():
    """It is refused before the model is called."""
    spy = Spy()
    frame = pd.DataFrame({"at": hours(), "x": np.arange(96.0)})
    with pytest.raises(ValueError, match="'at' of the row must have a value that its dtype"):
        eblime.TabularExplainer(spy, frame).explain({"at": hours(NEW_YORK)[5], "x": 1.0})

    assert spy.seen == []


@pytest.mark.parametrize("dtype", ["object", "date32[pyarrow]"])
def test_dates_without_a_time_are_cut_into_bins(dtype):
    """They are times, not one category per day; far dates such as 9999-12-31 are allowed."""
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=k) for k in range(99)]
    column = pd.Series([*days, datetime.date(9999, 12, 31)], dtype=dtype)
    frame = pd.DataFrame({"day": column, "x": np.arange(100.0)})
    masks, rows = masks_and_rows(eblime.TabularExplainer(Spy(), frame), frame.iloc[10])
    e = eblime.TabularExplainer(Spy(), frame, n_masks=50).explain(frame.iloc[10])

    assert e.features[0] == "day <= 2020-01-25"
    assert_array_equal(masks[:, 0] == 1, [day <= datetime.date(2020, 1, 25) for day in rows["day"]])
    assert rows["day"].dtype == column.dtype


def test_a_column_of_decimals_holds_numbers():
    """In the background and in the row."""
    prices = [Decimal(k) / 100 for k in range(200)]
    frame = pd.DataFrame({"price": prices, "x": np.arange(200.0)})
    spy = Spy()
    e = eblime.TabularExplainer(spy, frame, n_masks=50).explain(frame.iloc[20])

    assert e.features[0] == "price <= 0.4975"
    assert isinstance(spy.seen[0]["price"].iloc[0], Decimal)


def test_complex_numbers_are_refused():
    """With the name of the column."""
    frame = pd.DataFrame({"z": np.arange(20) * 1j, "x": np.arange(20.0)})
    with pytest.raises(TypeError, match="Column 'z' must hold numbers, dates"):
        eblime.TabularExplainer(Spy(), frame)


@pytest.mark.parametrize("names", [[0, 1], [("a", "kind"), ("a", "x")]])
def test_new_categories_in_columns_whose_labels_are_not_strings(names):
    """Numbers, and the tuples of several levels of labels."""
    frame = pd.DataFrame({"kind": ["u", "v"] * 20, "x": np.arange(40.0)}).astype(
        {"kind": "category"}
    )
    frame.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names
    model = lambda table: (table[names[0]] == "w").to_numpy(float)  # noqa: E731
    e = eblime.TabularExplainer(model, frame, n_masks=100).explain(["w", 3.0])

    assert e.features[0] == f"{names[0]} = w"
    assert e.posterior.mean == pytest.approx([1, 0], abs=1e-3)


@pytest.mark.parametrize("kind", ["large_string", "dictionary"])
def test_arrow_columns_keep_their_types(kind):
    """Arrow has several types for strings, and the row is stored in that of its column."""
    pa = pytest.importorskip("pyarrow")
    column = pa.array(["u", "v"] * 20)
    dictionary = kind == "dictionary"
    column = column.dictionary_encode() if dictionary else column.cast(getattr(pa, kind)())
    table = pa.table({"kind": column, "x": np.arange(40.0)})
    asked = []

    def model(rows):
        asked.append(rows)
        return [float(value == "w") for value in rows["kind"].to_pylist()]

    e = eblime.TabularExplainer(model, table, n_masks=100).explain({"kind": "w", "x": 3.0})

    assert e.posterior.mean == pytest.approx([1, 0], abs=1e-3)
    assert asked[0].schema.field("kind").type == column.type


def monthly():
    """A frame with a column of few dates, and a column of numbers."""
    months = [datetime.datetime(2020, month, 1) for month in range(1, 13)]
    return pd.DataFrame({"month": months * 10, "x": np.arange(120.0)})


def test_times_of_numpy_in_nanoseconds():
    """They are times in a row without labels, and in an array of objects."""
    days = np.datetime64("2020-01-01", "ns") + np.arange(40) * np.timedelta64(1, "D")
    frame = pd.DataFrame({"day": days, "x": np.arange(40.0)})
    array = np.empty((40, 2), dtype=object)
    array[:, 0], array[:, 1] = list(days), np.arange(40.0)

    for table, name in ((frame, "day"), (array, "column 0")):
        subject = eblime.TabularExplainer(Spy(), table).subject([days[5], 5.0])
        assert subject.scene.features[0] == f"{name} <= 2020-01-10"


def test_times_may_be_categories():
    """Each time is one category, and the row's is among them."""
    frame = monthly()
    model = lambda table: (table["month"] == frame["month"][2]).to_numpy(float)  # noqa: E731
    explainer = eblime.TabularExplainer(model, frame, categorical=["month"])
    e = explainer.explain(frame.iloc[2])

    assert e.features[0] == "month = 2020-03-01"
    assert e.posterior.mean == pytest.approx([1, 0], abs=1e-3)


def test_edges_of_times_are_dates():
    """A list for all columns is for the columns of numbers."""
    frame = monthly()
    dates = {"month": [datetime.date(2020, 6, 15), pd.Timestamp("2020-09-15")]}
    spy = Spy()

    subject = eblime.TabularExplainer(spy, frame, bins=dates).subject(frame.iloc[6])
    assert subject.scene.features[0] == "2020-06-15 < month <= 2020-09-15"
    subject = eblime.TabularExplainer(spy, frame, bins=[50.0]).subject(frame.iloc[6])
    assert subject.scene.features == ["2020-06-16 < month <= 2020-09-08", "x <= 50"]
    for edges in ([3.0], ["2020-06-15"]):
        with pytest.raises(ValueError, match="'month' must be a list of dates"):
            eblime.TabularExplainer(spy, frame, bins={"month": edges})
    with pytest.raises(ValueError, match="'x' must be a list of finite edges"):
        eblime.TabularExplainer(spy, frame, bins={"x": [datetime.date(2020, 6, 15)]})


def test_bins_of_categories_are_refused():
    """They would not be used."""
    frame = pd.DataFrame({"kind": ["a", "b"] * 20, "x": np.arange(40.0)})
    with pytest.raises(ValueError, match="numbers or times; 'kind' holds categories"):
        eblime.TabularExplainer(Spy(), frame, bins={"kind": [1.0]})
