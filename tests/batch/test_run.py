"""Runs: the same numbers with every execution setting, resuming, and refused changes."""

import os
import re
import shutil
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from many import ROWS, make, part_file

import eblime
from eblime.batch import Workers
from eblime.batch.location import Location, arrow
from eblime.batch.overview import _entries, _listed, overview

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.mark.slow
def test_workers_write_the_same_bytes(tmp_path, undisturbed):
    """The name of a part has the digest of its bytes."""
    run = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=4, workers=2)

    files = [
        sorted(path.name for path in Path(r.folder).glob("part-*")) for r in (run, undisturbed)
    ]
    assert files[0] == files[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"workers": 2}, {"part_size": 1}, {"part_size": 7}, {"progress": lambda *_: 0}]
)
def test_execution_settings_change_no_number(tmp_path, wanted, settings):
    """Workers, shared model calls, the part size and progress do not affect the results."""
    run = eblime.explain_many(make, ROWS, tmp_path / "r", **{"part_size": 4, **settings})

    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


def test_summaries_of_an_input_use_one_thread(tmp_path, monkeypatch):
    """As its fit does: sums over several threads depend on how many there are."""
    from threadpoolctl import threadpool_info, threadpool_limits

    from eblime.batch import folder

    seen, real = set(), folder.least_squares

    def spied(*args, **settings):
        seen.update(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        return real(*args, **settings)

    monkeypatch.setattr(folder, "least_squares", spied)
    with threadpool_limits(2, user_api="blas"):
        eblime.explain_many(make, ROWS[:2], tmp_path / "r")

    assert seen == {1}


@pytest.mark.parametrize(("text", "exact"), [("a b c d", True), ("a b c d e f g h", False)])
def test_all_masks_of_an_input_leave_no_standard_error(tmp_path, text, exact):
    """Its least-squares estimates are then certain, although the model is not linear."""
    score = lambda texts: [("a" in t) * ("b" in t) + 0.1 * len(t) for t in texts]  # noqa: E731
    explainer = eblime.TextExplainer(score, n_masks=60)
    rows = eblime.explain_many(explainer, [text], tmp_path / "r").frame()

    assert rows["estimate"].notna().all()
    assert (rows["se"] == 0).all() if exact else (rows["se"] > 0).all()


def test_an_input_gets_the_numbers_of_explain(wanted):
    """Its generator is `SeedSequence(seed, spawn_key=(i,))`."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(7,)))
    alone = make().explain(ROWS[7], rng=rng)
    rows = wanted[wanted["input"] == 7]

    np.testing.assert_array_equal(rows["mean"], alone.posterior.mean)
    np.testing.assert_array_equal(rows[["low", "high"]], alone.posterior.interval())
    assert rows["feature"].tolist() == list(alone.scene.columns)


def test_provenance_of_an_input_has_the_seed_that_repeats_it(tmp_path):
    """`rng` takes it, so that one input of a run can be explained again alone."""
    found = eblime.explain_many(make, ROWS[:3], tmp_path / "run", rng=5).explanation(2)
    alone = make().explain(ROWS[2], rng=np.random.SeedSequence(5, spawn_key=(2,)))

    assert found.provenance["seed"] == alone.provenance["seed"] == "SeedSequence(5, spawn_key=(2,))"
    np.testing.assert_array_equal(found.posterior.mean, alone.posterior.mean)


def test_rows_have_the_details_of_features(tmp_path, wanted, rng):
    """Value and bin for tables, position for superpixels; no column where a domain has none."""
    alone = make().explain(ROWS[7]).to_frame()
    rows = wanted[wanted["input"] == 7]
    assert rows["value"].tolist() == alone["value"].tolist()
    assert rows["bin"].tolist() == alone["bin"].tolist()
    assert "area" not in rows

    images = rng.random((2, 8, 10))
    explainer = eblime.ImageExplainer(
        lambda batch: batch.mean(axis=(1, 2)), segmentation="grid", hide=0.0, n_masks=100
    )
    run = eblime.explain_many(explainer, images, tmp_path / "r", workers=1).frame()
    frame = explainer.explain(images[1]).to_frame()
    names = ["centroid_row", "centroid_column", "top", "left", "bottom", "right", "area"]
    np.testing.assert_array_equal(run.loc[run["input"] == 1, names], frame[names])
    assert "value" not in run


def test_failed_inputs_do_not_stop_the_run(tmp_path):
    """Each is recorded with its error; more than `max_failures` stop the run."""
    rows = [list(row) for row in ROWS[:10]]
    rows[3] = [1, 2]
    rows[6] = ["a", 0, 0, 0, 0]
    run = eblime.explain_many(make, rows, tmp_path / "r", part_size=4)
    failed = run.failures()

    assert failed["input"].tolist() == [3, 6]
    assert pd.read_parquet(part_file(tmp_path / "r", 1))["input"].unique().tolist() == [4, 5, 6, 7]
    assert "must have a value for each" in failed["error"][0]
    assert run.frame()["input"].nunique() == 8
    with pytest.raises(RuntimeError, match="more than the 1 allowed"):
        eblime.explain_many(make, rows, tmp_path / "s", part_size=4, max_failures=1)


def test_other_settings_or_inputs_are_refused(tmp_path):
    """The message shows the difference."""
    eblime.explain_many(make, ROWS[:8], tmp_path / "r", part_size=4)
    with pytest.raises(ValueError, match="created with seed=0; this call has seed=1"):
        eblime.explain_many(make, ROWS[:8], tmp_path / "r", part_size=4, rng=1)
    with pytest.raises(ValueError, match="created with inputs="):
        eblime.explain_many(make, ROWS[1:9], tmp_path / "r", part_size=4)


def test_open_run_reads_a_run(tmp_path):
    """Lazy rows, kept explanations, a summary and a page."""
    eblime.explain_many(make, ROWS[:9], tmp_path / "r", part_size=4, keep=True)
    run = eblime.open_run(tmp_path / "r")
    table = run.summary()
    page = overview(run, tmp_path / "r" / "report.html")

    assert run.scan().count_rows() == 45
    np.testing.assert_array_equal(
        run.explanation(2).posterior.mean, run.frame().query("input == 2")["mean"]
    )
    assert set(table["feature"][:2]) == {"column 0", "column 1"}
    assert (table["low"] <= table["mean_abs"]).all()
    assert (table["mean_abs"] <= table["high"]).all()
    assert "column 0" in page
    with pytest.raises(FileNotFoundError, match="has no manifest"):
        eblime.open_run(tmp_path)
    with pytest.raises(FileNotFoundError, match="its inputs are 0 to 8"):
        run.explanation(99)


def test_changes_that_affect_numbers_are_refused(tmp_path):
    """Another explainer, changed inputs, a second driver at the same time."""
    rows = ROWS[:8].copy()
    eblime.explain_many(make(), rows, tmp_path / "r", part_size=4)
    other = replace(make(), n_masks=61)
    with pytest.raises(ValueError, match="created with n_masks='60'; this call has n_masks='61'"):
        eblime.explain_many(other, rows, tmp_path / "r", part_size=4)
    rows[4] += 1
    with pytest.raises(ValueError, match="created with inputs="):
        eblime.explain_many(make(), rows, tmp_path / "r", part_size=4)
    with (
        Location.of(tmp_path / "r").lock(),
        pytest.raises(RuntimeError, match="another process"),
    ):
        eblime.explain_many(make(), ROWS[:8], tmp_path / "r", part_size=4)


def test_explainers_that_cannot_be_pickled_are_refused(tmp_path):
    """The message says what to pass instead."""
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0], ROWS)
    with pytest.raises(TypeError, match="a function of a module"):
        eblime.explain_many(explainer, ROWS, tmp_path / "r", workers=2)


def test_max_failures_counts_earlier_calls(tmp_path):
    """Resuming does not reset the count."""
    rows = [[1.0, 2.0]] * 12
    for _ in range(3):
        with pytest.raises(RuntimeError, match="more than the 3 allowed"):
            eblime.explain_many(make, rows, tmp_path / "r", part_size=2, max_failures=3)
    with pytest.warns(UserWarning, match="of 12 inputs"):
        run = eblime.open_run(tmp_path / "r")
    assert len(run.failures()) <= 8


def test_targets_of_one_input_count_once(tmp_path):
    """Two mirrored outputs carry no more information than one."""
    explainer = eblime.TabularExplainer(
        lambda rows: np.stack([rows[:, 0], 1 - rows[:, 0]], axis=1), ROWS, n_masks=50
    )
    one = eblime.explain_many(explainer, ROWS[:6], tmp_path / "a", targets=[0]).summary()
    two = eblime.explain_many(explainer, ROWS[:6], tmp_path / "b", targets=2).summary()

    assert two["inputs"].tolist() == [6] * 5
    used = [table.set_index("feature").loc["column 0"] for table in (one, two)]
    # the ends are quantiles of 400 draws, with errors of a tenth of the width
    atol = 0.25 * (used[0]["high"] - used[0]["low"])
    np.testing.assert_allclose(used[0]["low"], used[1]["low"], atol=atol)
    np.testing.assert_allclose(used[0]["high"], used[1]["high"], atol=atol)


def test_the_command_line_resumes_a_run(tmp_path, monkeypatch, capsys):
    """The manifest holds all settings; options that would change them do not exist."""
    from eblime.cli.app import main

    code = "def score(texts):\n    return ['good' in t for t in texts]\n"
    (tmp_path / "mood.py").write_text(code)
    (tmp_path / "lines.jsonl").write_text('"a good day"\n"another day"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for line, code in (
        ("batch text lines.jsonl --model mood:score --out run", 0),
        ("batch --resume run --model mood:score --inputs lines.jsonl", 0),
        ("report run", 0),
        ("batch --resume run --masks 9", 2),
        ("batch text", 2),
    ):
        with pytest.raises(SystemExit) as ended:
            main(line.split())
        assert ended.value.code == code, line
    said = capsys.readouterr()
    assert said.out.count("2 of 2 inputs are done already.") == 1
    assert "No such option" in said.err
    assert (tmp_path / "run" / "report.html").exists()


def test_a_pipeline_changes_no_number(tmp_path, monkeypatch, rng):
    """Segmenting and fitting in other threads gives the same numbers and failures."""
    from eblime.batch import worker

    images = [rng.random((16, 16)) for _ in range(9)]
    images[4] = np.full((16, 16), np.nan)
    explainer = eblime.ImageExplainer(
        lambda batch: batch[:, :4, :4].mean(axis=(1, 2)),
        segmentation=("grid", {"rows": 3, "columns": 3}),
        n_masks=100,
    )
    plain = eblime.explain_many(explainer, images, tmp_path / "a")
    monkeypatch.setattr(worker, "on_gpu", lambda explainer: True)
    piped = eblime.explain_many(explainer, images, tmp_path / "b")

    pd.testing.assert_frame_equal(piped.frame(), plain.frame(), check_exact=True)
    assert piped.failures()["input"].tolist() == plain.failures()["input"].tolist() == [4]


def test_batch_sizes_of_a_run_do_not_depend_on_time(tmp_path, monkeypatch, rng):
    """The last digits of a network can depend on the batch size, so it is not tuned."""
    sizes = []

    def score(batch):
        sizes.append(len(batch))
        return batch.mean(axis=(1, 2)) * (1 + 1e-9 * len(batch))

    grid = ("grid", {"rows": 4, "columns": 4})
    explainer = eblime.ImageExplainer(score, segmentation=grid, n_masks=300)
    first = eblime.explain_many(explainer, rng.random((3, 8, 8)), tmp_path / "a")

    assert max(sizes) == 32
    assert sum(size != 32 for size in sizes) <= 3  # the last batch of each input
    assert first.frame()["input"].nunique() == 3


def test_workers_auto_depends_on_cores_memory_and_parts(monkeypatch):
    """One for a GPU or for a single part."""
    from eblime.batch import workers

    monkeypatch.setattr(workers, "available_cores", lambda: 16)
    monkeypatch.setattr(workers, "free_memory", lambda: 5 << 30)
    job = SimpleNamespace(explainer=make)
    assert workers._worker_count(job, 100) == 5
    assert workers._worker_count(job, 3) == 3
    monkeypatch.setattr(workers, "on_gpu", lambda explainer: True)
    assert workers._worker_count(job, 100) == 1


@pytest.mark.slow
def test_workers_auto_changes_no_number(tmp_path, wanted):
    """Whatever the number of cores."""
    run = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=12, workers="auto")

    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)


def test_invalid_settings_are_refused(tmp_path):
    """Each has its own message."""
    for settings, message in (
        ({"workers": Workers(engine="slurm")}, "`engine` must be"),
        ({"rng": -1}, "`rng` must be"),
        ({"workers": 0}, "`workers` must be"),
        ({"part_size": 0}, "`part_size` must be"),
        ({"prob": 1.5}, "`prob` must be"),
        ({"workers": Workers(gpus=1)}, "are for `engine` 'ray'"),
        ({"workers": Workers(timeout=0)}, "`timeout` must be"),
        ({"max_failures": -1}, "`max_failures` must be"),
    ):
        with pytest.raises(ValueError, match=message):
            eblime.explain_many(make, ROWS, tmp_path / "r", **settings)
    with pytest.raises(TypeError, match="`progress` must"):
        eblime.explain_many(make, ROWS, tmp_path / "r", progress=5)
    assert not (tmp_path / "r").exists()
    for wrong in (1.5, None):
        with pytest.raises(TypeError, match="`target` must"):
            eblime.explain_many(make, ROWS, tmp_path / "t", targets=[wrong])
    with pytest.raises(TypeError, match="`inputs` must be"):
        eblime.explain_many(make, 3, tmp_path / "r")
    with pytest.raises(TypeError, match="`explainer` must be"):
        eblime.explain_many(3, ROWS, tmp_path / "r")


def test_what_a_function_says_about_itself_is_stored(tmp_path):
    """In the manifest; what JSON cannot hold is refused."""

    class Maker:
        def __init__(self, about):
            self.about = about

        def __call__(self):
            return make()

    run = eblime.explain_many(Maker({"model": "first"}), ROWS[:2], tmp_path / "r")
    assert run.settings["about"] == {"model": "first"}
    for about in ({"when": object()}, {"share": float("nan")}):
        with pytest.raises(TypeError, match="`about` and `targets` must"):
            eblime.explain_many(Maker(about), ROWS[:2], tmp_path / "s")


def test_a_summary_is_read_part_by_part(tmp_path, undisturbed):
    """The same from many parts as from one."""
    one = eblime.explain_many(make, ROWS, tmp_path / "r", part_size=len(ROWS)).summary()
    many = undisturbed.summary()

    pd.testing.assert_frame_equal(one, many, rtol=1e-12)
    assert one["inputs"].tolist() == [24] * 5


def test_runs_store_the_held_out_r2(tmp_path):
    """The value of the explanation; the page is about it."""
    run = eblime.explain_many(make(), ROWS[:4], tmp_path / "r")
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(2,)))
    alone = make().explain(ROWS[2], rng=rng)
    rows = run.frame()

    assert set(rows[rows["input"] == 2]["r2_held_out"]) == {alone.posterior.r2_held_out}
    assert "median of the held-out R²" in overview(run)


def test_constant_scores_are_named_on_the_page_of_a_run(tmp_path):
    """They have no R^2, and do not count in its median."""
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0] * 0 + 1.0, ROWS, n_masks=60)
    page = overview(eblime.explain_many(explainer, ROWS[:2], tmp_path / "r"))

    assert "constant scores" in page
    assert "median" not in page.partition("<script>")[0]


def test_the_page_of_a_run_links_to_explanations(tmp_path, rng):
    """Photos have thumbnails and pages without any option, and a small run lists them once."""
    explainer = eblime.ImageExplainer(
        lambda batch: np.stack([batch[:, :6].mean((1, 2, 3)), batch[:, 6:].mean((1, 2, 3))], 1),
        segmentation=("grid", {"rows": 2, "columns": 2}),
        labels=["<b>top</b>", "bottom"],
    )
    images = rng.random((5, 12, 12, 3))
    run = eblime.explain_many(explainer, images, tmp_path / "r")
    page = overview(run, tmp_path / "r" / "report.html")

    assert page == (tmp_path / "r" / "report.html").read_text()
    for target in run.frame().drop_duplicates("input")["target"]:
        assert any(f"-{target}.html" in path.name for path in (tmp_path / "r/pages").iterdir())
    assert page.count("<img") == 5
    assert "By class" in page
    assert "<b>top" not in page
    for link in re.findall('href="([^"]*)"', page):
        assert (tmp_path / "r" / link).is_file()
    assert not re.search('(?:src|href)="(?:https?:)?//', page)
    assert "<img" not in overview(run)


def test_the_page_of_a_run_says_which_explanations_mean_little(tmp_path, rng):
    """With or without a page of their own: random scores, and scores that barely move."""
    noise = np.random.default_rng(1)
    cut, images = ("grid", {"rows": 3, "columns": 3}), rng.random((3, 12, 12))
    models = {
        "do not rely": lambda batch: noise.random(len(batch)),
        "barely move": lambda batch: 0.99 + 1e-3 * batch[:, :6].mean(axis=(1, 2)),
        "": lambda batch: batch[:, :6].mean(axis=(1, 2)),
    }
    for words, model in models.items():
        explainer = eblime.ImageExplainer(model, segmentation=cut, hide=0, n_masks=60)
        run = eblime.explain_many(explainer, images, tmp_path / f"r{words}")
        found = overview(run, tmp_path / f"r{words}" / "report.html")

        assert found.count("<small>") == (3 if words else 0)
        assert words in found
    run = eblime.open_run(tmp_path / "rdo not rely")
    assert "poor fit</small>" in overview(run)


def test_explanations_of_the_first_inputs_are_saved(tmp_path, monkeypatch):
    """All with keep=True, none with keep=False; a page of rows beyond the list has no links."""
    monkeypatch.setattr("eblime.batch.worker._KEPT", 2)
    explainer = eblime.TabularExplainer(lambda r: r[:, 0], ROWS, n_masks=30, method="lime")
    for keep, count in ((None, 2), (True, 4), (False, 0)):
        out = tmp_path / str(keep)
        run = eblime.explain_many(explainer, ROWS[:4], out, keep=keep)
        assert len(list(out.glob("explanations/*"))) == count
        page = overview(run, out / "report.html")
        assert page.count("<a href") == count
        assert ("Only some have pages" in page) == (count == 2)
    monkeypatch.setattr("eblime.batch.overview._LISTED", 2)

    page = overview(eblime.open_run(tmp_path / "True"), out / "report.html")
    assert "2 of 4 explanations: the 1 worst fits, and the first ones" in page
    assert page.count("<tr data-input") == 2
    assert "<a href" not in page
    assert "<a href" in overview(eblime.open_run(tmp_path / "True"), out / "report.html", pages=1)


def test_more_explanations_of_inputs_to_look_at_are_saved(tmp_path, monkeypatch):
    """Of texts, not of rows, while they are small."""
    monkeypatch.setattr("eblime.batch.worker._KEPT", 1)
    monkeypatch.setattr("eblime.batch.worker._KEPT_VIEWS", 3)
    explainer = eblime.TextExplainer(lambda texts: [len(t) for t in texts], n_masks=8)
    texts = ["one two", "three four", "five six", "seven eight"]
    for most, count in ((1 << 30, 3), (100, 1)):
        monkeypatch.setattr("eblime.batch.worker._KEPT_BYTES", most)
        eblime.explain_many(explainer, texts, tmp_path / str(most))
        assert len(list(tmp_path.glob(f"{most}/explanations/*"))) == count


def test_the_list_of_a_run_has_the_most_important_features(tmp_path):
    """The same as those of the explanations, with the values of columns."""
    run = eblime.explain_many(make, ROWS[:5], tmp_path / "r", targets=2, part_size=2)
    found = {(e.input, e.target): e for e in _listed(run, _entries(run)).itertuples()}
    page = overview(run)

    assert list(found) == sorted(found, key=lambda key: found[key].r2)
    for (number, target), entry in found.items():
        explanation = run.explanation(number, target)
        table = explanation.to_frame().sort_values("mean", key=abs, ascending=False)[:3]
        pairs = zip(table["column"], table["value"], strict=True)
        names = [f"{column} = {float(value):.4g}" for column, value in pairs]
        shown = zip(names, table["mean"], strict=True)
        assert all(
            re.search(f"<bdi>{name}</bdi>: <span[^>]*>{m:+.2g}<".replace("+", "[+]"), page)
            for name, m in shown
        )
        np.testing.assert_allclose([row.mean for row in entry.top], table["mean"])
        assert entry.r2 == explanation.posterior.r2_held_out


@pytest.mark.parametrize(("size", "most"), [(None, 200), (4, 4 * len(ROWS))])
def test_shared_calls_have_a_maximum_size(tmp_path, size, most, monkeypatch):
    """No call is larger than the user allows, in masks, or than fits into memory."""
    sizes = []

    def score(rows):
        sizes.append(len(rows))
        return rows[:, 0]

    monkeypatch.setattr("eblime.domains.tabular.row._MAX_ROWS_PER_CALL", 200)
    calls = eblime.Calls(batch_size=size)
    explainer = eblime.TabularExplainer(score, ROWS, n_masks=300, calls=calls)
    run = eblime.explain_many(explainer, ROWS[:10], tmp_path / "r")

    assert run.failures().empty
    assert max(sizes) <= most


def test_a_finished_run_refuses_another_model(tmp_path):
    """Its results belong to the model that it was created with."""
    first = eblime.TabularExplainer(lambda rows: rows[:, 0], ROWS, n_masks=50)
    calls = []

    def other(rows):
        calls.append(len(rows))
        return rows[:, 1]

    out = tmp_path / "run_of_first"
    wanted = eblime.explain_many(first, ROWS[:8], out, part_size=4).frame()
    with pytest.raises(ValueError, match=r"another model, .*: its stored prediction for"):
        eblime.explain_many(eblime.TabularExplainer(other, ROWS, n_masks=50), ROWS[:8], out)
    assert max(calls) < 50  # a few predictions, no explanation
    again = eblime.explain_many(first, ROWS[:8], out).frame()
    pd.testing.assert_frame_equal(again, wanted, check_exact=True)


def test_a_finished_run_refuses_a_model_that_fails_or_has_fewer_outputs(tmp_path):
    """Neither can be confirmed to be the model of the run."""

    def two(rows):
        return rows[:, :2]

    def fails(rows):
        raise OSError("the server is down")

    def explainer(model):
        return eblime.TabularExplainer(model, ROWS, n_masks=50)

    given = ROWS[:4], tmp_path / "r"
    eblime.explain_many(explainer(two), *given, targets=[1])
    with pytest.raises(RuntimeError, match="failed on all inputs of"):
        eblime.explain_many(explainer(fails), *given, targets=[1])
    with pytest.raises(ValueError, match="the model now returns no such output"):
        eblime.explain_many(explainer(lambda rows: rows[:, 0]), *given, targets=[1])


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("made", [True, False])
def test_other_labels_are_refused(tmp_path, finished, made):
    """Some rows would have other labels."""

    def explainer(labels):
        found = eblime.TabularExplainer(lambda r: r[:, :2], ROWS, n_masks=50, labels=labels)
        return (lambda: found) if made else found

    given = ROWS[:8], tmp_path / "r"
    eblime.explain_many(explainer(["no", "yes"]), *given, part_size=4)
    if not finished:
        part_file(tmp_path / "r", 1).unlink()
    with pytest.raises(ValueError, match="created with labels="):
        eblime.explain_many(explainer(["ham", "spam"]), *given, part_size=4)
    run = eblime.explain_many(explainer(["no", "yes"]), *given, part_size=4)
    assert run.frame()["input"].nunique() == 8


def test_the_lock_follows_no_link_and_empties_no_file(tmp_path):
    """A link in a run folder cannot change a file of the user."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "soft").mkdir()
    (tmp_path / "soft" / ".lock").symlink_to(victim)
    (tmp_path / "hard").mkdir()
    (tmp_path / "hard" / ".lock").hardlink_to(victim)
    with pytest.raises(PermissionError, match="must not be a symbolic link"):
        eblime.explain_many(make, ROWS[:4], tmp_path / "soft")
    eblime.explain_many(make, ROWS[:4], tmp_path / "hard")

    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["explanations", "inputs", "pages", "manifest.json"])
