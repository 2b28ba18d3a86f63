"""Importance over the inputs of a run: summaries, cohorts, comparisons and plots."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import eblime
from eblime.batch import results as results_module
from eblime.batch.overview import overview
from eblime.core.overall import absolute_moments

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

N = 40
UNUSED = ["e", "f"]


def table():
    """Numbers, of which two columns are not used, and a category."""
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.normal(size=(N, 5)), columns=["a", "b", "c", *UNUSED])
    return found.assign(kind=np.where(np.arange(N) % 2, "red", "blue"))


def model(rows):
    """Uses a in red rows only, b with the opposite sign, and a little of c."""
    a, b, c = (rows[name].to_numpy(float) for name in "abc")
    red = (rows["kind"] == "red").to_numpy()
    return 1 / (1 + np.exp(-(2 * a * red - 1.5 * b + 0.3 * c)))


def without_b(rows):
    """A model in which b has no effect."""
    return model(rows.assign(b=0.0))


def mood(texts):
    """Depends on one word alone."""
    return [0.1 + 0.5 * ("good" in text) for text in texts]


def together(texts):
    """Starts at 2, and two words act together."""
    return [
        2 + 0.5 * ("good" in t) - 0.2 * ("bad" in t) + 0.6 * ("good" in t and "end" in t)
        for t in texts
    ]


def explain(folder, score=model, n_masks=40, **settings):
    """A run over the table."""
    explainer = eblime.TabularExplainer(score, table(), n_masks=n_masks)
    return eblime.explain_many(explainer, table(), folder, progress=False, **settings)


def cats_and_dogs(rows):
    """Two classes, of which both are predicted for some rows."""
    cat = model(rows)
    return np.column_stack([cat, 1 - cat])


def test_a_run_of_predicted_classes_says_which(tmp_path):
    """In the table, on the axis of both plots and on the page."""
    explainer = eblime.TabularExplainer(cats_and_dogs, table(), n_masks=30, labels=["cat", "dog"])
    run = eblime.explain_many(
        explainer, table(), tmp_path / "run", targets="predicted", progress=False
    )
    parts = Counter(np.where(model(table()) > 0.5, "cat", "dog").tolist()).most_common()
    words = "the predicted class of each input: " + ", ".join(f"{n} x {name}" for name, n in parts)
    labels = [run.plot().get_xlabel(), run.plot("dependence", feature="a").get_ylabel()]

    assert set(run.summary()["output"]) == {words}
    assert all(f"importance for {words}" in label.replace("\n", " ") for label in labels)
    assert f"For <bdi>{words}</bdi>. Signs are those of different outputs." in overview(run)


def test_a_run_of_one_output_names_it(tmp_path):
    """And its page says nothing of several."""
    run = explain(tmp_path / "run", n_masks=30)

    assert set(run.summary()["output"]) == {"output"}
    assert "Signs are those" not in overview(run)


def test_a_frame_has_the_columns_that_apply(tmp_path):
    """Those of the domain, and of prompts the question; all of them are there if they are named."""
    ask = lambda prompts: [len(prompt) for prompt in prompts]  # noqa: E731
    prompts = eblime.PromptExplainer(ask, ["a", "bc", "def"], n_masks=8)
    asked = eblime.explain_many(prompts, ["why?", "who?"], tmp_path / "prompts", progress=False)
    rows = explain(tmp_path / "rows", n_masks=30).frame()

    assert asked.frame()["question"].unique().tolist() == ["why?", "who?"]
    assert not {"area", "centroid_row", "question"} & set(rows.columns)
    assert {"value", "bin"} <= set(rows.columns)
    assert "area" in asked.frame(["area"]).columns


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with few masks."""
    return explain(tmp_path_factory.mktemp("few") / "r", part_size=9)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The same rows with a model that ignores b."""
    return explain(tmp_path_factory.mktemp("other") / "r", without_b)


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """Mean |importance| with 20,000 masks, where least squares leaves errors of .001."""
    rows = explain(tmp_path_factory.mktemp("many") / "r", n_masks=20_000).frame()
    return rows.groupby("feature")["estimate"].agg(lambda values: values.abs().mean())


@pytest.mark.slow
def test_summaries_cover_the_truth(tmp_path, truth):
    """95 % of the intervals do, less three standard errors of 8 seeds and 6 columns."""
    held = []
    for seed in range(8):
        found = explain(tmp_path / str(seed), rng=seed).summary().set_index("feature")
        right = truth.loc[found.index]
        # the truth of an unused column is the noise that 20,000 masks leave
        held.append((found["low"] <= right + 0.002) & (right - 0.002 <= found["high"]))

    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / np.size(held))


@pytest.mark.slow
def test_an_unused_column_is_not_important(run, truth):
    """Its interval begins near zero; the mean of folded normals is many times the truth."""
    found = run.summary().set_index("feature")
    rows = run.frame()
    rows["size"] = absolute_moments(rows["mean"].to_numpy(), rows["sd"].to_numpy())[0]
    before = rows.groupby("feature")["size"].mean()

    for name in UNUSED:
        assert found.loc[name, "low"] < 0.01
        assert found.loc[name, "mean_abs"] < 0.8 * before[name]
        assert before[name] > 5 * truth[name]
    assert found.loc["b", "low"] > 0.1
    assert list(found.columns[:4]) == ["mean_abs", "inputs", "low", "high"]


def test_the_mean_importance_is_not_shrunk(run):
    """`mean` is the mean of the least-squares estimates, with their standard errors."""
    rows = run.frame().query("feature == 'b'")
    found = run.summary().set_index("feature").loc["b"]
    se = np.sqrt((rows["se"] ** 2).sum()) / N

    assert found["mean"] == pytest.approx(rows["estimate"].mean())
    assert found["mean_high"] - found["mean"] == pytest.approx(1.96 * se, rel=1e-3, abs=1e-6)


@pytest.mark.slow
def test_summaries_by_cohort(run):
    """By column, list, dictionary of numbers or names, and label: the same groups."""
    kinds = table()["kind"]
    by_column = run.summary(by="kind")
    by_list = run.summary(by=kinds)
    by_number = run.summary(by=dict(enumerate(kinds)))
    reds = run.summary(by={str(i): "red" for i in range(1, N, 2)})

    assert set(by_column["group"]) == {"kind = red", "kind = blue"}
    pd.testing.assert_frame_equal(by_list, by_number)
    numbers = by_list.columns[2:]
    np.testing.assert_array_equal(by_column[numbers], by_list[numbers])
    assert reds["inputs"].tolist() == [N // 2] * 6
    assert set(run.summary(by="label")["inputs"]) == {N}


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("height", "`by` must be \"label\", a column of the table, .* got 'height'"),
        (["red"], "one group for each of the 40 inputs"),
        ({}, "at least one input"),
    ],
)
def test_cohorts_that_do_not_fit_are_refused(run, by, message):
    """The message says what a grouping can be."""
    with pytest.raises(ValueError, match=message):
        run.summary(by=by)


def test_cohorts_are_compared(run):
    """Over 20 rows each; the intervals of unused columns contain zero, or nearly."""
    found = run.compare(by="kind", groups=("kind = red", "kind = blue")).set_index("feature")

    assert (found["low"] <= found["difference"]).all()
    assert (found["difference"] <= found["high"]).all()
    assert found["inputs"].tolist() == [20] * 6
    for name in UNUSED:
        assert found.loc[name, "low"] < 0.01
        assert found.loc[name, "high"] > -0.01


def test_runs_are_compared(run, other):
    """Two models differ in the column that one of them ignores."""
    found = run.compare(other)

    assert found["feature"][0] == "b"
    assert found["low"][0] > 0.1
    assert found["other_inputs"].tolist() == [N] * 6
    same = run.compare(run).set_index("feature")
    assert (same["low"] <= 0).all()
    assert (same["high"] >= 0).all()


def test_runs_of_different_quantities_are_marked(tmp_path):
    """Sizes of a linear fit and of Shapley values do not compare."""
    texts, methods = ["a good film, really"], ("eblime", eblime.Quadrature(index="shapley"))
    runs = [
        eblime.explain_many(
            eblime.TextExplainer(mood, method=method), texts, tmp_path / str(k), progress=False
        )
        for k, method in enumerate(methods)
    ]

    with pytest.warns(UserWarning, match="estimate different quantities"):
        runs[0].compare(runs[1])


def test_rounding_is_no_importance_and_no_difference(tmp_path):
    """All masks are asked, so that there is no sampling error; unused words differ by rounding."""
    texts = ["a good film, really", "a bad film with a good end"]
    runs = []
    for method in ("eblime", "lime"):
        explainer = eblime.TextExplainer(mood, method=method)
        runs.append(eblime.explain_many(explainer, texts, tmp_path / method, progress=False))
    summary = runs[0].summary().set_index("feature")
    differences = runs[0].compare(runs[1])

    assert runs[0].frame()["estimate"].abs().between(1e-300, 1e-12).any()  # rounding is there
    assert summary.index[summary["low"] > 0].tolist() == ["word 'good'"]
    assert (differences["low"] <= 0).all()
    assert (differences["high"] >= 0).all()


@pytest.mark.parametrize(
    "method",
    ["bayesshap", eblime.Quadrature(), eblime.Quadrature(index="shapley")],
    ids=["bayesshap", "quadrature", "shapley"],
)
def test_summaries_are_about_what_the_method_estimates(tmp_path, method):
    """Shapley values are not averaged as coefficients of a line through their answers."""
    texts = ["a good film with a bad end and a nice song", "the bad end of a good old song for us"]
    explainer = eblime.TextExplainer(together, n_masks=120, method=method)
    run = eblime.explain_many(explainer, texts, tmp_path / "r", progress=False)
    summary = run.summary().set_index("feature")
    means = run.frame().groupby("feature")["mean"].mean()

    for word in ("good", "bad"):
        feature = f"word {word!r}"
        assert summary.loc[feature, "mean"] == pytest.approx(means[feature])
        assert summary.loc[feature, "mean_abs"] == pytest.approx(abs(means[feature]), abs=0.03)


def test_failed_inputs_are_left_out_of_both_runs(tmp_path):
    """Runs over the same inputs are compared over those that both have explained."""
    inputs = [[0.1, 0.2], [0.3, 0.4], [0.5], [0.6, 0.7]]
    background = np.random.default_rng(0).random((30, 2))
    first, second = (
        eblime.explain_many(
            eblime.TabularExplainer(lambda rows, j=j: rows[:, j], background, n_masks=40),
            inputs,
            tmp_path / str(j),
            progress=False,
        )
        for j in (0, 1)
    )

    assert len(first.failures()) == 1
    assert set(first.compare(second)["inputs"]) == {3}


def test_comparisons_that_do_not_fit_are_refused(run):
    """Either another run or two groups."""
    with pytest.raises(ValueError, match="needs either `other`, a run, or `by`"):
        run.compare()
    with pytest.raises(ValueError, match=r"`groups` must be two of 'kind = "):
        run.compare(by="kind", groups=("kind = red", "green"))
    with pytest.raises(TypeError, match="`other` must be a run"):
        run.compare("run")
    with pytest.raises(ValueError, match="`groups` are two groups of `by`"):
        run.compare(run, groups=("kind = red", "kind = blue"))


def test_summaries_read_every_part_once(run, other, monkeypatch):
    """A comparison reads the numbers of the inputs first."""
    reads, folder = [], results_module.run_folder
    read_table = folder.read_table

    def read(home, run, name, *rest):
        reads.append(name)
        return read_table(home, run, name, *rest)

    monkeypatch.setattr(folder, "read_table", read)
    parts = len(folder.part_files(run.location))
    run.summary()
    assert len(reads) == parts
    reads.clear()
    run.compare(other)
    assert len(reads) == 2 * (parts + len(folder.part_files(other.location)))


def test_some_columns_of_a_frame(run):
    """The same rows as in the whole frame, in the order that was asked for."""
    whole, some = run.frame(), run.frame(["mean", "feature"])

    pd.testing.assert_frame_equal(some, whole[["mean", "feature"]])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("beeswarm", {}),
        ("beeswarm", {"top": 2, "label": "output"}),
        ("dependence", {"feature": "b"}),
        ("dependence", {"feature": "kind"}),
    ],
)
def test_plots_of_runs(run, kind, settings):
    """They return the given axes, with a point for each input."""
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert run.plot(kind, ax=ax, **settings) is ax
    ax.figure.draw_without_rendering()

    points = [len(drawn.get_offsets()) for drawn in ax.collections if hasattr(drawn, "get_sizes")]
    swarms = settings.get("top", 6) if kind == "beeswarm" else 1
    assert points.count(N) == swarms


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """A run over a column of numbers, three of them missing, and a column of counts."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"size": rng.normal(size=N), "count": np.minimum(np.arange(N) % 9, 2)})
    data.loc[:2, "size"] = np.nan

    def score(rows):
        return rows["count"].to_numpy(float) + np.nan_to_num(rows["size"].to_numpy(float))

    explainer = eblime.TabularExplainer(score, data, n_masks=100)
    folder = tmp_path_factory.mktemp("gaps") / "r"
    return eblime.explain_many(explainer, data, folder, progress=False)


