"""Studies: interval scores, runs that resume, rows that do not depend on the number of jobs."""

import argparse
import importlib
import json
import os
import re
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import eblime
import studies
from eblime.datasets.ultrasonic import sample_scans, ultrasonic_network
from eblime.kernels import ExponentialKernel
from studies import cases, pages
from studies.__main__ import STUDIES, main, module_name
from studies.cases import truth_of
from studies.charts.paper import verdict
from studies.charts.style import DOCS
from studies.coverage import coverage, expected_coverage, summary
from studies.data.faulty_parts import FaultyParts
from studies.figures import figure_numbers, maps_figure, outlines, superpixels
from studies.games import AnswerTable, ask_all_masks, cached_answers
from studies.intervals import interval_measures, interval_score
from studies.localisation import SETTINGS, counts, localisation, mcnemar
from studies.runner import run_study, study_generator
from studies.speed import clock
from studies.stability import stability

real = pytest.mark.skipif(not os.environ.get("EBLIME_DATA"), reason="EBLIME_DATA is not set")


def test_interval_score_is_smallest_for_the_true_quantiles(rng):
    """Wider and narrower intervals have a worse mean score on draws from the same distribution."""
    truth = rng.standard_normal(200_000)
    scores = []
    for stretch in (0.7, 0.9, 1.0, 1.1, 1.4):
        half = stretch * stats.norm.ppf(0.975)
        ends = np.broadcast_to([-half, half], (len(truth), 2))
        scores.append(interval_score(ends, truth, 0.95).mean())

    assert np.argmin(scores) == 2


def test_judged_returns_coverage_width_and_score():
    """Two of three truths are inside; every interval has width one."""
    ends = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    found = interval_measures(ends, np.array([0.5, 1.0, 1.2]), 0.95)

    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["width"] == 1
    assert found["score"] == pytest.approx(1 + 40 * 0.2 / 3)


def test_judged_returns_coverage_by_rank():
    """The feature with the largest absolute truth, and the next two; fewer if there are fewer."""
    ends = np.tile([-1.0, 1.0], (4, 1))
    found = interval_measures(ends, np.array([0.5, -3.0, 2.0, 1.0]), 0.95)
    pair = interval_measures(ends[:2], np.array([2.0, 0.5]), 0.95)

    assert (found["top_1"], found["top_2_3"]) == (0.0, 0.5)
    assert (pair["top_1"], pair["top_2_3"]) == (0.0, 1.0)
    assert np.isnan(interval_measures(ends[:1], np.array([0.5]), 0.95)["top_2_3"])


def double(settings, item):
    """A task that records its calls in a file."""
    if settings.get("trace"):
        with Path(settings["trace"]).open("a") as file:
            file.write(f"{item}\n")
    return [{"item": item, "value": 2 * item}]


def refuse(settings, item):
    """A task with an error of its own, after the first item has been stored."""
    if item:
        end = time.monotonic() + 60
        while time.monotonic() < end and not [*Path(settings["out"]).glob("*/item-0.json")]:
            time.sleep(0.01)
        raise KeyError(f"no item {item}")
    return [{"item": item}]


def test_study_resumes_where_it_stopped(tmp_path):
    """Finished items are not run again; damaged files are."""
    trace = str(tmp_path / "trace")
    run_study(double, {"trace": trace}, range(3), out=tmp_path / "s")
    (folder,) = (tmp_path / "s").iterdir()
    (folder / "item-1.json").write_text('[{"item": 1, "val')
    rows = run_study(double, {"trace": trace}, range(5), out=tmp_path / "s")

    assert rows["value"].tolist() == [0, 2, 4, 6, 8]
    assert Path(trace).read_text().split() == ["0", "1", "2", "1", "3", "4"]
    assert pd.read_csv(folder / "rows.csv").equals(rows)
    assert json.loads((folder / "study.json").read_text())["trace"] == trace


