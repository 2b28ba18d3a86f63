"""Runs work for every explainer: domains of other packages, and designs that ask in rounds."""

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from together import explain_alone, explain_together

import eblime
from eblime import registry
from eblime.batch import worker
from eblime.batch.overview import overview
from eblime.batch.worker import on_gpu
from eblime.domains.record import Domain
from eblime.engine import cache as engine_cache
from eblime.engine.drive import group_size

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def generator_of(seed, number):
    """The generator of an input of a run."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


@dataclass(frozen=True, kw_only=True)
class Series:
    """A series cut into pieces; a hidden piece has the value `fill`."""

    values: np.ndarray
    pieces: int
    fill: float
    domain = "series"

    @property
    def n_features(self):
        """Number of pieces."""
        return self.pieces

    @property
    def features(self):
        """A name for each piece."""
        return [f"piece {k}" for k in range(self.pieces)]

    @property
    def sizes(self) -> Sequence[int]:
        """Batch sizes."""
        return (64, 256)

    def inputs(self, masks):
        """One series per mask."""
        shown = np.repeat(masks, len(self.values) // self.pieces, axis=1) == 1
        return np.where(shown, self.values, self.fill)

    def details(self):
        """Columns that runs know with other types, and one that they do not know."""
        numbers = [float(k) for k in range(self.pieces)]
        return {"value": numbers, "top": [*range(self.pieces)], "speed": numbers}


def read_series(values, *, pieces=4, fill=0.0):
    """Read a series."""
    found = np.asarray(values, dtype=float)
    if found.ndim != 1 or len(found) % pieces:
        raise ValueError("`values` must be a series of whole pieces.")
    return Series(values=found, pieces=pieces, fill=fill)


SERIES = Domain(name="series", feature="piece", scene=Series, read=read_series)


@dataclass(frozen=True)
class Rounds:
    """Asks 12 masks per round; an input whose scores vary more gets more rounds."""

    n_masks: int = 48

    def next(self, rng, answers):
        """Two rounds at least, four at most; the second one repeats the input itself."""
        rounds = answers.n_masks // 12
        if rounds >= 2 and rounds >= 2 + (np.ptp(answers.scores) > 0.4) + (
            np.ptp(answers.scores) > 1.0
        ):
            return None
        if rounds == 1:
            return np.ones((12, answers.n_features))
        return (rng.random((12, answers.n_features)) < 0.5).astype(float)


class Counting:
    """A model that counts its calls, and the inputs that it was asked about."""

    def __init__(self):
        self.calls = []

    def __call__(self, batch):
        """The first value times the last, and the mean."""
        self.calls.append(len(batch))
        rows = np.asarray(batch)
        return np.stack([rows[:, 0] * rows[:, -1], rows.mean(axis=1)], axis=1)


def series_explainer(model, **settings):
    """An explainer of a domain that eblime does not know."""
    return eblime.Explainer(model, kind=SERIES, **{"n_masks": 48, **settings})


def make_series():
    """An explainer of series, for other processes."""
    return series_explainer(Counting(), settings={"pieces": 4}, design=Rounds())


INPUTS = [np.linspace(0.2, scale, 8) for scale in np.linspace(0.5, 4.0, 9)]


def same(first, second):
    """Whether two sets of explanations hold the same numbers."""
    assert list(first) == list(second)
    for column, explanation in first.items():
        np.testing.assert_array_equal(explanation.masks, second[column].masks)
        np.testing.assert_array_equal(explanation.scores, second[column].scores)
        np.testing.assert_array_equal(explanation.posterior.mean, second[column].posterior.mean)
        np.testing.assert_array_equal(explanation.posterior.sd, second[column].posterior.sd)
        assert explanation.prediction == second[column].prediction


def test_rounds_that_share_calls_equal_rounds_alone():
    """Inputs with two, three or four rounds in the same calls get the numbers of each alone."""
    model = Counting()
    explainer = series_explainer(model, design=Rounds())
    loop, subjects = explainer.loop, [explainer.subject(values) for values in INPUTS]
    alone = [explain_alone(loop, s, 2, generator_of(0, k)) for k, s in enumerate(subjects)]
    asked, alone_calls = sum(model.calls), len(model.calls)
    model.calls.clear()
    shared = explain_together(loop, subjects, 2, [generator_of(0, k) for k in range(len(subjects))])

    for one, other in zip(alone, shared, strict=True):
        same(one, other)
    rounds = Counter(len(found[0].masks) // 12 for found in alone if 0 in found)
    assert len(rounds) > 1  # inputs leave the group at different times
    assert sum(model.calls) == asked
    assert len(model.calls) < alone_calls / 2
    assert min(model.calls) > 0  # no empty call for a round whose answers are known


def test_shared_rounds_are_split_where_a_call_is_full(monkeypatch):
    """Small calls give the same numbers, and no call is larger than allowed."""
    model = Counting()
    explainer = series_explainer(model, design=Rounds())
    subjects = [explainer.subject(values) for values in INPUTS]
    rngs = [[generator_of(3, k) for k in range(len(subjects))] for _ in range(2)]
    wanted = explain_together(explainer.loop, subjects, [0], rngs[0])
    model.calls.clear()
    small = replace(explainer.loop, calls=eblime.Calls(batch_size=30))
    found = explain_together(small, subjects, [0], rngs[1])

    for one, other in zip(wanted, found, strict=True):
        same(one, other)
    assert max(model.calls) <= 30


def test_inputs_whose_batches_cannot_be_joined_are_asked_alone():
    """Series of different lengths: no call fails, and none is repeated."""
    model = Counting()
    explainer = series_explainer(model, n_masks=16)
    subjects = [explainer.subject(np.linspace(0, 1, length)) for length in (4, 8, 12)]
    rngs = [generator_of(0, k) for k in range(3)]
    shared = explain_together(explainer.loop, subjects, [0], rngs)
    assert model.calls == [16, 16, 16]

    for k, subject in enumerate(subjects):
        same(explain_alone(explainer.loop, subject, [0], generator_of(0, k)), shared[k])


@pytest.mark.parametrize(
    "settings",
    [{"part_size": 1}, pytest.param({"workers": 2}, marks=pytest.mark.slow), {"part_size": 2}],
)
def test_a_run_of_rounds_does_not_depend_on_how_it_is_done(tmp_path, settings):
    """Shared calls, workers and parts change no number."""
    wanted = eblime.explain_many(make_series, INPUTS, tmp_path / "a", targets=2).frame()
    run = eblime.explain_many(make_series, INPUTS, tmp_path / "b", targets=2, **settings)

    pd.testing.assert_frame_equal(run.frame(), wanted, check_exact=True)
    assert wanted["n_masks"].nunique() > 1


def test_a_pipeline_asks_all_rounds_from_one_thread(tmp_path, monkeypatch):
    """A model on a GPU is never called by two threads; the numbers are those of a plain run."""
    import threading

    threads = set()

    def model(batch):
        threads.add(threading.get_ident())
        return Counting()(batch)

    explainer = series_explainer(model, design=Rounds())
    inputs = [*INPUTS[:4], np.ones(7), *INPUTS[4:]]
    plain = eblime.explain_many(explainer, inputs, tmp_path / "a", part_size=1)
    monkeypatch.setattr(worker, "on_gpu", lambda explainer: True)
    piped = eblime.explain_many(explainer, inputs, tmp_path / "b", part_size=1)

    pd.testing.assert_frame_equal(piped.frame(), plain.frame(), check_exact=True)
    assert piped.failures()["input"].tolist() == plain.failures()["input"].tolist() == [4]
    assert threads == {threading.get_ident()}


def test_a_pipeline_ends_after_too_many_failures(tmp_path, monkeypatch):
    """The threads end, and finished parts are kept."""
    monkeypatch.setattr(worker, "on_gpu", lambda explainer: True)
    with pytest.raises(RuntimeError, match="more than the 0 allowed"):
        eblime.explain_many(
            series_explainer(Counting()),
            [np.ones(7), *INPUTS],
            tmp_path / "run",
            part_size=1,
            max_failures=0,
        )

    with pytest.warns(UserWarning, match="parts are missing"):
        run = eblime.open_run(tmp_path / "run")
    assert run.failures()["input"].tolist() == [0]


def test_a_domain_of_another_package_runs(tmp_path, monkeypatch):
    """Rows, failures, kept explanations, the summary and the page work for an unknown domain."""
    explainer = series_explainer(Counting())
    inputs = [*INPUTS, np.ones(3)]
    with pytest.raises(TypeError, match="`keep=True` needs a registered domain; got 'series'"):
        eblime.explain_many(explainer, inputs, tmp_path / "r", keep=True)
    assert explainer.model.calls == []
    monkeypatch.setitem(registry._ADDED["domains"], "series", SERIES)
    run = eblime.explain_many(explainer, inputs, tmp_path / "r", keep=True)
    rows = run.frame().query("input == 2")
    alone = explainer.explain(INPUTS[2], rng=generator_of(0, 2))

    np.testing.assert_array_equal(rows["mean"], alone.posterior.mean)
    assert rows["feature"].tolist() == ["piece 0", "piece 1", "piece 2", "piece 3"]
    assert rows["value"].tolist() == ["0.0", "1.0", "2.0", "3.0"]
    assert rows["top"].tolist() == [0, 1, 2, 3]
    kept = run.explanation(2)
    np.testing.assert_array_equal(kept.posterior.mean, rows["mean"])
    np.testing.assert_array_equal(kept.scene.values, INPUTS[2])
    assert run.failures()["input"].tolist() == [9]
    assert "whole pieces" in run.failures()["error"][0]
    assert set(run.summary()["feature"]) == set(rows["feature"])
    assert "Importance over all inputs" in overview(run)


def test_an_explainer_of_an_own_domain_can_be_sent_to_workers():
    """Its record has no function without a name."""
    explainer = pickle.loads(pickle.dumps(series_explainer(Counting())))

    assert explainer.kind.name == "series"


def test_other_settings_of_a_domain_are_refused(tmp_path):
    """Also where they differ only inside an array."""
    first, other = np.zeros(2000), np.zeros(2000)
    other[1000] = 1.0
    domain = replace(SERIES, read=lambda x, *, usual: read_series(x, fill=usual[1000]))

    def explainer(usual, kind=domain):
        return eblime.Explainer(Counting(), kind=kind, n_masks=16, settings={"usual": usual})

    given = INPUTS[:4], tmp_path / "r"
    eblime.explain_many(explainer(first), *given)
    eblime.explain_many(explainer(first.copy()), *given)
    with pytest.raises(ValueError, match="created with settings="):
        eblime.explain_many(explainer(other), *given)
    with pytest.raises(ValueError, match=r"created with kind=.Domain\(name='series'"):
        eblime.explain_many(explainer(first, replace(domain, name="sound")), *given)


@pytest.mark.parametrize(
    ("inputs", "size"),
    [
        (pd.DataFrame({"a": [1.0, 2.0]}), 64),
        (["a text", "another"], 64),
        ([[1.0, 2.0]], 64),
        (np.zeros((2, 5)), 64),
        (np.zeros((2, 4, 4)), 8),
        (np.zeros((10_000, 2)), 100),
    ],
    ids=["frame", "texts", "lists", "rows", "images", "many rows"],
)
def test_parts_of_large_inputs_are_smaller(tmp_path, inputs, size):
    """Eight images in a part, and 64 rows or texts or more, in every container."""

    def fails(x):
        raise ValueError("not explained")

    explainer = eblime.Explainer(Counting(), kind=replace(SERIES, read=fails))
    run = eblime.explain_many(explainer, inputs, tmp_path / "r")

    assert run.settings["part_size"] == size


def test_a_large_question_alone_is_split(monkeypatch):
    """One input with more perturbed inputs than memory has room for is asked in several calls."""
    model = Counting()
    explainer = series_explainer(model, settings={"pieces": 8}, n_masks=200)
    assert group_size(explainer.loop) > 1
    monkeypatch.setattr(Series, "sizes", (16,))
    subjects = [explainer.subject(values) for values in INPUTS[:2]]
    found = explain_together(explainer.loop, subjects, [0], [generator_of(0, k) for k in range(2)])

    assert max(model.calls) <= 16
    same(explain_alone(explainer.loop, subjects[1], [0], generator_of(0, 1)), found[1])


def test_a_torch_model_knows_whether_it_is_on_a_gpu():
    """By its device setting, or else by its parameters; other models are not on a GPU."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from eblime.models.torch import TorchModel

    def explainer(device):
        model = TorchModel(torch.nn.Linear(2, 2), device=device)
        return eblime.ImageExplainer(model, segmentation="grid")

    assert not on_gpu(explainer("auto"))
    assert not on_gpu(explainer("cpu"))
    assert on_gpu(explainer("cuda"))
    assert not on_gpu(series_explainer(Counting()))
    assert not on_gpu(make_series)


