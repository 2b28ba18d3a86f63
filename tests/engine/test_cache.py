"""Answers in a file: nothing is paid twice, nothing damaged is used."""

import itertools
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from processes import LONG, started

import eblime
from eblime.domains import Domain
from eblime.engine import cache as cache_module

TEXT = "one two three four five six seven eight nine ten eleven twelve"


class Counting:
    """A model of texts with two outputs; it may fail at one of its calls."""

    def __init__(self, fails_at=None, name="a"):
        self.asked, self.fails_at, self.name = [], fails_at, name

    def __call__(self, texts):
        """Two scores of a text."""
        if self.fails_at is not None and len(self.asked) >= self.fails_at:
            raise ConnectionError("the service is down")
        self.asked.extend(texts)
        return [[("two" in t) + 0.01 * len(t), len(t)] for t in texts]


@pytest.fixture
def cache(tmp_path):
    """A cache for a model with a name, whose answers are not asked again."""
    return eblime.AnswerCache(tmp_path / "answers.db", model_id="a", verify=0)


def explain(model, cache, **settings):
    """Explain the text by output 0."""
    rng, target = settings.pop("rng", 0), settings.pop("target", 0)
    return eblime.TextExplainer(model, cache=cache, **settings).explain(TEXT, target, rng)


def test_a_repeated_explanation_asks_nothing(cache):
    """Nor do another output, another method or kernel; the numbers are the same."""
    first, again = Counting(), Counting()
    plain = explain(Counting(), None)
    one = explain(first, cache)
    two = explain(again, cache)
    explain(again, cache, target=1)
    explain(again, cache, method="lime")
    explain(again, cache, kernel="uniform")

    assert again.asked == []
    assert two.provenance["model_calls"] == 0
    assert one.provenance["model_calls"] == len(first.asked) == len(cache)
    for found in (one, two):
        assert_array_equal(found.posterior.mean, plain.posterior.mean)
        assert_array_equal(found.scores, plain.scores)


def test_more_masks_ask_only_what_is_new(cache):
    """Of a design whose masks begin with those of fewer masks."""
    model = Counting()
    explain(model, cache, n_masks=200, design="bernoulli")
    before = list(model.asked)
    e = explain(model, cache, n_masks=400, design="bernoulli")

    assert len(set(model.asked)) == len(model.asked)
    assert_array_equal(len(model.asked) - len(before), e.provenance["model_calls"])
    assert e.provenance["model_calls"] <= 200


def test_the_input_its_features_and_the_model_are_told_apart(cache, tmp_path):
    """Another text, other tokens, another way of hiding or another model asks again."""
    explain(Counting(), cache)
    for settings in ({"hide": "[MASK]"}, {"tokens": r"\S+ \S+"}):
        model = Counting()
        explain(model, cache, **settings)
        assert model.asked
    model = Counting()
    eblime.TextExplainer(model, cache=cache).explain(TEXT + "!", 0)
    assert model.asked
    other = eblime.AnswerCache(cache.path, model_id="b")
    model = Counting()
    explain(model, other)
    assert model.asked


def test_a_model_that_needs_a_name_is_not_asked(tmp_path):
    """A function can depend on anything; the error says what to write."""
    model = Counting()
    advice = r"needs `model_id`.*AnswerCache\('\S*answers.db', model_id=\".*--model-id \""
    with pytest.raises(TypeError, match=advice):
        explain(model, tmp_path / "answers.db")

    assert model.asked == []
    assert not (tmp_path / "answers.db").exists()


