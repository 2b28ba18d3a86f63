"""`eblime.compare`: several methods on one input, from the same number of model calls."""

import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime import registry
from eblime.cli.app import main
from eblime.core.overall import kendall, ranks, same_signs, top_jaccard
from eblime.family import DLIME, DMMMEN, SLIME, UnRAVEL

TEXT = "a good film, not a long one but with many words in it all the same"
PEOPLE = np.random.default_rng(1).normal(size=(300, 5))
IMAGE = np.arange(64.0).reshape(8, 8) / 64


class Counter:
    """A model that counts the inputs that it is asked about."""

    def __init__(self, score):
        self.score, self.asked = score, 0

    def __call__(self, batch):
        """Scores of a batch."""
        self.asked += len(batch)
        return self.score(batch)


def mood(texts):
    """Scores of texts."""
    return [0.5 + 0.4 * ("good" in text) - 0.3 * ("not" in text) for text in texts]


def rows_score(rows):
    """Scores of rows."""
    return rows[:, 0] > 0.2 * rows[:, 1]


def pixels_score(batch):
    """Scores of images."""
    return batch[:, :4, :4].mean(axis=(1, 2)) - 0.3 * batch[:, 4:].mean(axis=(1, 2))


def test_methods_of_one_design_share_their_answers():
    """Three methods cost what one costs, and each is what its explainer returns alone."""
    model = Counter(mood)
    found = eblime.compare(model, TEXT, ["eblime", "lime", "bayeslime"], n_masks=100, rng=3)
    asked = model.asked
    alone = eblime.TextExplainer(mood, n_masks=100, method="bayeslime").explain(TEXT, rng=3)

    assert asked <= 101
    assert set(found.model_calls.values()) == {asked}
    assert found["lime"].masks is found["eblime"].masks
    assert_allclose(found["bayeslime"].posterior.mean, alone.posterior.mean)


def test_design_of_its_own_asks_as_many_masks():
    """An adaptive design has its own masks, with at most two calls more or less."""
    methods = ["eblime", "quadrature+adaptive", ("lime", "bernoulli")]
    found = eblime.compare(mood, TEXT, methods, n_masks=60, design="leverage")

    assert found.methods == ("eblime", "quadrature+adaptive", "lime+bernoulli")
    assert all(abs(calls - 60) <= 2 for calls in found.model_calls.values())
    assert found["quadrature+adaptive"].provenance["design"] == "adaptive"
    assert not np.array_equal(found["eblime"].masks, found["lime+bernoulli"].masks)


@pytest.mark.parametrize(
    ("model", "x", "settings"),
    [
        (mood, TEXT, {}),
        (rows_score, PEOPLE[0], {"background": PEOPLE}),
        (pixels_score, IMAGE, {"segmentation": ("grid", {"rows": 4, "columns": 4}), "hide": 0.0}),
    ],
)
def test_texts_rows_and_images(model, x, settings):
    """All kinds of input are tabulated, drawn, printed and shown in a notebook."""
    found = eblime.compare(model, x, ["eblime", "lime"], n_masks=80, **settings)
    frame = found.to_frame()
    p = len(found["lime"].features)

    assert frame.columns.tolist() == ["feature", "method", "mean", "low", "high", "rank"]
    assert len(frame) == 2 * p
    assert sorted(frame["rank"][:p]) == list(range(1, p + 1))
    assert frame[frame["method"] == "lime"]["low"].isna().all()
    assert (frame["low"] <= frame["mean"])[:p].all()
    assert "Model calls: eblime" in str(found)
    assert "model calls" in found._repr_html_()
    labels = [text.get_text() for text in found.plot(top=3).get_legend().get_texts()]
    assert labels == ["eblime", "lime"]


def test_html_escapes_names_from_the_text():
    """A text cannot bring tags into a notebook."""
    found = eblime.compare(len_of, "<script> alert </script> x y", ["lime"], tokens=r"\S+")

    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def len_of(texts):
    """Lengths of texts."""
    return [float(len(text)) for text in texts]


def test_agreement_of_pairs():
    """One row per pair of methods; a method agrees with a copy of itself."""
    methods = {"one": "eblime", "same": eblime.EBLIME(), "printed": "eblime-paper"}
    found = eblime.compare(mood, TEXT, methods, n_masks=60)
    rows = found.agreement(top=2)

    assert rows[["first", "second"]].to_numpy().tolist() == [
        ["one", "same"],
        ["one", "printed"],
        ["same", "printed"],
    ]
    assert rows.iloc[0][["top_jaccard", "same_signs", "kendall"]].tolist() == [1, 1, 1]