def test_a_run_folder_with_links_is_refused(tmp_path, name):
    """They may lead out of it, where files would be read, written and deleted."""
    run = tmp_path / "run"
    eblime.explain_many(make, ROWS[:4], run)
    victim = tmp_path / "victim"
    if name == "manifest.json":
        (run / name).rename(victim)
    else:
        shutil.rmtree(run / name, ignore_errors=True)
        victim.mkdir()
        (victim / ".a.eblime.b.tmp").write_text("mine")
    (run / name).symlink_to(victim)

    for read in (eblime.open_run, lambda run: eblime.explain_many(make, iter(ROWS[:4]), run)):
        with pytest.raises(PermissionError, match=f"{name} must not be a symbolic link"):
            read(run)
    if name != "manifest.json":
        assert [path.name for path in victim.iterdir()] == [".a.eblime.b.tmp"]


def test_an_explanation_that_is_a_link_is_not_read(tmp_path):
    """It may lead to any file."""
    run = eblime.explain_many(make, ROWS[:4], tmp_path / "run")
    (file,) = (tmp_path / "run" / "explanations").glob("2-*")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PermissionError, match="must not be a symbolic link"):
        run.explanation(2)


@pytest.mark.slow
def test_a_model_call_that_hangs_is_recorded_as_failed(tmp_path):
    """With the explainer's own timeout, in the calling process; the other inputs are explained."""
    stuck = threading.Event()

    def model(texts):
        if any("stuck" in text for text in texts):
            stuck.wait(60)
        return [len(text) for text in texts]

    patient = eblime.Retry(times=3, wait=0)  # a call may be late because the machine is busy
    explainer = eblime.TextExplainer(
        model, n_masks=20, calls=eblime.Calls(timeout=1, retry=patient)
    )
    texts = ["one two", "stuck stuck three", "four five six"]
    run = eblime.explain_many(explainer, texts, tmp_path / "run", part_size=1)
    stuck.set()

    assert run.failures()["input"].tolist() == [1]
    assert "no answer within the timeout of 1 s" in run.failures()["error"].iloc[0]
    assert sorted(run.frame()["input"].unique()) == [0, 2]