class Scaled(Counting):
    """The same model with all scores multiplied, as after another training."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def __call__(self, texts):
        """Scores of texts."""
        return (self.factor * np.array(super().__call__(texts))).tolist()


@pytest.mark.parametrize(
    "settings",
    [{}, {"calls": eblime.Calls(concurrency=3, batch_size=5)}, {"n_masks": 2000}],
)
def test_answers_of_a_model_that_has_changed_are_refused(cache, settings):
    """One stored answer is asked again, before any other; nothing is stored or explained."""
    verified = eblime.AnswerCache(cache.path, model_id="a")
    explain(Counting(), verified, n_masks=300)
    before, model = len(cache), Scaled(1.01)
    with pytest.raises(ValueError, match=r"another model: output 0 .*the model now .*verify=0"):
        explain(model, verified, **{"n_masks": 300, **settings})

    assert len(model.asked) == 1
    assert len(cache) == before


def test_a_repeated_explanation_asks_one_answer_again(cache):
    """Or as many as `verify` says; stored answers are used, and last digits may differ."""
    first = explain(Counting(), cache)
    for verify in (1, 3):
        model = Scaled(1 + 1e-6)
        again = explain(model, eblime.AnswerCache(cache.path, model_id="a", verify=verify))
        assert len(model.asked) == again.provenance["model_calls"] == verify
        assert_array_equal(again.scores, first.scores)


def test_an_answer_asked_again_counts_as_a_call(cache):
    """`max_calls` is never exceeded, and rounds verify once."""
    verified = eblime.AnswerCache(cache.path, model_id="a")
    explain(Counting(), verified, n_masks=30, design="bernoulli")
    model = Counting()
    limit = eblime.Calls(max_calls=20)
    e = explain(model, verified, n_masks=400, design="bernoulli", calls=limit)
    assert len(model.asked) == e.provenance["model_calls"] == 20
    model = Counting()
    rule = eblime.Width(1e-9)
    explainer = eblime.TextExplainer(model, cache=verified, design="bernoulli")
    explainer.explain(TEXT, 0, 0, until=rule, max_masks=600)
    model.asked.clear()
    e = explainer.explain(TEXT, 0, 0, until=rule, max_masks=600)
    assert len(model.asked) == e.provenance["model_calls"] == 1


def test_runs_refuse_a_cache_of_another_model(tmp_path):
    """Inputs that share a call are verified in that call, and nothing is stored."""
    pytest.importorskip("pyarrow")
    texts = [TEXT, TEXT[4:], "red green blue two", "one two"]
    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="a")
    models = [Counting(), Counting(), Scaled(1.01)]
    runs = []
    for k, model in enumerate(models):
        explainer = eblime.TextExplainer(model, n_masks=80, cache=cache)
        runs.append(eblime.explain_many(explainer, texts, tmp_path / str(k), targets=[0]))

    assert len(models[1].asked) == len(texts)
    assert runs[0].frame()["mean"].tolist() == runs[1].frame()["mean"].tolist()
    assert len(cache) == len(models[0].asked)
    assert runs[2].failures()["error"].str.contains("answers of another model").all()
    assert len(runs[2].failures()) == len(texts)


def test_a_run_whose_model_needs_a_name_does_not_begin(tmp_path):
    """Neither in the calling process nor in workers."""
    pytest.importorskip("pyarrow")
    model = Counting()
    explainer = eblime.TextExplainer(model, n_masks=80, cache=tmp_path / "answers.db")
    with pytest.raises(TypeError, match=r"needs `model_id`"):
        eblime.explain_many(explainer, [TEXT], tmp_path / "run")

    assert model.asked == []


def test_verify_is_a_whole_number(tmp_path):
    """Checked when the cache is described."""
    for wrong in (-1, 0.5, True, None):
        with pytest.raises((TypeError, ValueError), match="`verify` must be"):
            eblime.AnswerCache(tmp_path / "answers.db", model_id="a", verify=wrong)


def test_a_failure_loses_at_most_one_batch(cache):
    """What was answered before the error is not asked again."""
    failing, model = Counting(fails_at=300), Counting()
    with pytest.raises(eblime.ModelError, match="the service is down"):
        explain(failing, cache, calls=eblime.Calls(batch_size=10))
    explain(model, cache, calls=eblime.Calls(batch_size=10))

    assert len(failing.asked) == 300
    assert not set(failing.asked) & set(model.asked)


def test_calls_under_way_are_kept_when_one_fails(cache):
    """Their answers are paid for."""
    kept, late, model, calls = [], threading.Event(), Counting(), itertools.count()

    def service(texts):
        number = next(calls)  # 0 is the input itself, which is asked alone
        if number == 3:
            late.set()
            raise ConnectionError("down")
        if number:
            late.wait(10)
        kept.extend(texts)
        return [[("two" in t) + 0.01 * len(t), len(t)] for t in texts]

    with pytest.raises(eblime.ModelError, match="down"):
        explain(service, cache, calls=eblime.Calls(batch_size=1, concurrency=4))
    explain(model, cache)

    assert kept
    assert not set(kept) & set(model.asked)


SCRIPT = """
    import os, signal, sys, eblime

    def model(texts):
        global n
        n += len(texts)
        if n > int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return [0.01 * len(t) for t in texts]

    n = 0
    cache = eblime.AnswerCache(sys.argv[1], model_id="m", verify=0)
    calls = eblime.Calls(cache=cache, batch_size=5)
    explainer = eblime.TextExplainer(model, calls=calls, n_masks=int(sys.argv[3]))
    explainer.explain("one two three four five six seven eight nine", rng=int(sys.argv[4]))
    print(n)
