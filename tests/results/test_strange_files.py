"""Files from strangers: refused with a clear error, or usable in every way."""

import copy
import io
import os
import pickle
import time
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from mutations import VALUES, loaded, mutated, npy, parts, places_of, samples, use, zipped

import eblime
from eblime._field_checks import MOST_FEATURES
from eblime.results.storage import pack, unpack

MUTATIONS = int(os.environ.get("EBLIME_TEST_MUTATIONS", "2000"))
SHARES = 20  # tests among which the mutations are divided; all but the first are slow
SLOW_SHARES = [pytest.param(share, marks=pytest.mark.slow) for share in range(1, SHARES)]


@pytest.mark.parametrize("share", [0, *SLOW_SHARES])
def test_a_mutated_file_is_refused_or_usable(share):
    """No mutation leads to a file that loads and then fails where it is shown."""
    accepted = 0
    for k in range(share, MUTATIONS, SHARES):
        content = mutated(np.random.default_rng([k, 2024]))
        explanation = loaded(content)
        if explanation is not None:
            accepted += 1
            try:
                use(explanation)
            except Exception as error:
                raise AssertionError(f"mutation {k} loads but cannot be shown") from error

    assert 0.02 < accepted * SHARES / MUTATIONS < 0.6  # the mutations test both outcomes


@pytest.mark.parametrize(
    "which", [4, *[pytest.param(k, marks=pytest.mark.slow) for k in range(len(samples()))]]
)
def test_any_value_in_any_place_is_refused_or_usable(which):
    """Each entry of the JSON in turn, from the label to what the provenance says of the input."""
    tree, arrays = samples()[which]
    refused = 0
    for place in range(len(places_of(tree))):
        for value in VALUES:
            changed = copy.deepcopy(tree)
            node, key = places_of(changed)[place]
            node[key] = copy.deepcopy(value)
            explanation = loaded(zipped(changed, arrays))
            refused += explanation is None
            if explanation is not None:
                use(explanation)

    assert 0 < refused < len(places_of(tree)) * len(VALUES)  # both outcomes occur


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*[Gg]lyph")  # our font has no such characters
def test_a_mutated_file_can_be_drawn():
    """The default picture, and those of its kind of input."""
    kinds = {"image": ["map"], "text": ["text"], "tabular": ["means"]}
    kinds |= {"prompt": ["text"], "signal": ["signal"], "volume": ["slices", "projections"]}
    drawn = 0
    for k in range(MUTATIONS, MUTATIONS + max(40, MUTATIONS // 50)):
        explanation = loaded(mutated(np.random.default_rng([k, 2024])))
        if explanation is None:
            continue
        wanted = kinds[explanation.scene.domain] if explanation.posterior.has_spread else [None]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            for kind in [None, *wanted]:
                explanation.plot(kind).figure.canvas.print_figure("/dev/null", format="png")
                drawn += 1

    assert drawn


@pytest.mark.parametrize("which", range(len(samples())))
def test_the_samples_themselves_load(which):
    """The samples are valid before they are mutated."""
    explanation = unpack(zipped(*samples()[which]), "sample")

    use(explanation)
    assert explanation.posterior.n_features == len(explanation.features)


@pytest.mark.parametrize("number", [float("nan"), -5, 0, 1.0, True, "1", None, [], 10**30])
def test_a_format_is_a_whole_number(number):
    """Anything else is refused, and a large one is a later eblime's."""
    tree, arrays = samples()[0]

    with pytest.raises(ValueError, match="format"):
        unpack(zipped({**tree, "format": number}, arrays), "file")


def changed(which=0, **fields):
    """A sample with other fields."""
    tree, arrays = samples()[which]
    return zipped(copy.deepcopy(tree) | fields, arrays)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"target": -1}, r"`Explanation.target` must be a whole number"),
        ({"target": 1.5}, r"`Explanation.target`"),
        ({"target": True}, r"`Explanation.target`"),
        ({"label": 3}, r"`Explanation.label` must be a string"),
        ({"label": "x" * (1 << 21)}, r"`Explanation.label` must be a string of at most"),
        ({"prediction": float("nan")}, r"`Explanation.prediction` must be a number"),
        ({"exhaustive": 1}, r"`Explanation.exhaustive` must be"),
        ({"provenance": {"seconds": "<b>"}}, "seconds"),
        ({"provenance": {"seed": float("nan")}}, "finite"),
        ({"provenance": [[7, 1]]}, r"`Explanation.provenance`"),
        ({"provenance": {"input": "x"}}, r"`provenance.input` must be"),
        ({"provenance": {"top_classes": [["cat", "much"]]}}, "each a name and a number"),
        ({"answers": {"masks": {"array": "array-0"}}}, "is not a whole"),
        ({"method": {"name": "EBLIME", "settings": {"a": -1}}}, "`a` must be finite and > 0"),
        ({"method": {"name": "EBLIME", "settings": {"b": {"name": "os"}}}}, "known class"),
        ({"scene": {"domain": "smell", "fields": {}}}, "needs the domain 'smell'"),
    ],
)
def test_wrong_fields_are_refused_by_name(fields, words):
    """Types, signs and sizes."""
    with pytest.raises(ValueError, match=words):
        unpack(changed(**fields), "file")