def test_missing_numbers_are_drawn_apart(gaps):
    """To the right of all others, with a label."""
    ax = gaps.plot("dependence", feature="size")
    points = next(drawn for drawn in ax.collections if hasattr(drawn, "get_sizes"))
    x = np.asarray(points.get_offsets())[:, 0]

    assert [text.get_text() for text in ax.texts] == ["missing"]
    assert x[:3].min() > x[3:].max()
    assert len(ax.lines) == 1  # zero: different numbers have no means


def test_few_numbers_are_spread_sideways(gaps):
    """Points and lines of a single number have a width; ticks are at the numbers."""
    ax = gaps.plot("dependence", feature="count")
    widths = [np.ptp(line.get_xdata()) for line in ax.lines[1:]]
    points = next(drawn for drawn in ax.collections if hasattr(drawn, "get_sizes"))

    assert list(ax.get_xticks()) == [0, 1, 2]
    assert min(widths) > 0.1
    assert len(np.unique(np.asarray(points.get_offsets())[:, 0])) == N


def test_colours_of_a_swarm(gaps):
    """The lowest value is darkest, however many rows have it; missing values are grey."""
    from matplotlib import colormaps

    ax = gaps.plot("beeswarm")
    names = [text.get_text() for text in ax.get_yticklabels()]
    swarms = dict(zip(names, ax.collections, strict=False))
    values = gaps.frame().query("feature == 'count'")["value"].astype(float).to_numpy()
    counts = swarms["count"].get_facecolors()[:, :3]
    grey = swarms["size"].get_facecolors()[:3, :3]

    np.testing.assert_allclose(counts[values == 0], [colormaps["viridis"](0.0)[:3]] * 5)
    assert (counts[values == 2][:, 1] > counts[values == 0][0, 1]).all()
    np.testing.assert_allclose(grey, grey[:, :1].repeat(3, axis=1))