"""


def command(path, limit=10**9, n_masks=500, seed=0):
    """The command of a process that explains."""
    arguments = (path, limit, n_masks, seed)
    return [sys.executable, "-c", textwrap.dedent(SCRIPT), *map(str, arguments)]


def run(path, **settings):
    """A process that explains, and what it has printed."""
    return subprocess.run(command(path, **settings), stdout=subprocess.PIPE, check=False)


@pytest.mark.slow
def test_a_killed_process_loses_at_most_one_batch(tmp_path):
    """The next one asks only for the rest."""
    path = tmp_path / "answers.db"

    assert run(path, limit=100).returncode == -signal.SIGKILL
    stored = len(eblime.AnswerCache(path))
    assert 95 <= stored <= 100
    asked = int(run(path).stdout)
    assert len(eblime.AnswerCache(path)) == stored + asked


@pytest.mark.slow
def test_processes_share_a_file(tmp_path):
    """Two at once, with different masks: no error, and all answers are there."""
    path = tmp_path / "answers.db"
    with (
        started(command(path, seed=1), stdout=subprocess.PIPE) as one,
        started(command(path, seed=2), stdout=subprocess.PIPE) as two,
    ):
        printed = [process.communicate(timeout=LONG)[0] for process in (one, two)]

    assert [one.returncode, two.returncode] == [0, 0]
    asked = [int(number) for number in printed]
    assert max(asked) <= len(eblime.AnswerCache(path)) <= sum(asked)
    for seed in (1, 2):
        assert int(run(path, seed=seed).stdout) == 0


def test_a_file_is_created_by_several_at_once(tmp_path):
    """None of them finds it locked or half made, and all of them write to the same one."""
    failures, together = [], threading.Barrier(6)

    def create(path, model_id):
        together.wait(60)
        try:
            explain(Counting(), eblime.AnswerCache(path, model_id=model_id), n_masks=100)
        except Exception as error:
            failures.append(error)

    for number in range(10):
        path = tmp_path / f"{number}.db"
        threads = [threading.Thread(target=create, args=(path, str(k))) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(eblime.AnswerCache(path)) > 6 * 50


def test_a_file_that_stays_locked_is_reported(tmp_path, monkeypatch):
    """After the time that the cache waits."""
    path = tmp_path / "answers.db"
    monkeypatch.setattr(cache_module, "_TIMEOUT", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ValueError, match=r"cannot be opened: database is locked"):
            explain(Counting(), eblime.AnswerCache(path, model_id="a"))


def spoil_row(path):
    """Another number in an answer."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE answers SET answer = zeroblob(16)")
        connection.commit()


def spoil_pages(path):
    """Overwrite the middle of the file."""
    content = bytearray(path.read_bytes())
    content[4096 : len(content) // 2] = np.random.default_rng(0).bytes(len(content) // 2 - 4096)
    path.write_bytes(bytes(content))


def spoil_type(path):
    """A text instead of an answer."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE answers SET answer = 'abc'")
        connection.commit()


def spoil_table(path):
    """A table of another layout under the same name."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE answers")
        connection.execute("CREATE TABLE answers (a)")
        connection.commit()


@pytest.mark.parametrize("spoil", [spoil_row, spoil_type, spoil_table, spoil_pages])
def test_a_damaged_file_is_refused(cache, spoil):
    """It stays where it is, and the message has the command that removes it."""
    explain(Counting(), cache)
    spoil(cache.file)
    model, before = Counting(), cache.file.read_bytes()
    with pytest.raises(ValueError, match=r"is damaged: .*: rm -f \S*answers\.db") as refused:
        explain(model, cache)

    assert model.asked == []
    assert cache.file.read_bytes() == before
    subprocess.run(str(refused.value).rpartition(": ")[2], shell=True, check=True)
    assert not list(cache.file.parent.iterdir())
    explain(model, cache)
    assert len(model.asked) == len(cache)