def test_the_parts_must_agree():
    """A scene of other features than the posterior's is refused."""
    scene = samples()[3][0]["scene"]

    with pytest.raises(ValueError, match="one number of features"):
        unpack(changed(which=0, scene=scene), "file")


def test_labels_of_superpixels_are_bounded():
    """One pixel with a huge label would name as many features."""
    tree, arrays = samples()[0]
    place = tree["scene"]["fields"]["labels"]["array"]
    labels = np.load(io.BytesIO(arrays[place]))
    for value in (MOST_FEATURES * 1000, -1, labels.max() + 2):
        bad = labels.copy()
        bad[0, 0] = value
        with pytest.raises(ValueError, match=r"a label 0 \.\. p - 1 for each element"):
            unpack(zipped(tree, {**arrays, place: npy(bad)}), "file")


def test_a_file_that_unpacks_to_too_much_is_refused_unread(tmp_path):
    """By the sizes that the archive states; `max_bytes` sets another limit."""
    tree, arrays = samples()[0]
    path = tmp_path / "bomb.eblime"
    path.write_bytes(zipped(tree, {**arrays, "more": npy(np.zeros(1 << 20))}))
    assert path.stat().st_size < 1 << 15

    with pytest.raises(ValueError, match=r"at most 1000000 bytes, but needs .*max_bytes="):
        eblime.load(path, max_bytes=1_000_000)
    with pytest.raises(ValueError, match="must have at most 100 bytes"):
        eblime.load(path, max_bytes=100)


def test_an_array_is_as_large_as_it_says():
    """A header that asks for terabytes allocates nothing."""
    tree, arrays = samples()[0]
    header = npy(np.zeros(3)).replace(b"(3,), ", b"(3" + b"0" * 12 + b",), ")

    with pytest.raises(ValueError, match="has another size"):
        unpack(zipped(tree, {**arrays, "array-0": header}), "file")


def test_dense_compression_is_refused():
    """A few bytes of bzip2 can be gigabytes; eblime never writes it."""
    with pytest.raises(ValueError, match="stored or deflated"):
        unpack(zipped(*samples()[0], method=zipfile.ZIP_BZIP2), "file")


