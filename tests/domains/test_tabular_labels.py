"""Labels of bins: correct for the row and the background, and short."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eblime
from eblime.domains.tabular.binning import cut_number
from eblime.domains.tabular.cells import Cells

NUMBER = r"-?[\d.]+(?:e[-+]\d+)?"


def holds(label, values):
    """The values for which a label about `x` is true, by the numbers as they are written."""
    values = np.asarray(values, dtype=float)
    if label.startswith("x = "):
        return values == float(label[4:])
    if label.startswith("x ≈ "):  # the nearest of the values, rounded to 6 digits
        gaps = np.abs(values - float(label[4:]))
        return (gaps == gaps.min()) & (gaps <= 5e-6 * abs(float(label[4:])))
    found = np.ones(len(values), dtype=bool)
    low = re.match(rf"({NUMBER}) < x", label) or re.match(rf"x > ({NUMBER})$", label)
    high = re.search(rf"x <= ({NUMBER})$", label)
    assert low or high, label
    if low:
        found &= values > float(low[1])
    if high:
        found &= values <= float(high[1])
    return found


NUMBERS = st.one_of(
    st.lists(st.integers(-100, 100), min_size=2, max_size=30),
    st.lists(st.integers(10**6, 10**6 + 40), min_size=2, max_size=30),
    st.lists(
        st.floats(-1e12, 1e12, allow_nan=False).filter(lambda v: v == 0 or abs(v) > 1e-9),
        min_size=2,
        max_size=30,
    ),
    st.lists(st.integers(0, 50).map(lambda k: 12345 + k * 1e-4), min_size=2, max_size=30),
)


@given(values=NUMBERS, extra=st.floats(-1e6, 2e6), bins=st.sampled_from(["quartile", "decile"]))
def test_labels_are_correct(values, extra, bins):
    """True for the row's value, and for exactly the background's values in the same bin."""
    background = np.array(values, dtype=float)
    column = cut_number("x", Cells(background, "number"), bins)
    for own in (*values[:5], extra):
        label = column.label(own)
        inside = column.same(background, own)

        assert holds(label, [own])[0], (label, own)
        assert (holds(label, background) == inside).all(), (label, own)


@given(values=NUMBERS)
def test_ordinary_numbers_have_no_exponent(values):
    """And whole numbers have no decimal point."""
    column = cut_number("x", Cells(np.array(values, dtype=float), "number"), "quartile")
    labels = [column.label(value) for value in values]

    if all(value == 0 or abs(value) > 1e-3 for value in values):
        assert not any("e" in label for label in labels)
    if all(float(value).is_integer() for value in values):
        assert not any("." in label for label in labels)


@pytest.mark.parametrize(
    ("values", "edges", "own", "label"),
    [
        ([1365, 1366, 1400, 2320, 2321], [1365.5, 2320], 1366, "1365 < x <= 2320"),
        ([1365.2, 1366, 1400, 2320, 2321], [1365.5, 2320], 1366, "1365.5 < x <= 2320"),
        ([12345.1, 12345.2, 12345.3], [12345.15], 12345.25, "x > 12345.1"),
        ([12345.12, 12345.2, 12345.3], [12345.15, 12345.25], 12345.2, "x = 12345.2"),
        ([999999, 1000001, 1000003], [1000000.5], 1000002, "x > 1000000"),
        ([4.9, 5.1, 6.4], [5.1], 5.0, "x <= 5.1"),
        ([1.3, 1.6, 4.3, 5.8, 5.9], [1.60000004, 5.1], 1.5, "x <= 1.6"),
        ([1.3, 1.6, 1.7, 5.8], [1.65432], 1.6543, "x <= 1.6543"),
        ([0, 0, 0, 1], "quartile", 1, "x = 1"),
        ([3, 3, 3, 3], "quartile", 2, "x = 2"),
        ([-0.5773502691896258, 1.7], "quartile", -0.5773502691896258, "x ≈ -0.57735"),
    ],
)
def test_labels_have_as_few_digits_as_possible(values, edges, own, label):
    """As many digits as needed, not more."""
    cells = Cells(np.array(values, dtype=float), "number")

    assert cut_number("x", cells, edges).label(own) == label


@pytest.mark.parametrize("representation", ["binary", "continuous"])
def test_a_rounded_number_is_marked_and_values_have_all_digits(representation):
    """With "=", a label has the number itself; the values of a row are not rounded."""
    sex = [0.05068011873981862, -0.044641636506989]
    table = np.array([[sex[k % 2], k / 7, k] for k in range(40)])
    explainer = eblime.TabularExplainer(
        lambda rows: rows[:, 0],
        table,
        names=["sex", "a", "b"],
        representation=representation,
        groups={"both": ["a", "b"]},
        n_masks=20,
    )
    scene = explainer.subject(table[4]).scene

    assert scene.features == ["sex ≈ 0.0506801", "both: a ≈ 0.571429, b = 4"]
    assert scene.values[0] == "0.05068011873981862"
    assert float(scene.values[1].split(", ")[0]) == 4 / 7


def test_times_have_the_precision_that_is_needed():
    """Days if all values are days; minutes and seconds if the bins need them."""
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-05"])
    seconds = pd.to_datetime([f"2020-01-01 10:15:{s}" for s in ("01", "02", "30", "59")])

    def label(times, position):
        explainer = eblime.TabularExplainer(
            lambda t: np.zeros(len(t)), pd.DataFrame({"x": times}), n_masks=20
        )
        return explainer.subject({"x": times[position]}).scene.features[0]

    assert label(days, 0) == "x = 2020-01-01"
    assert label(days, 3) == "x = 2020-01-05"
    assert label(seconds, 3) == "x = 2020-01-01 10:15:59"
