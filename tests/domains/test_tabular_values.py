"""Values of a row: the model sees what the labels say, in every kind of table."""

import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import eblime

NEW_YORK = ZoneInfo("America/New_York")


class Spy:
    """A model that records its inputs."""

    def __init__(self):
        self.seen = []

    def __call__(self, table):
        """Return some scores."""
        self.seen.append(table)
        return np.arange(len(table), dtype=float)


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
    assert e.posterior.mean == pytest.approx([2 / 3, 0], abs=1e-3)


def test_labels_show_the_values_of_the_background():
    """A row of a frame may hold 1.0 for 1 and 1 for True."""
    frame = pd.DataFrame({"kind": [10, 20, 30, 40] * 10, "on": [True, False] * 20})
    frame["kind"] = frame["kind"].astype("category")
    e = eblime.TabularExplainer(Spy(), frame, n_masks=50).explain({"kind": 10.0, "on": 1})

    assert e.features == ["kind = 10", "on = True"]
    assert list(e.to_frame()["value"]) == ["10", "True"]


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
def test_times_of_a_row_may_be_in_any_time_zone(library, zone):
    """The model gets the row's time in the zone of the column, where it is shown."""
    times = hours(NEW_YORK)
    table = table_of(library, {"at": times, "x": list(range(96))})
    row = {"at": times[25].astimezone(zone), "x": 1}
    spy = Spy()
    e = eblime.TabularExplainer(spy, table).explain(row)

    assert values_of(spy.seen[0]["at"])[0] == times[25]
    assert e.features[0] == "at = 2021-06-02 01:00"


def test_a_time_with_a_zone_does_not_fit_a_column_without():
    """It is refused before the model is called."""
    spy = Spy()
    frame = pd.DataFrame({"at": hours(), "x": np.arange(96.0)})
    with pytest.raises(ValueError, match="'at' of the row must have a value that its dtype"):
        eblime.TabularExplainer(spy, frame).explain({"at": hours(NEW_YORK)[5], "x": 1.0})

    assert spy.seen == []


@pytest.mark.parametrize("dtype", ["object", "date32[pyarrow]"])
def test_dates_without_a_time_keep_their_dtype(dtype):
    """Far dates such as 9999-12-31 are allowed."""
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=k) for k in range(99)]
    column = pd.Series([*days, datetime.date(9999, 12, 31)], dtype=dtype)
    frame = pd.DataFrame({"day": column, "x": np.arange(100.0)})
    spy = Spy()
    e = eblime.TabularExplainer(spy, frame, n_masks=50).explain(frame.iloc[10])

    assert e.features[0] == "day = 2020-01-11"
    assert spy.seen[-1]["day"].dtype == column.dtype
    assert set(spy.seen[-1]["day"]) <= set(column)


def test_a_column_of_decimals_holds_numbers():
    """In the background and in the row."""
    prices = [Decimal(k) / 100 for k in range(200)]
    frame = pd.DataFrame({"price": prices, "x": np.arange(200.0)})
    spy = Spy()
    e = eblime.TabularExplainer(spy, frame, n_masks=50).explain(frame.iloc[20])

    assert e.features[0] == "price = 0.2"
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


def test_times_of_numpy_in_nanoseconds():
    """They are times in a row without labels, and in an array of objects."""
    days = np.datetime64("2020-01-01", "ns") + np.arange(40) * np.timedelta64(1, "D")
    frame = pd.DataFrame({"day": days, "x": np.arange(40.0)})
    array = np.empty((40, 2), dtype=object)
    array[:, 0], array[:, 1] = list(days), np.arange(40.0)

    for table, name in ((frame, "day"), (array, "column 0")):
        subject = eblime.TabularExplainer(Spy(), table).subject([days[5], 5.0])
        assert subject.scene.features[0] == f"{name} = 2020-01-06"


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_object_stays_what_it_is(missing):
    """Encoders of scikit-learn tell None from NaN."""
    frame = pd.DataFrame({"kind": np.array(["u", "v"] * 20, dtype=object), "x": np.arange(40.0)})
    frame = frame.astype({"kind": object})
    spy = Spy()
    eblime.TabularExplainer(spy, frame, n_masks=50).explain({"kind": missing, "x": 3.0})

    assert str(spy.seen[0]["kind"].iloc[0]) == str(missing)