def test_measures_by_hand():
    """Four features, worked out by hand: one of six pairs of features is in another order."""
    a, b = np.array([4.0, -3.0, 2.0, 1.0]), np.array([4.0, 2.0, -3.0, 1.0])

    assert ranks(b).tolist() == [1, 3, 2, 4]
    assert top_jaccard(a, b, 2) == pytest.approx(1 / 3)
    assert same_signs(a, b, 2) == pytest.approx(1 / 3)
    assert kendall(a, b) == pytest.approx((5 - 1) / 6)
    assert np.isnan(kendall(a, np.ones(4)))


def test_different_estimands_are_noted():
    """Shapley values and slopes of a line are not on one scale."""
    found = eblime.compare(mood, TEXT, ["eblime", "bayesshap"], n_masks=60)
    same = eblime.compare(mood, TEXT, ["eblime", "lime"], n_masks=60)

    assert "different quantities" in str(found)
    assert same.notes() == []


def test_quadrature_and_regression_estimate_the_same_if_masks_decide_the_input():
    """Also for a row of a table, but not with another kernel."""
    narrow = eblime.Quadrature(kernel=eblime.kernels.ExponentialKernel(width=0.3))
    methods = ["eblime", "quadrature", "quadrature+adaptive"]
    same = eblime.compare(mood, TEXT, methods, n_masks=60, design="leverage")
    kernels = eblime.compare(mood, TEXT, {"own": "quadrature", "narrow": narrow}, n_masks=60)
    row = eblime.compare(slopes, PEOPLE[0], methods[:2], background=PEOPLE, n_masks=60, target=0)

    assert same.notes() == []
    assert "width 0.3" in kernels.notes()[2]
    assert row.notes() == []


def test_the_law_of_masks_of_texts_is_noted():
    """The masks of lime for texts are not drawn evenly, even if all of them are asked."""
    methods = ["eblime", "quadrature", "lime"]
    found = eblime.compare(mood, TEXT, methods, n_masks=60, design="sizes")
    short = eblime.compare(mood, "a good film", methods, design="sizes")
    usual = eblime.compare(mood, TEXT, methods, n_masks=60)

    assert "different quantities" in str(found)
    assert "eblime, lime: Importances are coefficients of the linear fit" in found.notes()[1]
    assert "each number of hidden features counting the same" in found.notes()[1]
    assert "each number of hidden features counting the same" in short.notes()[1]
    assert usual.notes() == []
    assert usual["eblime"].estimand in str(usual).replace("\n", " ")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"methods": "eblime"}, TypeError, "`methods` must be a list or a dictionary"),
        ({"methods": []}, ValueError, "`methods` must have at least one"),
        ({"methods": ["eblime", "eblime"]}, ValueError, "'eblime' is there twice"),
        ({"methods": ["magic"]}, ValueError, "`methods` must be one of .*'s-lime'"),
        ({"methods": ["lime+magic"]}, ValueError, "`design` must be one of"),
        ({"methods": ["lime+adaptive"]}, ValueError, "must be used with method='quadrature'"),
        ({"methods": [("lime", "bernoulli", 3)]}, TypeError, r"must be \(method, design\)"),
        ({"magic": 3}, TypeError, "magic"),
        ({"explainer": eblime.TextExplainer(mood), "bag": False}, TypeError, "got bag as well"),
        ({"explainer": 3}, TypeError, "`explainer` must be an explainer"),
        ({"n_masks": 0}, ValueError, "`n_masks` must be >= 2"),
    ],
)
def test_bad_settings_are_refused_before_any_model_call(settings, error, message):
    """The model is not asked."""
    model = Counter(mood)
    with pytest.raises(error, match=message):
        eblime.compare(model, TEXT, **{"methods": ["eblime"], **settings})

    assert model.asked == 0


def test_explainer_gives_settings_and_model():
    """Without a model the explainer's is asked; a model given replaces it."""
    explainer = eblime.TextExplainer(mood, n_masks=50)
    found = eblime.compare(None, TEXT, ["lime"], explainer=explainer)
    other = eblime.compare(len_of, TEXT, ["lime"], explainer=explainer)

    assert found["lime"].prediction == pytest.approx(mood([TEXT])[0])
    assert other["lime"].prediction == len(TEXT)


