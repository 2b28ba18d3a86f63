"""Labels of features: the values of the row, short and exact."""

import numpy as np
import pandas as pd

import eblime


def test_a_rounded_number_is_marked_and_values_have_all_digits():
    """With "=", a label has the number itself; the values of a row are not rounded."""
    sex = [0.05068011873981862, -0.044641636506989]
    table = np.array([[sex[k % 2], k / 7, k] for k in range(40)])
    explainer = eblime.TabularExplainer(
        lambda rows: rows[:, 0],
        table,
        names=["sex", "a", "b"],
        groups={"both": ["a", "b"]},
        n_masks=20,
    )
    scene = explainer.subject(table[4]).whole

    assert scene.features == ["sex ≈ 0.0506801", "both: a ≈ 0.571429, b = 4"]
    assert scene.values[0] == "0.05068011873981862"
    assert float(scene.values[1].split(", ")[0]) == 4 / 7


def test_times_have_the_precision_that_is_needed():
    """Days, and minutes and seconds where a time has them."""
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