@pytest.mark.parametrize("change", ["settings", "file", "array"])
def test_other_settings_or_inputs_have_other_results(tmp_path, change):
    """A study never reads results that belong to other data; the old ones stay."""
    trace, data = tmp_path / "trace", tmp_path / "data"
    data.write_text("one")

    def run(settings, array):
        settings = {"trace": str(trace), **settings}
        run_study(double, settings, range(2), inputs=[data, array], out=tmp_path / "s")

    run({}, np.zeros(3))
    run({}, np.zeros(3))
    assert len(trace.read_text().split()) == 2

    if change == "file":
        data.write_text("two")
    run({"seed": 1} if change == "settings" else {}, np.ones(3) * (change == "array"))
    assert len(trace.read_text().split()) == 4
    assert len(list((tmp_path / "s").iterdir())) == 2


@pytest.mark.slow
def test_number_of_jobs_does_not_change_the_rows(capsys):
    """One job or two: the same rows, in the order of the items, with a progress bar."""
    one = run_study(double, {}, range(7))
    two = run_study(double, {}, range(7), jobs=2, progress=True)

    assert one.equals(two)
    assert "7/7" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_error_of_a_task_is_raised_and_finished_items_are_kept(tmp_path, jobs):
    """In this process and in a worker process."""
    with pytest.raises(KeyError, match="no item 1"):
        run_study(refuse, {"out": str(tmp_path)}, range(2), jobs=jobs, out=tmp_path)

    assert len(list(tmp_path.glob("*/item-0.json"))) == 1


def table_case(monkeypatch, p=6):
    """A case of twelve inputs whose scores are a smooth function of the mask."""

    def load(case, number):
        rng = np.random.default_rng(number)
        masks = ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(float)
        pairs = rng.normal(0, 0.05, (p, p))
        scores = 0.5 + masks @ rng.normal(0, 0.1, p) + np.einsum("ni,ij,nj->n", masks, pairs, masks)
        return AnswerTable(scores=scores)

    made = cases.Case(title="Made up", count=lambda case: 12, load=load)
    monkeypatch.setitem(cases.CASES, "made-up", made)


@pytest.mark.slow
def test_coverage_of_a_case_with_known_truth(monkeypatch, tmp_path):
    """The matched truth is covered about as often as the level says; one row per combination."""
    table_case(monkeypatch)
    found = coverage("made-up", n=(40, 80), seeds=4, out=tmp_path)
    means = summary(found).set_index(["method", "truth", "n"])["coverage"]

    assert len(found) == 12 * 2 * 4 * 3 * 2
    assert 0.88 < means["eblime", "exact", 80] <= 1  # 288 features, a standard error of .013
    assert means["eblime-paper", "paper", 80] > 0.9
    assert summary(found)[["top_1", "top_2_3"]].max(axis=None) <= 1
    assert (summary(found)["top_1"] > 0.2).any()
    assert json.loads(next(tmp_path.glob("*/study.json")).read_text())["dataset"] == "made-up"


def test_expected_coverage_is_centred_at_the_shrunk_slopes(monkeypatch):
    """`shrunk` by hand: the ridge that also shrinks the intercept, all masks with the weight of n.

    The slopes shrunk with few masks are nearer to those without an intercept.
    """
    table_case(monkeypatch)
    rows = coverage("made-up", n=(40,), seeds=1, items=1, methods=("bayeslime",), truths=("paper",))
    table = cases.item("made-up", 0)
    masks, scores, weights = table.whole()
    columns = np.column_stack([np.ones(len(masks)), masks])
    gram = columns.T @ (columns * (weights * 40 / 64)[:, None]) + np.eye(7)
    slopes = np.linalg.solve(gram, columns.T @ (weights * 40 / 64 * scores))[1:]
    rng = study_generator({"seed": 0}, 0, 40, 0)
    ends = eblime.fit(*table.sample(rng, 40), "bayeslime", rng=rng).interval(0.95)
    exact, paper = (truth_of(table, kind) for kind in ("exact", "paper"))

    expected = expected_coverage(ends, paper - slopes, 0.95)
    assert_allclose(rows["shrunk"], expected, atol=1e-9)
    assert np.abs(paper - slopes).mean() < np.abs(paper - exact).mean()