def test_compare_on_the_command_line(tmp_path, monkeypatch, capsys):
    """`--compare` adds a table and a picture of all methods to the files of --method."""
    (tmp_path / "mood_compare.py").write_text(
        "def score(texts):\n    return [('good' in t) - 0.5 * ('not' in t) for t in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = ["explain", "text", TEXT, "--model", "mood_compare:score", "--masks", "60"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--compare", "lime,quadrature+adaptive"])
    out = capsys.readouterr().out
    lines = (tmp_path / "eblime-out" / "text-methods.csv").read_text().splitlines()

    assert ended.value.code == 0
    assert lines[0] == '"feature","method","mean","low","high","rank"'
    assert sum('"quadrature+adaptive"' in line for line in lines) == (len(lines) - 1) // 3
    assert (tmp_path / "eblime-out" / "text-methods.png").exists()
    assert (tmp_path / "eblime-out" / "text.eblime").exists()
    assert "text-methods.png" in out
    for wrong, message in (
        (["--compare", "lime", "--until", "top2"], "--compare cannot be used together with"),
        (["--compare", "lime", "--max-seconds", "9"], "together with --max-seconds"),
        (["--compare", "magic"], "--compare must be one of 'eblime'"),
        (["--compare", "lime,"], "--compare must be one of 'eblime'"),
        (["--compare", "lime", "--method", "magic"], "--method must be one of 'eblime'"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*words, *wrong])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("choices", "named"),
    [
        (["hide=[MASK],UNK"], ["[MASK]", "UNK"]),
        (["hide=[MASK]", "hide=UNK"], ["[MASK]", "UNK"]),
        (["masks=20,30", "design=bernoulli"], ["20", "30", "bernoulli"]),
        ([r"tokens=\w{1,9}"], [r"\w{1,9}"]),  # a comma of the expression
    ],
)
@pytest.mark.slow
def test_choices_on_the_command_line_are_a_list(choices, named, tmp_path, monkeypatch):
    """A comma separates choices, as it does methods, unless it may be part of a value."""
    (tmp_path / "mood_choices.py").write_text(
        "def score(texts):\n    return [('good' in t) - 0.5 * ('not' in t) for t in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = ["explain", "text", TEXT, "--model", "mood_choices:score", "--masks", "40"]
    with pytest.raises(SystemExit) as ended:
        main([*words, *(word for text in choices for word in ("--compare", text))])
    found = json.loads((tmp_path / "eblime-out" / "text-choices.json").read_text())

    assert ended.value.code == 0
    assert [row["choice"] for row in found["rows"][1:]] == named


SYSTEMS_OF_ROWS = ("s-lime", "dlime", "dmm-men", "unravel")


def slopes(rows):
    """Two outputs; the first one is steep in column 0 and falls with column 1."""
    return np.stack([4 * rows[:, 0] - rows[:, 1], np.full(len(rows), -99.0)], axis=1)


@pytest.mark.slow
def test_systems_run_beside_methods_with_the_same_budget(tmp_path):
    """All relatives of LIME on one row: tables, plots, pages and files have every one."""
    model = Counter(slopes)
    x = np.array([1.2, 0.2, 1.0, -1.0, 0.0])
    methods = ["lime", "lime+glime", "lime+stratified-lime", *SYSTEMS_OF_ROWS]
    found = eblime.compare(model, x, methods, background=PEOPLE, n_masks=120, target=0, rng=7)
    ax = found.plot()
    page = found._repr_html_()

    assert found.methods == tuple(methods)
    assert sum(found.model_calls.values()) >= model.asked - 10  # the input itself, asked again
    assert max(len(found[name].masks) for name in methods) <= 121
    assert len(found.to_frame()) == 5 * len(methods)
    for name in methods:
        if name != "dlime":  # asks about one cluster of rows
            assert np.argmax(np.abs(found[name].posterior.mean)) == 0
        assert found[name].target == 0
        assert found[name].provenance["seed"] == 7
        assert name in page
        loaded = eblime.load(found[name].save(tmp_path / "e.eblime"))
        close = found[name].posterior
        atol = 0.3 * close.sd.max() if close.has_spread else 1e-9
        assert_allclose(loaded.posterior.mean, close.mean, atol=atol)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == methods
    with pytest.raises(ValueError, match="UnRAVEL cannot fit answers again"):
        found["unravel"].refit(found["unravel"].method)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_systems_take_frames_of_numbers(package):
    """The model gets frames with its own columns, and the numbers are those of an array."""
    library = pytest.importorskip(package)
    names = list("abcde")
    table = library.DataFrame({name: PEOPLE[:, j] for j, name in enumerate(names)})
    row = dict(zip(names, PEOPLE[0].tolist(), strict=True))

    def model(frame):
        return slopes(np.column_stack([frame[name].to_numpy() for name in names]))

    methods = ["lime", "dlime", "dmm-men", "unravel"]
    of_frame = eblime.compare(model, row, methods, background=table, n_masks=60, target=0)
    of_array = eblime.compare(
        slopes, PEOPLE[0], methods, background=PEOPLE, names=names, n_masks=60, target=0
    )

    for name in methods:
        assert list(of_frame[name].features) == list(of_array[name].features)
        assert_allclose(of_frame[name].posterior.mean, of_array[name].posterior.mean)


def test_system_of_numbers_refuses_categories_before_any_call():
    """The message names the column."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "kind": list("xyxy")})
    model = Counter(lambda frame: frame["a"].to_numpy())
    with pytest.raises(TypeError, match=r"DLIME needs rows of numbers; column 'kind'"):
        eblime.compare(model, table.iloc[0], ["lime", "dlime"], background=table)

    assert model.asked == 0


def test_systems_of_texts_and_their_settings():
    """S-LIME stops early; objects have settings and names."""
    found = eblime.compare(mood, TEXT, {"LIME": "lime", "S-LIME": SLIME(k=1)}, n_masks=200)

    assert found.methods == ("LIME", "S-LIME")
    assert found["S-LIME"].provenance["reached"]
    assert found.model_calls["S-LIME"] < 200
    assert {np.argmax(found[name].posterior.mean) for name in found} == {1}


def test_system_samples_a_large_background():
    """DLIME and DMM-MEN ask about no more rows than the budget has masks."""
    model = Counter(slopes)
    found = eblime.compare(model, PEOPLE[0], ["lime", "dlime"], background=PEOPLE, n_masks=40)

    assert found.model_calls["dlime"] <= 41
    assert list(found["dlime"].scene.columns) == list(found["lime"].scene.columns)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["dlime", "dmm-men", "unravel"])
@pytest.mark.parametrize("kind", ["array", "frame"])
@pytest.mark.filterwarnings("ignore:These columns are the same in all rows")
def test_constant_columns_are_zero_for_systems(system, kind):
    """As for the methods; the model gets the row's value there, also if it is a text."""
    data = np.insert(PEOPLE, 1, 7.0, axis=1)
    if kind == "frame":
        pd = pytest.importorskip("pandas")
        data = pd.DataFrame(data, columns=[f"c{j}" for j in range(data.shape[1])])
        data["c1"] = "same"

    def model(rows):
        values = np.asarray(rows)
        assert set(values[:, 1].tolist()) == {"same" if kind == "frame" else 7.0}
        return np.asarray(values[:, 0], dtype=float) * 3

    x = data.iloc[0] if kind == "frame" else data[0]
    found = eblime.compare(model, x, ["lime", system], background=data, n_masks=80)

    assert list(found[system].features)[1].startswith("c1" if kind == "frame" else "column 1")
    assert found[system].posterior.mean[1] == 0
    assert np.delete(found[system].posterior.mean, 1).all()


def test_systems_of_other_packages_are_found_by_name(monkeypatch):
    """`compare` knows the names in the registry, and calls `check` and `explain`."""

    class Twice:
        """Explains with twice as many masks."""

        def check(self, explainer, x):
            """Everything works."""

        def explain(self, explainer, x, target=None, rng=0):
            """One explanation."""
            return explainer.explain(x, target, rng, n_masks=2 * explainer.n_masks)

    monkeypatch.setitem(registry._ADDED["systems"], "twice", Twice)
    found = eblime.compare(mood, TEXT, ["lime", "twice"], n_masks=50)

    assert len(found["twice"].masks) == 100


def test_system_equals_the_class_if_the_budget_has_the_background():
    """DLIME beside LIME is DLIME by itself, fitted by LIME."""
    found = eblime.compare(slopes, PEOPLE[0], ["lime", "dlime"], background=PEOPLE, n_masks=400)
    explainer = eblime.TabularExplainer(slopes, PEOPLE, n_masks=301)
    alone = eblime.family.DLIME().explain(explainer, PEOPLE[0])

    assert_allclose(found["dlime"].posterior.mean, alone.posterior.mean)


@pytest.mark.parametrize(
    ("methods", "x", "settings", "message"),
    [
        (["dlime"], PEOPLE[0], {"background": PEOPLE}, "`methods` must have at least one method"),
        (["lime", "dlime"], TEXT, {}, "DLIME needs rows of numbers"),
        (["lime", "unravel"], IMAGE, {"segmentation": "grid"}, "UnRAVEL needs rows of numbers"),
        (
            ["lime", "dmm-men"],
            PEOPLE[0],
            {"background": PEOPLE, "groups": {"both": [0, 1]}},
            "DMM-MEN needs one feature per column",
        ),
        (["lime", SLIME], TEXT, {}, "`method` must be one of"),
        (["lime", UnRAVEL(n_calls=2)], PEOPLE[0], {}, "`n_calls` must be >= 3; got 2"),
        (["lime", DMMMEN(draws=1)], PEOPLE[0], {}, "`draws` must be >= 2; got 1"),
        (["lime", DMMMEN(burn_in=-1)], PEOPLE[0], {}, "`burn_in` must be >= 0"),
        (["lime", DLIME(n_clusters=0)], PEOPLE[0], {}, "`n_clusters` must be >= 1"),
        (["lime", DLIME()], PEOPLE[0], {"n_masks": 2}, "`n_clusters` must be >= 1 and <= 1"),
        (["lime", SLIME(k=0)], TEXT, {}, "`k` must be >= 1"),
        (["lime", "dmm-men"], [np.nan, 0, 0, 0, 0], {}, "of the row has 1 missing or infinite"),
        (
            ["lime", "unravel"],
            PEOPLE[0],
            {"background": np.where(PEOPLE.max(axis=0) == PEOPLE, np.nan, PEOPLE)},
            "column 'column 0' of `background` has 1 missing",
        ),
    ],
)
def test_systems_that_cannot_work_are_refused_before_any_call(methods, x, settings, message):
    """The message says what is needed."""
    model = Counter(rows_score)
    if not isinstance(x, str) and x is not IMAGE:
        settings = {"background": PEOPLE, **settings}
    with pytest.raises((TypeError, ValueError), match=message):
        eblime.compare(model, x, methods, **settings)

    assert model.asked == 0


@pytest.mark.parametrize("name", SYSTEMS_OF_ROWS)
def test_systems_explain_the_same_output_if_classes_have_the_numbers_of_other_columns(name):
    """Column 0 has the label "1", and column 1 the label "0"; a list of rows is a background."""
    x = [1.2, 0.2, 1.0, -1.0, 0.0]
    explainer = eblime.TabularExplainer(slopes, PEOPLE[:80].tolist(), labels=["1", "0"], n_masks=80)
    found = eblime.compare(slopes, x, ["lime", name], explainer=explainer, target="1")

    assert found[name].target == 0
    assert np.argmax(np.abs(found[name].posterior.mean)) == 0


def test_an_explainer_is_not_a_model_and_a_frame_is_not_an_image():
    """The messages say what to pass instead."""
    rows = np.random.default_rng(0).random((20, 3))
    explainer = eblime.TabularExplainer(lambda table: table[:, 0], rows)
    with pytest.raises(TypeError, match=r"Pass it as compare\(None, x, explainer="):
        eblime.compare(explainer, rows[0])
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="`background` must be given"):
        eblime.compare(lambda table: table["a"], pd.DataFrame({"a": [1.0], "b": [2.0]}))