def test_uncertain_points_are_faint(run):
    """Points of an unused column are fainter than those of the most important one."""
    ax = run.plot("beeswarm")
    names = [text.get_text() for text in ax.get_yticklabels()]
    swarms = [drawn for drawn in ax.collections if len(drawn.get_offsets()) == N]
    shade = {
        name: drawn.get_facecolors()[:, 3].mean() for name, drawn in zip(names, swarms, strict=True)
    }

    assert max(shade[name] for name in UNUSED) < 0.5 * shade["b"]


def test_plots_that_do_not_fit_are_refused(run, tmp_path):
    """Unknown kinds, columns and outputs, and runs without a table."""
    with pytest.raises(ValueError, match="`kind` must be one of 'beeswarm', 'dependence'"):
        run.plot("pie")
    with pytest.raises(ValueError, match="`feature` must be one of 'a', 'b'"):
        run.plot("dependence", feature="height")
    with pytest.raises(ValueError, match=r"`feature` must be one of 'a', 'b'.*; got None"):
        run.plot("dependence")
    with pytest.raises(ValueError, match="`label` must be one of 'output'"):
        run.plot("beeswarm", label="cat")
    texts = eblime.TextExplainer(lambda texts: [len(text) for text in texts], n_masks=20)
    words = eblime.explain_many(texts, ["one two", "three four"], tmp_path / "t", progress=False)
    with pytest.raises(TypeError, match="needs a run over a table"):
        words.plot("beeswarm")