def test_a_file_that_is_no_cache_is_refused_and_not_changed(cache):
    """Such as a text: nothing is renamed, and no file is created beside it."""
    cache.file.write_text("years of work " * 1000)
    model = Counting()
    with pytest.raises(ValueError, match=r"a file of another program, which is not changed"):
        explain(model, cache)

    assert model.asked == []
    assert cache.file.read_text() == "years of work " * 1000
    assert [*cache.file.parent.iterdir()] == [cache.file]


@pytest.mark.parametrize("busy", [True, False])
def test_a_file_that_cannot_be_written_to_is_read(cache, monkeypatch, busy):
    """Also while another program writes to it; new answers are not stored, with a warning."""
    explain(Counting(), cache)
    stored, model, connect = len(cache), Counting(), sqlite3.connect

    def connect_to_read(file, **options):
        return connect(f"{file.as_uri()}?mode=ro", uri=True, **options)

    with closing(connect(cache.file, isolation_level=None)) as writer:
        if busy:
            writer.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(sqlite3, "connect", connect_to_read)
        explain(model, cache)
        assert model.asked == []
        assert len(cache) == stored
        with pytest.warns(UserWarning, match="answers are not stored: .*readonly database"):
            explain(model, cache, hide="[MASK]")

    assert len(cache) == stored


def test_paths_that_cannot_be_a_cache_are_refused_before_the_model_is_asked(tmp_path):
    """A folder, a folder that does not exist, and a database of another program."""
    model = Counting()
    (tmp_path / "folder").mkdir()
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE prices (price REAL)")
    with pytest.raises(ValueError, match="path of a file in a folder"):
        explain(model, tmp_path / "folder")
    with pytest.raises(ValueError, match="in a folder that exists"):
        explain(model, tmp_path / "nowhere" / "a.db")
    with pytest.raises(ValueError, match="of another program"):
        explain(model, eblime.AnswerCache(tmp_path / "other.db", model_id="a"))
    with pytest.raises(TypeError, match="`cache` must be the path"):
        explain(model, 3)

    assert model.asked == []
    assert (tmp_path / "other.db").exists()


def test_a_call_overrides_the_explainers_cache(tmp_path):
    """The file of the call is written, the other is not."""
    one, other = (eblime.AnswerCache(tmp_path / f"{name}.db", model_id="a") for name in "ab")
    explainer = eblime.TextExplainer(Counting(), cache=one, n_masks=50)
    explainer.explain(TEXT, 0, cache=other)

    assert not (tmp_path / "a.db").exists()
    assert len(eblime.AnswerCache(tmp_path / "b.db")) > 40


def test_a_cache_can_be_counted_and_cleared(cache):
    """It is empty before it is used."""
    assert len(cache) == 0
    explain(Counting(), cache)

    assert len(cache) > 100
    cache.clear()
    assert len(cache) == 0
    model = Counting()
    explain(model, cache)
    assert model.asked


def test_images_are_not_rendered_again(cache):
    """The model is not opened where all answers are known."""
    image = np.random.default_rng(0).random((16, 16))
    grid = ("grid", {"rows": 4, "columns": 4})
    calls = []

    def model(batch):
        calls.append(len(batch))
        return batch.mean(axis=(1, 2))

    explainer = eblime.ImageExplainer(model, segmentation=grid, n_masks=100, cache=cache)
    first, asked = explainer.explain(image), len(calls)
    second = explainer.explain(image, rng=0)

    assert len(calls) == asked
    assert_array_equal(first.posterior.mean, second.posterior.mean)


def test_runs_share_a_cache(tmp_path, cache):
    """`explain_many` asks nothing in a second run; a resumed run still asks the model itself."""
    pytest.importorskip("pyarrow")
    texts = [TEXT, TEXT[4:], "red green blue two", "two"]
    model = Counting()
    explainer = eblime.TextExplainer(model, n_masks=80, cache=cache)
    first = eblime.explain_many(explainer, texts, tmp_path / "a")
    asked = len(model.asked)
    second = eblime.explain_many(explainer, texts, tmp_path / "b")

    assert len(model.asked) == asked == len(cache)
    assert first.frame()["mean"].tolist() == second.frame()["mean"].tolist()
    eblime.explain_many(explainer, texts, tmp_path / "b")
    assert len(model.asked) > asked