def test_verdict_on_two_settings():
    """No difference is shown only if neither the test nor the interval shows one."""
    none = {"difference": 0.1, "p": 0.2, "low": -0.1, "high": 0.3}
    by_interval = {"difference": 0.5, "p": 0.12, "low": 0.2, "high": 0.8}
    by_test = {"difference": 0.1, "p": 0.01, "low": -0.1, "high": 0.3}

    assert verdict([none, none]) == "no difference shown"
    assert verdict([none, by_interval]) == "the settings disagree"
    assert verdict([by_test, by_interval]) == "more found"


def test_truths_differ_by_the_intercept(monkeypatch):
    """The two truths by lime's ridge agree; the paper's truth, without an intercept, differs."""
    table_case(monkeypatch)
    found = cases.item("made-up", 0)
    exact, lime, paper = (truth_of(found, kind) for kind in cases.TRUTHS)

    assert_allclose(exact, lime, atol=0.02)
    assert np.abs(paper - exact).max() > 0.05


def test_stability_study(monkeypatch):
    """The posterior's sd is about the spread of the means over runs; LIME has no sd."""
    table_case(monkeypatch)
    found = stability("made-up", n=(60,), runs=6, items=6)
    ours = found[found["method"] == "eblime"]
    assert set(found["method"]) == {"lime", "bayeslime", "eblime-paper", "eblime"}
    assert 0.5 < ours["claimed"].mean() / ours["spread"].mean() < 2
    assert found[found["method"] == "lime"]["claimed"].isna().all()


@pytest.mark.slow
def test_figures_of_scans():
    """Their numbers by hand from the rows of superpixels, and lambda on both of its ranges."""
    rows = superpixels("ultrasonic", n=60, items=1)
    numbers = figure_numbers(rows).set_index(["masks", "method"])
    one = rows[(rows["masks"] == "paper") & (rows["method"] == "eblime-paper")]
    base = rows[(rows["masks"] == "paper") & (rows["method"] == "bayeslime")]
    top = one.sort_values("mean", ascending=False).head(5)
    variance = one["sd"] ** 2
    scaled = (variance - variance.min()) / (variance.max() - variance.min())
    found = numbers.loc["paper", "eblime-paper"]

    assert found["sd_ratio"] == pytest.approx(np.median(one["sd"].values / base["sd"].values))
    assert found["scaled_top"] == pytest.approx(scaled[top.index].mean())
    assert found["covered"] == pytest.approx(top["inside"].sum() / one["inside"].sum())
    assert found["shared"] == len({*top["feature"]} & {*base.nlargest(5, "mean")["feature"]})
    assert found["log_mean"] < 0  # the published grid ends at 1
    assert numbers.loc["paper", "eblime-half-line"]["above"] > 0
    assert len(maps_figure(rows, [0]).axes) == 8  # seven panels and the colour bar


def test_outlines_of_dogs_are_inside_the_photo():
    """Corners are pairs of pixels of a photo of 224 by 224."""
    for corners in outlines().values():
        assert np.array(corners).shape[1] == 2
        assert 0 <= np.min(corners) <= np.max(corners) <= 224


def test_all_masks_are_scored_once_and_cached(tmp_path, monkeypatch):
    """Scores are in the order of the mask numbers; another model has its own cache entry."""
    monkeypatch.setenv("EBLIME_CACHE", str(tmp_path))
    image = np.zeros((8, 8))
    image[:4] = 1.0
    labels = np.repeat([0, 1], 4)[:, None].repeat(8, axis=1)
    asked = []

    def ask():
        asked.append(1)
        return ask_all_masks(lambda batch: batch.mean(axis=(1, 2)), image + 1, labels, 0)

    first = cached_answers("x", "y", (image, labels, "mean"), ask)
    again = cached_answers("x", "y", (image, labels, "mean"), ask)
    assert len(asked) == 1
    cached_answers("x", "y", (image, labels, "another model"), ask)
    assert len(asked) == 2

    assert_allclose(first.scores, [0, 1.0, 0.5, 1.5])
    assert_allclose(again.scores, first.scores)