def test_a_model_may_fill_the_same_array_again(tmp_path):
    """The scores and predictions of a run are copies of what the model returned."""
    buffer, rows = np.empty(10_000), np.random.default_rng(0).random((30, 3))

    def model(batch):
        buffer[: len(batch)] = batch[:, 0]
        return buffer[: len(batch)]

    in_rounds = {"until": eblime.Width(0.001), "max_masks": 200}
    run, plain = (
        eblime.explain_many(
            eblime.TabularExplainer(function, rows), rows[:6], tmp_path / name, **in_rounds
        ).frame()
        for name, function in (("buffer", model), ("plain", lambda batch: batch[:, 0].copy()))
    )

    pd.testing.assert_frame_equal(run, plain)


def test_inputs_that_share_a_call_share_an_open_cache(tmp_path, monkeypatch):
    """One file is opened for all of them: a process may not open as many as there are inputs."""
    rows, calls, opened = np.random.default_rng(0).random((30, 3)), [], []

    def model(batch):
        calls.append(len(batch))
        return batch[:, 0]

    original = engine_cache.open_file

    def open_file(*args):
        opened.append(args)
        return original(*args)

    settings = {"n_masks": 50, "method": "bayeslime"}
    explainer = eblime.TabularExplainer(model, rows, **settings)
    stored = eblime.AnswerCache(tmp_path / "answers.db", model_id="first column")
    plain = eblime.explain_many(explainer, rows, tmp_path / "plain").frame()
    asked = len(calls)
    with monkeypatch.context() as patch:
        patch.setattr(engine_cache, "open_file", open_file)
        cached = eblime.TabularExplainer(model, rows, cache=stored, **settings)
        run = eblime.explain_many(cached, rows, tmp_path / "cached").frame()

    assert len(calls) == 2 * asked
    assert len(opened) == 1
    pd.testing.assert_frame_equal(run, plain)