GRID = ("grid", {"rows": 4, "columns": 4})


def test_choices_vary_one_at_a_time():
    """Two lists: the first of both, and one explanation for each other choice."""
    model = Counter(pixels_score)
    settings = {"hide": [0.0, "mean", (0.5,)], "design": ["orthogonal", "bernoulli"], "n_masks": 60}
    found = eblime.compare(model, IMAGE, segmentation=GRID, **settings)
    alone = eblime.ImageExplainer(pixels_score, GRID, "mean", n_masks=60).explain(IMAGE)
    rows = found.sensitivity(top=3)

    assert found.methods[0] == "hide=0.0, design=orthogonal"
    assert found.methods[1:] == ("hide=mean", "hide=(0.5,)", "design=bernoulli")
    assert_allclose(found["hide=mean"].posterior.mean, alone.posterior.mean)
    assert found.total_calls == model.asked == sum(found.model_calls.values())
    assert rows["setting"].tolist() == ["seed", "hide", "hide", "design"]
    assert rows["choice"].tolist()[1:] == ["mean", "(0.5,)", "bernoulli"]
    assert found.notes()[0].startswith("hide matters most here")


def test_choices_in_other_segments_are_compared_by_pixel():
    """Weighted by area, which is the same as repeating each pixel."""
    from scipy.stats import kendalltau

    cuts = [GRID, ("grid", {"rows": 3, "columns": 2})]
    found = eblime.compare(pixels_score, IMAGE, segmentation=cuts, hide=0.0, n_masks=80)
    first, second = found.explanations.values()
    pixels = [e.heatmap() / np.bincount(e.segments.ravel())[e.segments] for e in (first, second)]
    row = found.agreement(top=2).iloc[0]
    tau = kendalltau(*(np.abs(one).ravel() for one in pixels)).statistic
    low, high = ([e.posterior.interval()[:, k] for e in (first, second)] for k in (0, 1))
    apart = 0
    for i, j in zip(first.segments.ravel(), second.segments.ravel(), strict=True):
        areas = (first.segments == i).sum(), (second.segments == j).sum()
        m = [
            e.posterior.mean[k] / a for e, k, a in zip((first, second), (i, j), areas, strict=True)
        ]
        ends = [(low[n][k] / areas[n], high[n][k] / areas[n]) for n, k in enumerate((i, j))]
        down = np.hypot(m[0] - ends[0][0], ends[1][1] - m[1])
        up = np.hypot(ends[0][1] - m[0], m[1] - ends[1][0])
        apart += m[0] - m[1] > down or m[1] - m[0] > up

    assert found.unit == "pixel"
    assert row["kendall"] == pytest.approx(tau)
    assert row["changed"] == pytest.approx(apart / IMAGE.size)
    with pytest.raises(ValueError, match=r"use `pictures\(\)`"):
        found.plot()
    assert len(found.pictures(top=2).axes) >= 2
    assert "per pixel" in str(found)