def test_mcnemar_compares_the_images_on_which_methods_differ():
    """Numbers of a small table, worked out by hand: 5 against 1 of 10 images."""
    a = [True] * 8 + [False] * 2
    b = [True] * 3 + [False] * 5 + [True] + [False]
    rows = [
        {
            "dataset": "d",
            "item": k,
            "part": k,
            "method": m,
            "found": hit,
            "found_loosely": hit,
            "score": 1,
        }
        for m, hits in (("a", a), ("b", b))
        for k, hit in enumerate(hits)
    ]
    table = pd.DataFrame(rows)
    test = mcnemar(table, "a", "b")

    assert (test["first"], test["second"]) == (5, 1)
    assert test["p"] == pytest.approx(2 * (1 + 6) / 64)
    assert test["difference"] == pytest.approx(0.4)
    assert test["low"] < 0.4 < test["high"]
    same = mcnemar(table, "a", "a")
    assert (same["p"], same["difference"]) == (1.0, 0.0)
    assert same["low"] < 0 < same["high"]
    shared = table.assign(part=table["item"] // 5)  # ten images of two parts
    assert mcnemar(shared, "a", "b")["of"] == 2
    assert counts(shared)["parts"].tolist() == [2, 2]
    assert counts(table)["found"].tolist() == [8, 4]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("coverage --dataset nothing", "--dataset: invalid choice: 'nothing'"),
        ("coverage --methods magic", "--methods: invalid choice: 'magic'"),
        ("coverage --truths mine", "--truths: invalid choice: 'mine'"),
        ("coverage --n 0", "--n: must be >= 1; got 0"),
        ("faithfulness --methods magic", "--methods: invalid choice: 'magic'"),
        ("localisation --items 0", "--items: must be >= 1; got 0"),
        ("stability --methods magic", "--methods must be one of"),
        ("stability --runs 1", "--runs must be >= 2; got 1"),
        ("stability --tables x", "unrecognized arguments: --tables"),
    ],
)
def test_invalid_options_are_refused(words, message, capsys):
    """Before any data are loaded, with exit code 2; the message names the option."""
    with pytest.raises(SystemExit) as ended:
        main(words.split())

    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_unknown_studies_are_refused():
    """The message lists those that exist."""
    with pytest.raises(SystemExit, match=r"(?s)coverage .*there is no study 'magic'"):
        main(["magic"])


def test_the_overview_lists_every_study_with_its_first_line(capsys):
    """Each module that can be run is listed."""
    main([])
    out = capsys.readouterr().out
    folder = Path(studies.__file__).parent
    runnable = [path for path in folder.rglob("*.py") if "\ndef run(options" in path.read_text()]

    assert len(ALL) == len(runnable)
    assert all(f"  {name:18}" in out for name in ALL)


ALL = [name for names in STUDIES.values() for name in names]


@pytest.mark.parametrize("name", ALL)
def test_every_study_answers_to_help(name, capsys):
    """With its docstring and its options; those whose packages are missing are skipped."""
    try:
        importlib.import_module(module_name(name))
    except ImportError as error:
        pytest.skip(str(error))
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])

    assert ended.value.code == 0
    assert f"python -m studies {name}" in capsys.readouterr().out


def test_methods_without_a_ridge_parameter_locate_defects(monkeypatch):
    """Their rows have no `lambda_mean`; the others have one."""
    images, defects = sample_scans()
    parts = FaultyParts(
        images=images[:1],
        defects=defects[:1],
        numbers=np.arange(1),
        network=lambda number: ultrasonic_network(),
    )
    monkeypatch.setattr("studies.localisation.faulty_parts", lambda dataset: parts)
    methods = ["quadrature", "bayeslime"]
    table = localisation("ultrasonic", n=60, methods=methods, hide=["mean"], design=["paired"])

    assert table["lambda_mean"].isna().tolist() == [True, False]
    assert table["covered"].between(0, 1).all()