class Marks:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("kind", ["object array", "bare pickle"])
def test_a_pickle_in_a_file_is_not_read(tmp_path, kind):
    """Neither inside an array nor in place of one."""
    marker, array = tmp_path / "ran", io.BytesIO()
    np.save(array, np.array([Marks(marker)], dtype=object), allow_pickle=True)
    content = array.getvalue() if kind == "object array" else pickle.dumps(Marks(marker))
    for tree, arrays in samples():
        for name in arrays:
            assert loaded(zipped(tree, {**arrays, name: content})) is None

    assert not marker.exists()
    pickle.loads(pickle.dumps(Marks(marker)))
    assert marker.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_only_regular_files_are_read(tmp_path):
    """A pipe must not hang, and a device must not be read for ever."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(ValueError, match="must be a regular file"):
            eblime.load(path)


def crafted(n, p, method, settings=(), *, draws=False):
    """A file of a few kilobytes with n masks of p features, and what a table shows of them."""
    tree, arrays = copy.deepcopy(samples()[4])
    tree["method"] = {"name": method, "settings": dict(settings)}
    tree["scene"]["fields"] = dict.fromkeys(("features", "columns", "values"), ["a"] * p)
    answers = {"masks": np.tri(n, p, dtype=np.uint8), "scores": np.arange(n) % 7 / 7}
    answers |= {"weights": np.ones(n)}
    summary = {"name": "A", "estimand": "a", "r2": 0.6, "r2_held_out": 0.5, "ess": 9.0}
    summary |= {"intercept": 0.0, "mean": np.linspace(0, 1, p)}
    if method != "LIME":
        summary |= dict.fromkeys(("sd", "low", "high", "prob_positive"), np.ones(p))
    large = {**answers, **{k: v for k, v in summary.items() if isinstance(v, np.ndarray)}}
    if draws:
        large["draws"] = np.ones((50, p), dtype=np.float32)
    refer = lambda fields: {k: {"array": k} if k in large else v for k, v in fields.items()}  # noqa: E731
    tree |= {"answers": refer(answers), "draws": {"array": "draws"} if draws else None}
    tree |= {"summary": refer(summary)}
    tree["exhaustive"] = False
    return zipped(tree, {**arrays, **{name: npy(array) for name, array in large.items()}})


def grid(**settings):
    """Settings of EBLIME with a published grid."""
    fields = {"n_lambdas": 100, "upper": 1.0, "draws": 100, "sampler": "categorical", **settings}
    return {"grid": {"name": "PublishedGrid", "settings": fields}}


@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize(
    ("n", "p", "method", "settings"),
    [
        (30, 3, "EBLIME", grid(n_lambdas=10**7)),
        (30, 3, "EBLIME", grid(draws=2 * 10**8)),
        (2_000, 2_000, "EBLIME", {}),
        (50_000, 1_000, "LIME", {}),
        (20_000, 1_000, "LIME", {}),
        (3_000, 60, "Quadrature", {}),
        (3, 20_000, "EBLIME", {}),
        (600, 600, "BayesLIME", {}),  # small enough to be fitted again
    ],
)
def test_a_small_file_needs_little_time_and_memory(n, p, method, settings, draws):
    """To open and to print, or to refuse: no fit is made that nobody asked for."""
    content = crafted(n, p, method, settings, draws=draws)
    explanation = shown_at_little_cost(content, str)

    stored = "masks, held-out R2 " + ("" if method == "BayesLIME" else "0.500")
    assert explanation is None or stored in str(explanation)
    assert (explanation is not None) == (n < 50_000 and (draws or method in ("LIME", "BayesLIME")))


def shown_at_little_cost(content, show):
    """What a file of less than a megabyte has, shown in some way; None if it is refused."""
    assert len(content) < 1_000_000
    start = time.process_time()
    tracemalloc.start()
    try:
        explanation = loaded(content)
        if explanation is not None:
            with np.errstate(all="ignore"):
                show(explanation)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 400e6
    assert time.process_time() - start < (5 if show is str else 20)  # with counting memory
    return explanation


def inflated(which, arrays, p, **fields):
    """A sample with p features, which compress well, and two draws of each."""
    tree, known = copy.deepcopy(samples()[which])
    scene = {k: v for k, v in tree["scene"]["fields"].items() if k not in arrays}
    numbers = dict.fromkeys(("sd", "low", "high", "prob_positive"), np.ones(p))
    numbers |= {"mean": np.linspace(0, 1, p)}
    asked = {"masks": np.tri(3, p, dtype=np.uint8), "scores": np.arange(3.0), "weights": np.ones(3)}
    large = {**arrays, **numbers, **asked, "draws": np.ones((2, p), np.float32)}
    refer = lambda names: {name: {"array": name} for name in names}  # noqa: E731
    tree["scene"]["fields"] = scene | refer(arrays) | fields
    tree["answers"] |= {"features": None, "rounds": None, "sampling": None, **refer(asked)}
    tree["summary"] |= refer(numbers)
    tree |= {"method": None, "exhaustive": False, **refer(["draws"])}
    return zipped(tree, known | {name: npy(array) for name, array in large.items()})


P = MOST_FEATURES
BOARD = np.indices((700, 700)).sum(axis=0)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda: crafted(3, P, "EBLIME", draws=True), id="table"),
        pytest.param(
            lambda: inflated(3, {}, P, features=["w"] * P, pieces=["w"] * P, owners=[*range(P)]),
            id="text",
        ),
        pytest.param(
            lambda: inflated(
                3, {}, 2, features=["a", "b"], pieces=["w"] * 40_000, owners=[0, 1] * 20_000
            ),
            id="repeated words",
        ),
        pytest.param(
            lambda: inflated(6, {}, P, features=["s"] * P, sources=["s"] * P, groups=[*range(P)]),
            id="prompt",
        ),
        pytest.param(
            lambda: inflated(
                2,
                {"labels": BOARD % 3, "shown": BOARD.astype("u1"), "hidden": BOARD.astype("u1")},
                3,
            ),
            id="image",
        ),
        pytest.param(
            lambda: inflated(
                7,
                {
                    "parts": np.arange(300_000).reshape(3, -1) % 2,
                    "signal": np.zeros((3, 100_000)),
                    "hidden": np.zeros((1, 3, 100_000)),
                },
                2,
            ),
            id="signal",
        ),
        pytest.param(
            lambda: inflated(
                8,
                {
                    "labels": np.arange(30**3).reshape((30,) * 3) % 249,
                    "shown": np.zeros((30,) * 3),
                    "hidden": np.zeros((30,) * 3),
                },
                249,
                features=["a"] * 249,
            ),
            id="volume",
        ),
        pytest.param(
            lambda: inflated(
                8,
                {
                    "labels": np.eye(150**2, 150, dtype=np.intp).reshape((150,) * 3),
                    "shown": np.zeros((150,) * 3),
                    "hidden": np.zeros((150,) * 3),
                },
                2,
                features=["a", "b"],
            ),
            id="large volume",
        ),
    ],
)
@pytest.mark.slow
def test_a_page_of_a_small_file_needs_little_time_and_memory(content):
    """Whatever there is much of: features, words, borders between features, voxels."""
    assert shown_at_little_cost(content(), use) is not None


def test_a_small_file_of_a_large_photo_needs_little_memory():
    """Labels and pixels are read without copies, and summed a part at a time."""
    tree, arrays = samples()[0]
    labels = np.zeros((2500, 2500), dtype=np.intp)
    labels[0, :3] = 1, 2, 3
    photo = np.zeros((2500, 2500, 3), dtype=np.uint8)
    places = {
        name: tree["scene"]["fields"][name]["array"] for name in ("shown", "hidden", "labels")
    }
    large = {"shown": photo, "hidden": photo + 1, "labels": labels}
    content = zipped(tree, arrays | {places[name]: npy(value) for name, value in large.items()})
    assert len(content) < 200_000
    del photo, labels, large
    tracemalloc.start()
    try:
        assert "superpixel" in str(unpack(content, "file"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 250e6


def test_a_slow_fit_is_made_if_it_is_asked_for(monkeypatch):
    """By `refit`; until then an explanation with draws has the table that it was saved with."""
    monkeypatch.setattr("eblime.methods.regression._MOST_WORK", 0.0)
    score = lambda texts: [len(text) / 9 for text in texts]  # noqa: E731
    e = eblime.TextExplainer(score, n_masks=30).explain("one two three four five six seven")
    content = pack(e)
    again = unpack(content, "file")
    exact = again.refit(again.method)

    assert str(again) == str(e)
    assert repr(exact.posterior.law) == repr(e.posterior.law)
    np.testing.assert_allclose(again.posterior.interval(0.5), e.posterior.interval(0.5), atol=0.02)
    assert parts(pack(again)) == parts(content)
    use(again)