def test_frequency_bands_are_compared_by_name():
    """The same bands are the same features, whatever they show when hidden."""
    explainer = eblime.SignalExplainer(lambda batch: (batch**2).mean(axis=1), "bands", n_masks=60)
    asked = {"model": explainer.model, "x": np.sin(np.arange(60.0)), "explainer": explainer}
    cuts = [("bands", {"edges": [edge]}) for edge in (0.2, 0.25)]

    assert eblime.compare(**asked, hide=["zero", "noise"]).unit == "feature"
    assert eblime.compare(**asked, segmentation=cuts).unit is None
    assert eblime.compare(**asked, segmentation=["windows", "bands"]).unit is None


def test_bands_do_not_keep_other_choices_from_being_compared():
    """Windows are compared with windows and with cells, though bands have no place in time."""
    explainer = eblime.SignalExplainer(lambda batch: batch[:, 0, :10].sum(axis=1), n_masks=60)
    asked = {"x": np.sin(np.arange(120.0)).reshape(2, 60), "explainer": explainer}
    asked["hide"] = ["zero", "mean"]
    cuts = ["windows", "bands", ("bands", {"n": 4}), ("bands", {"edges": [0.125, 0.25, 0.375]})]
    found = eblime.compare(None, **asked, segmentation=cuts)
    alone = eblime.compare(None, **asked).sensitivity()
    rows = found.sensitivity()

    assert np.array_equal(rows["kendall"][:2], alone["kendall"])
    assert np.isnan(rows["kendall"][2:]).all()
    assert found.agreement()["kendall"].iloc[-1] > 0.99  # the same four bands
    assert "Not compared" in str(found)
    assert "segmentation=bands" in str(found)
    assert "Note: hide" in str(found)

    wider = eblime.compare(None, **asked, segmentation=[*cuts[:2], "cells"])
    per_sample = eblime.compare(None, **asked, segmentation=["windows", "cells"])
    assert wider.unit is None
    assert per_sample.unit == "sample"
    ours, theirs = wider.sensitivity(), per_sample.sensitivity()
    assert np.array_equal(ours["kendall"][[0, 1, 3]], theirs["kendall"])
    with pytest.raises(ValueError, match=r"use `pictures\(\)`"):
        wider.plot()


