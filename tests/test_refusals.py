"""Wrong inputs are refused before the model is asked, by messages that name what was given."""

import os
import re

import numpy as np
import pytest

import eblime

TEXT = "one two three"
ROWS = np.arange(12.0).reshape(4, 3)


class Asked(Exception):
    """The model was asked."""


def never(batch):
    """A model that must not be asked."""
    raise Asked


def image(**settings):
    """An explainer of images."""
    return eblime.ImageExplainer(never, **settings)


def table(background=ROWS, **settings):
    """An explainer of rows."""
    return eblime.TabularExplainer(never, background, **settings)


REFUSED = {
    "a signal hidden by True": (
        lambda: eblime.SignalExplainer(never, hide=True),
        "`hide` must be 'bridge', 'mean', 'zero', 'noise', a number, an array or a function; "
        "got True.",
    ),
    "a seed that is a word": (
        lambda: eblime.TextExplainer(never).explain(TEXT, rng="a"),
        "`rng` must be a whole number >= 0, a numpy.random.Generator or None; got 'a'.",
    ),
    "a seed below zero": (
        lambda: eblime.fit(np.eye(3), np.arange(3.0)).sample(2, rng=-1),
        "`rng` must be a whole number >= 0, a numpy.random.Generator or None; got -1.",
    ),
    "a seed of a relative of LIME": (
        lambda: eblime.family.UnRAVEL().explain(
            eblime.TabularExplainer(never, ROWS), ROWS[0], rng="a"
        ),
        "`rng` must be a whole number >= 0, a numpy.random.Generator or None; got 'a'.",
    ),
    "rows of pixels with different lengths": (
        lambda: image().explain([[1, 2], [3]]),
        "setting an array element with a sequence. The requested array has an inhomogeneous shape "
        "after 1 dimensions. The detected shape was (2,) + inhomogeneous part.",
    ),
    "a parameter that the segmentation lacks": (
        lambda: image(segmentation=("grid", {"row": 3})),
        "The parameters in `segmentation` must be those of 'grid', 'rows', 'columns'; got 'row'.",
    ),
    "several rows": (
        lambda: table().explain(ROWS[:2]),
        "`row` must have a value for each of the 3 columns; got 6.",
    ),
    "a name twice": (
        lambda: table(names=["a", "b", "a"]),
        "`names` must be 3 different names; got ['a', 'b', 'a'].",
    ),
    "too few names": (
        lambda: table(names=["a", "b"]),
        "`names` must be 3 different names; got ['a', 'b'].",
    ),
    "a page of something else": (
        lambda: eblime.report(5),
        "`explanations` must be an Explanation or a list with at least one; got int.",
    ),
    "the path of a table": (
        lambda: table("train.csv"),
        "got str. Read a file first, for example with pandas.read_csv; make a pandas.DataFrame of "
        "a dictionary; collect a lazy frame with its collect().",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_inputs_are_refused(case):
    """What must hold, what was given, and what to do."""
    call, message = REFUSED[case]

    with pytest.raises((ValueError, TypeError), match=re.escape(message) + "$"):
        call()


def test_a_lazy_frame_must_be_collected():
    """A lazy frame has no rows yet."""
    polars = pytest.importorskip("polars")

    with pytest.raises(
        TypeError, match=r"got LazyFrame\. .*; collect a lazy frame with its collect\(\)\.$"
    ):
        table(polars.DataFrame({"a": [1, 2]}).lazy())


def test_a_model_is_not_an_explainer(tmp_path):
    """Nor is it a function that creates one, nor may that create anything else."""
    pytest.importorskip("pyarrow")

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'batch'"):
        eblime.explain_many(never, ROWS, tmp_path / "run")
    with pytest.raises(TypeError, match="creates one; got int"):
        eblime.explain_many(lambda: 3, ROWS, tmp_path / "run")


def test_a_model_of_one_input_is_told_about_batches():
    """A function of one text gets a list of texts."""
    with pytest.raises(eblime.ModelError, match=r"'lower'\. A model is called with a batch of inp"):
        eblime.TextExplainer(lambda text: float("good" in text.lower())).explain(TEXT)


def test_complex_and_text_scores_are_described():
    """The message says what the model returned."""
    with pytest.raises(eblime.ModelError, match="a ndarray of complex, such as 1j"):
        eblime.TextExplainer(lambda texts: np.full(len(texts), 1j)).explain(TEXT)
    with pytest.raises(eblime.ModelError, match="a ndarray of str, such as 'yes'"):
        eblime.TextExplainer(lambda texts: np.full(len(texts), "yes")).explain(TEXT)


def test_a_missing_folder_is_named(tmp_path):
    """Not the temporary file that would have been written there."""
    e = eblime.TextExplainer(lambda texts: [len(text) for text in texts]).explain(TEXT)
    missing = tmp_path / "missing"

    with pytest.raises(FileNotFoundError, match=r"missing/e\.eblime'"):
        e.save(missing / "e.eblime")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_folder_that_cannot_be_written_to_names_the_file(tmp_path):
    """Not the temporary file beside it."""
    e = eblime.TextExplainer(lambda texts: [len(text) for text in texts]).explain(TEXT)
    tmp_path.chmod(0o500)

    with pytest.raises(PermissionError) as caught:
        e.save(tmp_path / "e.eblime")
    assert caught.value.filename == str(tmp_path / "e.eblime")


@pytest.mark.parametrize("name", ["n_samples", "num_samples", "nsamples", "seed", "random_state"])
def test_names_of_other_libraries_name_ours(name):
    """In every call that explains."""
    explainer = eblime.TabularExplainer(never, ROWS)
    ours = "rng" if name in ("seed", "random_state") else "n_masks"
    for call in (
        lambda: explainer.explain(ROWS[0], **{name: 5}),
        lambda: explainer.explain_many(ROWS, **{name: 5}),
        lambda: eblime.explain(never, ROWS[0], ROWS, **{name: 5}),
    ):
        with pytest.raises(TypeError, match=f"`{name}` is called `{ours}` in eblime"):
            call()


def test_an_explainer_is_not_called():
    """A call does not say whether its argument is one row or a table of rows."""
    with pytest.raises(TypeError, match=r"explainer\.explain\(x\) for one input"):
        eblime.TabularExplainer(never, ROWS)(ROWS[0])


def test_an_unknown_plot_lists_those_of_the_input():
    """A row has no map, and a text no slices."""
    explanation = eblime.TabularExplainer(lambda rows: rows[:, 0], ROWS).explain(ROWS[0])
    with pytest.raises(ValueError, match=r"`kind` must be one of 'intervals'.*'fit'; got 'bars'"):
        explanation.plot("bars")