def test_a_lock_is_waited_for(tmp_path):
    """Another process may be writing."""
    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="a")
    explain(Counting(), cache, n_masks=60)
    other = sqlite3.connect(cache.file, isolation_level=None, check_same_thread=False)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.2, other.execute, ["COMMIT"])
        release.start()
        explain(Counting(), cache, n_masks=100)
        release.join()

    assert len(cache) > 80


def test_answers_of_a_model_with_other_outputs_are_refused(tmp_path):
    """The model has changed, and its name has not."""
    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="a")
    rows = np.random.default_rng(0).integers(0, 2, (50, 3)).astype(float)
    two, three = (
        eblime.TabularExplainer(lambda t, n=n: np.eye(n)[t[:, 0].astype(int)], rows, cache=cache)
        for n in (2, 3)
    )
    two.explain(rows[0], rng=0)
    with pytest.raises(ValueError, match=r"with 3 outputs; it has answers with 2\. Give the model"):
        three.explain(rows[0], rng=0)


def test_each_output_is_verified_by_its_own_range(cache):
    """Another model is found beside an output of 10,000 that did not change."""
    rows = np.random.default_rng(0).random((80, 3))
    verified = eblime.AnswerCache(cache.path, model_id="a", verify=50)

    def explainer(column):
        def model(table):
            return np.stack([np.full(len(table), 1e4), table[:, column]], axis=1)

        return eblime.TabularExplainer(model, rows, n_masks=64, cache=verified)

    explainer(0).explain(rows[5], 1)
    with pytest.raises(ValueError, match="answers of another model: output 1"):
        explainer(1).explain(rows[5], 1)


def test_categories_of_a_column_are_told_apart(cache):
    """A model may read the number of a category, which depends on the others."""
    pd = pytest.importorskip("pandas")
    asked = []

    def model(table):
        asked.append(len(table))
        return table["kind"].cat.codes.to_numpy().astype(float)

    for kinds in (["a", "b"], ["b", "a"]):
        values = pd.Categorical(["a", "b"] * 20, categories=kinds)
        frame = pd.DataFrame({"kind": values, "x": range(40)})
        explainer = eblime.TabularExplainer(model, frame, n_masks=50, cache=cache)
        e = explainer.explain(frame.iloc[0], rng=0)
        assert e.prediction == kinds.index("a")
        asked.clear()
        explainer.explain(frame.iloc[0], rng=0)
        assert asked == []


def halves(fill):
    """A domain whose hidden half has a number that only its code knows."""

    @dataclass(frozen=True)
    class Halves:
        series: np.ndarray
        domain = "halves"
        features = ("first", "second")
        n_features = 2
        sizes = (4,)

        def inputs(self, masks):
            shown = masks.repeat(2, axis=1) > 0.5
            return np.where(shown, self.series, fill)

    return Domain(name="halves", feature="half", scene=Halves, read=Halves)


def test_answers_about_an_own_domain_are_kept_under_a_name(cache):
    """Each input by what its scene holds."""
    explainer = eblime.Explainer(lambda batch: batch[:, 0], halves(0.0), cache=cache)
    for value in (1.0, 5.0):
        for _ in range(2):
            assert set(explainer.explain(np.full(4, value)).scores.ravel()) == {value, 0.0}
    assert len(cache) == 8


def test_an_own_domain_needs_a_name_also_with_a_model_that_needs_none(tmp_path, monkeypatch):
    """The bytes of a file do not show what the code of the domain does."""
    monkeypatch.setattr(cache_module, "fingerprint", lambda model: "a file")
    cache = tmp_path / "answers.db"
    explainer = eblime.Explainer(lambda batch: batch[:, 0], halves(0.0), cache=cache)
    with pytest.raises(TypeError, match="needs `model_id`, a name for this kind of input"):
        explainer.explain(np.ones(4))


def test_an_answer_that_is_no_row_of_numbers_is_damage(cache):
    """Although its checksum is right."""
    with cache_module.open_cache(cache, Counting()) as section_of:
        section = section_of("a text")
        section.write_text(b"key", "abc")
        with pytest.raises(ValueError, match="is damaged: an answer has no numbers"):
            section.read([b"key"])