def test_pictures_of_signals_are_one_below_the_other():
    """They have no `top`: all windows are drawn. The page has them, too."""
    explainer = eblime.SignalExplainer(lambda batch: batch[:, :10].sum(axis=1), n_masks=60)
    signal = np.sin(np.arange(60.0))
    found = eblime.compare(explainer.model, signal, explainer=explainer, hide=["zero", "mean"])
    first, second = (panel.get_position() for panel in found.pictures(top=2).axes[:2])

    assert first.x0 == second.x0
    assert first.y0 > second.y1
    assert "<img" in found.to_html()


def test_another_seed_agrees_as_foreseen():
    """Taus of eight other seeds lie where the posterior of the first expects them."""

    def curved(texts):
        return [
            0.1 * len(t) / 60 + 0.5 * ("good" in t) * ("film" in t) - 0.2 * ("not" in t)
            for t in texts
        ]

    found = eblime.compare(curved, TEXT, hide=["", "[MASK]"], n_masks=100)
    seeds = found._other_seeds(5)[:, 0]
    first, *others = (
        eblime.TextExplainer(curved, n_masks=100).explain(TEXT, rng=k).posterior.mean
        for k in range(9)
    )
    real = [kendall(first, other) for other in others]

    assert np.quantile(seeds, 0.005) <= np.median(real) <= np.quantile(seeds, 0.995)