@pytest.mark.parametrize("targets", [[-1], ["good"], [1, 1]])
def test_targets_that_no_model_can_have_are_refused(tmp_path, targets):
    """Once, instead of a failure of every input; the model is not called."""
    calls = []
    explainer = eblime.TabularExplainer(lambda rows: calls.append(1) or rows, ROWS, n_masks=30)

    with pytest.raises(ValueError, match=r"`targets?`"):
        eblime.explain_many(explainer, ROWS[:3], tmp_path / "r", targets=targets)
    assert not calls


def test_complex_scores_fail_also_in_shared_calls(tmp_path):
    """Their real part is no answer, also where a warning does not raise."""
    explainer = eblime.TabularExplainer(lambda rows: rows[:, 0] + 1j, ROWS, n_masks=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = eblime.explain_many(explainer, ROWS[:3], tmp_path / "r")

    assert len(run.failures()) == 3
    assert run.failures()["error"].str.contains("must return scores").all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_keep_the_lock(tmp_path):
    """Such as a pool of the model's own, which lives on after the run."""
    children = []

    def model(rows):
        if not children:
            reading, writing = os.pipe()
            children.append((os.fork(), writing))
            if children[0][0] == 0:
                os.close(writing)
                os.read(reading, 1)  # until the test is over
                os._exit(0)
            os.close(reading)
        return rows[:, 0]

    explainer = eblime.TabularExplainer(model, ROWS, n_masks=50, method="bayeslime")
    try:
        for _ in range(2):
            run = eblime.explain_many(explainer, ROWS[:2], tmp_path / "r")
    finally:
        child, writing = children[0]
        os.close(writing)
        os.waitpid(child, 0)

    assert run.frame()["input"].nunique() == 2


def test_half_characters_are_stored_as_escapes(tmp_path):
    """A name with a lone surrogate, which no file can hold, does not stop the run."""
    settings = {"n_masks": 50, "method": "bayeslime"}
    names = ["\ud800", *"bcde"]
    explainer = eblime.TabularExplainer(
        lambda rows: rows[:, 0], ROWS, names=names, labels=["x\udfff"], **settings
    )
    frame = eblime.explain_many(explainer, ROWS[:2], tmp_path / "r").frame()

    assert "\\ud800" in set(frame["feature"])
    assert set(frame["label"]) == {"x\\udfff"}


def test_without_pyarrow_the_message_names_the_extra(tmp_path, monkeypatch):
    """Before anything is written or asked."""
    arrow.cache_clear()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'eblime\[batch\]'"):
        eblime.explain_many(make, ROWS, tmp_path / "r")

    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("look", [Location.kind, Location.files])
def test_an_address_without_pyarrow(monkeypatch, look):
    """A store cannot be looked at either."""
    arrow.cache_clear()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'eblime\[batch\]'"):
        look(Location.of("memory://without-pyarrow"))