@pytest.mark.slow
@real
def test_coverage_on_the_command_line(tmp_path, capsys):
    """Prints our figures and those of the paper; the second run resumes."""
    words = [
        "coverage",
        "--dataset",
        "german",
        "--n",
        "50",
        "100",
        "--seeds",
        "1",
        "--items",
        "2",
        "--jobs",
        "1",
        "--out",
    ]
    for _ in range(2):
        main([*words, str(tmp_path)])
        out = capsys.readouterr().out
        assert "as printed" in out
        assert "N=100" in out
        assert "top 2-3" in out
    assert len(list(tmp_path.iterdir())) == 1


def test_rows_of_the_coverage_study_have_the_kernels_weights():
    """Rows with a rare value are not forced: it is as frequent as in the background."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"rare": rng.random(500) < 0.02, "x": rng.normal(size=500)})
    made = cases.RowItem(
        model=SimpleNamespace(predict_proba=lambda rows: np.zeros((len(rows), 2))),
        table=table,
        row=table.iloc[0],
    )
    masks, _, weights = made.sample(rng, 2000)

    assert_allclose(weights, ExponentialKernel()(masks))
    assert (1 - masks[:, 0]).mean() < 0.04  # forced rows would make it .1


def test_defects_are_looked_for_with_every_hiding_and_design(monkeypatch):
    """One row per hiding, design and method; both hidings have the same masks."""
    images, defects = sample_scans()
    parts = FaultyParts(
        images=images[:1],
        defects=defects[:1],
        numbers=np.arange(1),
        network=lambda number: ultrasonic_network(),
    )
    monkeypatch.setattr("studies.localisation.faulty_parts", lambda dataset: parts)
    table = localisation("ultrasonic", n=40, methods=["lime"])

    assert set(zip(table["hide"], table["design"], strict=True)) == set(SETTINGS.values())


def test_every_number_of_a_measurement_page_is_filled_in():
    """No `@name@` of a template is left on its page."""
    folder = DOCS / "measurements"
    pages = [path.with_suffix("") for path in folder.glob("*.md.in")]

    assert len(pages) == 4
    assert [p.name for p in pages if re.search(r"@[a-z][\w+-]*@", p.read_text("utf8"))] == []


def test_measurement_pages_have_the_numbers_of_their_files():
    """A page is what would be written now."""
    parts, missing = pages.checked_parts()

    assert missing == []
    assert pages.differences(parts) == []


def test_a_changed_number_of_a_page_is_found(tmp_path, monkeypatch):
    """And a number that a file lacks is not written."""
    monkeypatch.setattr(pages, "PAGES", tmp_path)
    (tmp_path / "one.md.in").write_text("# One\n\nIt is @first@ and @second@.\n")
    (tmp_path / "one.md").write_text("# One\n\nIt is 1 and 2.\n")
    monkeypatch.setattr(pages, "README", tmp_path / "README.md")
    (tmp_path / "readme.in").write_text("| [How many?](one.md) | @first@ |\n")
    (tmp_path / "README.md").write_text("# Name\n\n| [How many?](one.md) | 1 |\n")

    assert pages.differences({"first": "1", "second": "2"}) == []
    assert pages.differences({"first": "1"}) == []
    assert len(pages.differences({"first": "3"})) == 2  # the page and the README

    monkeypatch.setattr(pages, "all_parts", lambda: ({"first": "3"}, []))
    with pytest.raises(SystemExit, match=r"one\.md is not written: no numbers for second"):
        pages.run(argparse.Namespace(check=False))
    assert "It is 1" in (tmp_path / "one.md").read_text()


def test_times_of_a_study_replace_its_old_ones(tmp_path, monkeypatch):
    """Those of other studies stay."""
    monkeypatch.setattr(clock, "SPEED", tmp_path / "speed.csv")
    clock.store("speed-text", {"text": {"lime": (0.4, 0.3)}})
    clock.store("speed-fit", {"fit": {"EBLIME()": 0.005}})
    clock.store("speed-text", {"text": {"eblime": (0.1, 0.3)}})
    found = pd.read_csv(tmp_path / "speed.csv")

    assert found["name"].tolist() == ["EBLIME()", "eblime"]
    assert found["seconds"].tolist() == [0.005, 0.1]
    assert found["model_seconds"].tolist()[1] == 0.3