def test_choices_of_texts_rows_and_prompts():
    """Tokens by characters, rows by columns, sources by name; pages and JSON of all of them."""
    import json

    texts = eblime.compare(mood, TEXT, tokens=["word", "sentence"], n_masks=50)
    rows = eblime.compare(
        rows_score, PEOPLE[0], background=PEOPLE, rows_per_mask=[5, 10], n_masks=80
    )
    prompts = eblime.compare(
        mood,
        "why?",
        sources=["a good film", "not long", "new"],
        prompt=["{sources} {question}", "{question}\n{sources}"],
    )

    assert (texts.unit, rows.unit, prompts.unit) == ("character", "feature", "feature")
    for found in (texts, rows, prompts):
        assert "How far the explanation depends" in found.to_html()
        assert "another seed" in found._repr_html_()
        assert len(json.loads(found.to_json())["rows"]) == 2
        assert found.to_frame().columns[1] == "choice"


def test_bad_choices_are_refused_before_any_model_call():
    """Unknown settings and choices, doubles, and a colour for a grey image."""
    model = Counter(pixels_score)
    for settings, message in (
        ({"hide": []}, "`hide` must not be an empty list"),
        ({"hide": [0.0, "men"]}, "`hide` must be one of 'auto', 'mean', 'blur'"),
        ({"hide": [0.0, 0.0]}, "must differ; '0.0' is there twice"),
        ({"hide": [0.0, (1, 2, 3)]}, "one for each of the 1 channels"),
        ({"hiding": ["mean"]}, "unexpected keyword argument .hiding."),
        ({"methods": ["s-lime", "lime"], "hide": [0.0, "mean"]}, "must begin with a method"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            eblime.compare(model, IMAGE, **{"segmentation": GRID, **settings})

    assert model.asked == 0


def test_progress_counts_all_calls_before_they_are_made():
    """The first report has the total of all explanations."""
    seen = []
    explainer = eblime.TextExplainer(mood, n_masks=40, progress=lambda *n: seen.append(n))
    eblime.compare(None, TEXT, explainer=explainer, hide={"gone": "", "masked": "[MASK]"})

    assert seen[0] == (0, 80)
    assert seen[-1] == (80, 80)


def test_a_choice_matters_if_only_the_ranking_changes():
    """All features are among the top, so that the overlap says nothing."""
    texts = "one two three four"
    sizes = dict(zip(texts.split(), (4, 3, 2, 1), strict=True))
    one = lambda texts: [sum(v for k, v in sizes.items() if k in t) for t in texts]  # noqa: E731
    other = lambda texts: [sum(5 - v for k, v in sizes.items() if k in t) for t in texts]  # noqa: E731
    found = {
        name: eblime.TextExplainer(model).explain(texts)
        for name, model in (("one", one), ("model=other", other))
    }
    compared = eblime.results.Comparison(explanations=found, settings={"model=other": "model"})
    row = compared.sensitivity(top=4).iloc[1]

    assert row["top_jaccard"] == 1
    assert row["matters"]