def test_the_page_shows_intervals_from_zero(run):
    """The page has the numbers of `summary`."""
    page = overview(run)
    found = run.summary()

    assert "without sampling noise" in page
    for row in found.itertuples():
        assert f"<td>{row.low:.4f} to {row.high:.4f}</td>" in page  # decimals of the largest
    b = found.set_index("feature").loc["b"]
    assert b["negative_low"] <= b["negative_high"]
    assert f"{100 * b['negative_high']:.0f} %" in page


@pytest.mark.slow
def test_the_command_line_compares_runs(run, other, capsys):
    """A table with a star at clear differences, or JSON."""
    from eblime.cli.app import main

    for extra in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["compare", str(run.folder), str(other.folder), "--top", "2", *extra])
        assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[2].startswith("b ")
    assert lines[2].endswith("*")
    assert json.loads(lines[-1])[0]["feature"] == "b"


@pytest.mark.parametrize("name", ["one.eblime", "nothing"])
def test_the_command_line_compares_like_with_like(run, tmp_path, capsys, name):
    """A run is compared with a run only; the message names the path that is none."""
    from eblime.cli.app import main

    (tmp_path / "one.eblime").write_bytes(b"")
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(run.folder), str(tmp_path / name)])

    assert ended.value.code != 0
    assert f"{name} is not an eblime run folder" in capsys.readouterr().err


def test_a_flag_that_few_rows_have_is_averaged_over_all_rows(tmp_path):
    """It is zero in the others, exactly, and every explanation of the run has all features."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"income": rng.normal(size=60), "age": rng.normal(size=60)})
    rows = rows.assign(bankrupt=np.arange(60) % 30 == 29)

    def score(some):
        return some["income"] + 0.5 * some["age"] + 3.0 * some["bankrupt"]

    with pytest.warns(UserWarning, match="'bankrupt'"):
        explainer = eblime.TabularExplainer(score, rows[~rows["bankrupt"]], n_masks=60)
    run = eblime.explain_many(explainer, rows, tmp_path / "run", keep=True, progress=False)
    found = run.summary().set_index("feature")
    entries = [run.explanation(k) for k in (0, 29)]

    assert (found["inputs"] == 60).all()
    assert found.index[-1] == "bankrupt"
    assert found["mean_abs"]["bankrupt"] == pytest.approx(3 * 2 / 60, rel=0.2)
    assert [list(e.scene.columns) for e in entries] == [list(rows.columns)] * 2
    assert [e.posterior.n_features for e in entries] == [3, 3]


def test_an_explanation_that_is_not_there_says_why(tmp_path):
    """It failed, it is none of the run, or it was not saved."""
    inputs = [[0.1, 0.2], [0.3], [0.5, 0.6]]
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], np.eye(2), n_masks=4)
    run = eblime.explain_many(explainer, inputs, tmp_path / "r", progress=False)
    (tmp_path / "r" / "explanations" / "2-0.eblime").unlink()
    for number, target, words in [
        (1, None, "input 1; it failed: ValueError: "),
        (3, None, "input 3; its inputs are 0 to 2[.]$"),
        (2, None, "input 2; keep=True saves them[.]$"),
        (0, 4, "input 0, output 4; keep=True saves them[.]$"),
    ]:
        with pytest.raises(FileNotFoundError, match=words):
            run.explanation(number, target)
