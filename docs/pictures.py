"""Draw the pictures of the README and of the documentation into docs/images.

python docs/pictures.py          (all; needs the extras demo and sklearn)
python docs/pictures.py signal   (one or more of them, by the name of its function)
"""

from __future__ import annotations

import io
import itertools
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from PIL import Image

import eblime

IMAGES = Path(__file__).parent / "images"
GREEN, ORANGE = "#009e73", "#d55e00"


def photo() -> None:
    """The photo of the front page."""
    from eblime.datasets import coffee, efficientnet_lite0

    explainer = eblime.ImageExplainer(efficientnet_lite0(), n_masks=100)
    explanation = explainer.explain(coffee())
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, width_ratios=[2, 1])
    for ax, kind in zip(panels, ("map", "intervals"), strict=True):
        explanation.plot(kind, top=5, ax=ax)
    save(figure, "front-photo", colours=256)


def row() -> None:
    """The row of the front page."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    cells = load_breast_cancer(as_frame=True)
    forest = RandomForestClassifier(random_state=0)
    forest.fit(cells.data, cells.target_names[cells.target])
    explainer = eblime.TabularExplainer(forest, cells.data, n_masks=100)
    explanation = explainer.explain(cells.data.iloc[0])
    print(explanation)
    save(explanation.plot("means", top=8).figure, "front-row")
    four = [explanation, explanation.more(300)]
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for ax, e in zip(figure.subplots(1, 2, sharex=True), four, strict=True):
        e.plot("intervals", top=4, ax=ax)
        ax.set_title(f"{len(e.masks)} masks", loc="left", fontsize=11)
        ax.set_xlabel("importance for malignant")
        ax.set_xlim(left=0)
    save(figure, "more-masks")


def text() -> None:
    """The text of the front page."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    films = [
        "a witty film",
        "good music",
        "never boring",
        "a dull film",
        "bad music",
        "never witty",
    ]
    labels = ["praise"] * 3 + ["blame"] * 3
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10)).fit(films, labels)
    review = "A witty film: good music, a good cast, and hardly ever boring, "
    review += "although the end is a bit dull."
    explanation = eblime.TextExplainer(model, n_masks=200).explain(review, "praise")
    print(explanation)
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[1, 4])
    explanation.plot("text", ax=above)
    explanation.plot("intervals", top=8, ax=below)
    below.set_title("", loc="left")  # the plot above has it
    save(figure, "front-text")


def interval() -> None:
    """What an interval means: repeated explanations of one biopsy, and the true importance."""
    score, p = biopsy()
    every = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
    truth = np.linalg.lstsq(np.column_stack([np.ones(2**p), every]), score(every), rcond=None)[0][1]
    figure = Figure(figsize=(9.5, 4.4), layout="constrained")
    for ax, n in zip(figure.subplots(1, 2, sharex=True, sharey=True), (50, 400), strict=True):
        held = repeated(ax, score, p, n, truth)
        ax.set_title(f"{n} masks: {held} of 20 intervals contain the true value", fontsize=10)
    figure.supxlabel("importance of 'concave points'")
    save(figure, "interval")


def model() -> None:
    """The posterior of lambda, and what a scale for each feature changes."""
    rng = np.random.default_rng(1)
    truth = np.concatenate([[1.0, -0.7, 0.25, 0.1, -0.1, 0.0], rng.normal(0, 0.05, 24)])
    masks = rng.integers(0, 2, size=(100, 30)).astype(float)
    scores = masks @ truth + rng.normal(0, 0.6, 100)
    common = eblime.fit(masks, scores, method="eblime-ridge")
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    x = np.linspace(-5, 9, 400)
    density = np.gradient(common.lam.cdf(np.exp(x)), x)
    left.axvspan(x[0], 0, color="0.9")
    left.text(-4.8, 0.93 * density.max(), "the paper's\ngrid, (0, 1]", va="top", fontsize=9)
    left.plot(x, density, color="black")
    left.set_xlabel("log λ")
    left.set_title("posterior of log λ", fontsize=10, loc="left")
    left.set_yticks([])
    local, places = eblime.fit(masks, scores), np.arange(6)
    for post, name, colour, gap in (
        (common, "one scale", ORANGE, -0.16),
        (local, "a scale for each feature", GREEN, 0.16),
    ):
        low, high = post.interval(0.95)[:6].T
        right.vlines(places + gap, low, high, color=colour, lw=4, label=name)
        right.plot(places + gap, post.mean[:6], "o", color="white", mec=colour, ms=5)
    right.hlines(truth[:6], places - 0.35, places + 0.35, color="black", lw=1.5, label="true value")
    right.set_xticks(places, [f"β{j + 1}" for j in places])
    right.set_title("95 % intervals, 100 masks, 30 features", fontsize=10, loc="left")
    right.legend(fontsize=9, frameon=False)
    save(figure, "model")


def quadrature() -> None:
    """EBLIME and Quadrature on the same hundred answers, next to the exact values."""
    score, p = biopsy()
    kernel = eblime.kernels.ExponentialKernel()
    every = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
    exact = eblime.fit(every, score(every), weights=kernel(every), method="quadrature").mean
    half = np.random.default_rng(0).integers(0, 2, size=(50, p))
    masks = np.stack([half, 1 - half], axis=1).reshape(-1, p)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    ax, places = figure.subplots(), np.arange(p)
    ax.axhline(0, color="black", lw=1)
    for method, name, colour, gap in (
        ("eblime", "EBLIME", ORANGE, -0.14),
        ("quadrature", "Quadrature", GREEN, 0.14),
    ):
        post = eblime.fit(masks, score(masks), weights=kernel(masks), method=method)
        low, high = (post.interval(0.95) - exact[:, None]).T
        ax.vlines(places + gap, low, high, color=colour, lw=4, label=name)
        ax.plot(places + gap, post.mean - exact, "o", color="white", mec=colour, ms=5)
    ax.set_xticks(places, [str(j + 1) for j in places])
    ax.set_xlabel("feature")
    ax.set_ylabel("importance minus exact value")
    ax.set_title("95 % intervals from the same 100 masks in pairs", fontsize=10, loc="left")
    ax.legend(fontsize=9, frameon=False, ncols=2)
    save(figure, "quadrature")


def family() -> None:
    """How well repeated runs agree, from the table of the page, which a study writes."""
    page = (IMAGES.parent / "measurements" / "comparisons.md").read_text(encoding="utf8")
    table = page.split("<!-- table of studies/family.py -->")[1].split("<!-- end")[0]
    rows = [line.strip("|").split("|") for line in table.strip().splitlines()[2:]]
    rows.sort(key=lambda row: float(row[1]))
    figure = Figure(figsize=(8, 4), layout="constrained")
    ax = figure.subplots()
    for place, row in enumerate(rows):
        overlap, calls = float(row[1]), int(row[6])
        ax.hlines(place, 0, overlap, color="0.85", lw=2)
        ax.plot(overlap, place, "o", color=GREEN, ms=8)
        ax.annotate(f"{calls:,} calls", (overlap + 0.02, place), va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), [row[0].strip() for row in rows])
    ax.set_xlim(0, 1.15)
    ax.set_xlabel("overlap of the three most important features of two runs")
    save(figure, "family")


def detection() -> None:
    """The curve of detection in the guide to measures."""
    rng = np.random.default_rng(0)
    sizes = np.repeat(np.geomspace(0.5, 4, 10), 20)
    hits = rng.random(200) < sizes**4 / (sizes**4 + 1.5**4)
    ax = eblime.measures.probability_of_detection(sizes, hits).plot()
    ax.set_xlabel("size in mm")
    save(ax.figure, "detection")


def methods() -> None:
    """Four methods on the same answers, and the error of some methods and designs."""
    from eblime.games import PLAYERS, stored_game

    names, table = wine()
    game, p = stored_game(table), 13

    def explain(method: str, design: str, n: int, seed: int = 0) -> Any:
        explainer = eblime.Explainer(game, PLAYERS, method=method, design=design, n_masks=n)
        return explainer.explain(game, rng=seed)

    figure = Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
    first = explain("quadrature", "orthogonal", 64)
    kinds = {"EBLIME": "eblime", "Quadrature": None, "BayesLIME": "bayeslime", "LIME": "lime"}
    found = {k: first if v is None else first.refit(v) for k, v in kinds.items()}
    eblime.results.Comparison(explanations=found).plot(top=5, ax=left)
    places = [int(label.get_text().split()[-1]) for label in left.get_yticklabels()]
    left.set_yticklabels([names[place].partition("/")[0] for place in places])
    left.set_title("four methods, the same 64 answers", loc="left", fontsize=10)
    truth = explain("quadrature", "exhaustive", 2**p).posterior.mean
    at = left.get_yticks()
    left.vlines(truth[places], at - 0.45, at + 0.45, color="black", lw=1, label="all masks")
    left.legend(frameon=False, loc="lower right")
    numbers = [50, 100, 200, 400]
    for method, design, colour in (
        ("lime", "bernoulli", "grey"),
        ("eblime", "bernoulli", "#0072b2"),
        ("eblime", "orthogonal", ORANGE),
        ("quadrature", "adaptive", GREEN),
    ):
        missed = [
            [explain(method, design, n, seed).posterior.mean - truth for seed in range(20)]
            for n in numbers
        ]
        errors = [np.sqrt(np.mean(np.square(each))) for each in missed]
        right.loglog(numbers, errors, "o-", color=colour, label=f"{method}, {design}")
    right.set_xticks(numbers, numbers)
    right.minorticks_off()
    right.set_xlabel("masks")
    right.set_title("root mean square error", loc="left", fontsize=10)
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    save(figure, "methods")


def wine() -> tuple[list[str], Any]:
    """A forest's probability that a wine is of the first kind, for all masks of its columns."""
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    data = load_wine()
    forest = RandomForestClassifier(100, random_state=0).fit(data.data, data.target)
    typical = np.median(data.data[data.target != 0], axis=0)
    every = (np.arange(2**13)[:, None] >> np.arange(13)) & 1
    scores = forest.predict_proba(np.where(every == 1, data.data[3], typical))[:, 0]
    return list(data.feature_names), scores


def compare() -> None:
    """Two models of one biopsy, and their difference, as in the guide to comparisons."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    cells = load_breast_cancer(as_frame=True)
    table = cells.data.iloc[:, :10]
    table.columns = [name.removeprefix("mean ") for name in table]
    models: dict[str, Any] = {
        "forest": RandomForestClassifier(random_state=0),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    found = {}
    for name, model in models.items():
        model.fit(table, cells.target_names[cells.target])
        explainer = eblime.TabularExplainer(model, table, n_masks=400)
        found[name] = explainer.explain(table.iloc[0], "malignant")
    figure = Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    eblime.results.Comparison(explanations=found).plot(top=8, ax=left)
    left.set_title("each model", loc="left", fontsize=10)
    left.legend(frameon=False, loc="upper left", fontsize=9)
    one, other = (each.answers for each in found.values())
    gap = eblime.fit(one.masks, one.scores - other.scores, one.weights)
    features = list(found["forest"].features)
    at = left.get_yticks()
    shown = [features.index(label.get_text()) for label in left.get_yticklabels()]
    low, high = gap.interval()[shown].T
    colours = np.where((low > 0) | (high < 0), ORANGE, "grey")
    right.hlines(at, low, high, color=colours, lw=2.5)
    right.scatter(gap.mean[shown], at, color=colours, zorder=3)
    right.axvline(0, color="black", lw=0.8)
    right.set_title("forest minus logistic regression", loc="left", fontsize=10)
    right.set_xlabel("difference (bars: 95 %)")
    right.spines[["top", "right"]].set_visible(False)
    save(figure, "compare")


def shapley() -> None:
    """Three indices of a wine from the same answers, and its interactions."""
    _, _, e = wine_values(50)
    names = {"LIME": "lime", "Banzhaf": "banzhaf", "Shapley": "shapley"}
    found = {k: e.refit(eblime.Quadrature(index=v)) for k, v in names.items()}
    figure = Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    eblime.results.Comparison(explanations=found).plot(top=6, ax=left)
    left.set_title("three indices, 40 masks", loc="left", fontsize=10)
    left.legend(frameon=False, loc="lower right")
    e = e.more(160)
    e.interactions("shapley").plot(top=5, ax=right)
    right.set_title("interactions, 200 masks", loc="left", fontsize=10)
    figure.axes[-1].set_ylabel("interaction")
    save(figure, "shapley")


def own_masks() -> None:
    """The biopsy of the guide to fitting masks, with more and more of them."""
    from sklearn.datasets import load_breast_cancer

    score, p = biopsy()
    columns = [name.removeprefix("mean ") for name in load_breast_cancer().feature_names[:p]]
    names = [columns[7], *(name for name in columns if name != columns[7])]  # as in `biopsy`
    figure = Figure(figsize=(7.5, 4), layout="constrained")
    ax, rng, order = figure.subplots(), np.random.default_rng(1), np.arange(p)
    for k, (n, colour) in enumerate(((10_000, GREEN), (1_000, "#0072b2"), (100, ORANGE))):
        masks = rng.integers(0, 2, size=(n, p))
        weights = np.exp((masks.sum(axis=1) - p) / (2 * 0.75**2 * p))
        post = eblime.fit(masks, score(masks), weights)
        order = np.argsort(post.mean) if k == 0 else order
        low, high = post.interval()[order].T
        at = np.arange(p) + 0.25 * (k - 1)
        ax.hlines(at, low, high, color=colour, lw=2.5)
        ax.plot(post.mean[order], at, "o", color=colour, ms=4, label=f"{n:,} masks")
    ax.set_yticks(np.arange(p), [names[j] for j in order])
    ax.axvline(0, color="black", lw=0.8)
    ax.set_xlabel("importance (bars: 95 %)")
    ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
    save(figure, "own-masks")


def from_lime() -> None:
    """The figure of lime's replacement, as in the guide for users of lime."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    from eblime.compat.lime.lime_tabular import LimeTabularExplainer

    cells = load_breast_cancer(as_frame=True)
    table = cells.data.iloc[:, :10]
    rows = table.to_numpy()
    forest = RandomForestClassifier(100, random_state=0).fit(rows, cells.target)
    explainer = LimeTabularExplainer(
        rows,
        feature_names=list(table.columns),
        class_names=cells.target_names,
        random_state=0,
    )
    exp = explainer.explain_instance(
        rows[0], forest.predict_proba, labels=(0,), num_features=8, num_samples=1000
    )
    figure = exp.as_pyplot_figure(0)
    figure.set_size_inches(7.5, 3.8)
    save(figure, "from-lime")


def from_shap() -> None:
    """Shapley values and LIME's importances of one wine, as in the guide for users of shap."""
    forest, table, values = wine_values(100)
    lime = eblime.TabularExplainer(forest, table, n_masks=400).explain(table.iloc[3], target=0)
    figure = Figure(figsize=(8.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, e, title in ((left, values, "Shapley values"), (right, lime, "LIME's importances")):
        e.plot("intervals", top=6, ax=ax)
        ax.set_title(title, loc="left", fontsize=10)
    save(figure, "from-shap")


def wine_values(trees: int) -> tuple[Any, Any, eblime.Explanation]:
    """A forest of so many trees, its table, and Shapley values of one wine."""
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    data = load_wine(as_frame=True)
    table = data.data.rename(columns=lambda name: name.partition("/")[0].replace("_", " "))
    forest = RandomForestClassifier(trees, random_state=0).fit(table, data.target)
    explainer = eblime.TabularExplainer(
        forest,
        table[::5],
        method=eblime.Quadrature(index="shapley"),
        n_masks=40,
    )
    return forest, table, explainer.explain(table.iloc[3], target=0)


def repeated(ax: Any, score: Any, p: int, n: int, truth: float) -> int:
    """Draw the intervals of twenty explanations; returns how many contain the truth."""
    held = 0
    for seed in range(20):
        masks = np.random.default_rng(seed).integers(0, 2, size=(n, p))
        post = eblime.fit(masks, score(masks))
        low, high = post.interval(0.95)[0]
        inside = bool(low <= truth <= high)
        held += inside
        colour = GREEN if inside else ORANGE
        ax.plot([low, high], [seed, seed], color=colour, lw=3, solid_capstyle="butt")
        ax.plot(post.mean[0], seed, "o", color=colour, ms=4, mec="white", mew=0.5)
    ax.plot([truth, truth], [-1, 20], color="black", lw=1)
    ax.annotate("the value that all\n1,024 masks give", (truth, 20.3), ha="center", fontsize=8)
    ax.set_ylim(-1, 22.5)
    ax.set_yticks([0, 19], ["run 1", "run 20"])
    ax.spines[["top", "right"]].set_visible(False)
    return held


def biopsy() -> tuple[Any, int]:
    """The forest and the biopsy of the tutorial, as a function of masks of ten measurements."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    data = load_breast_cancer()
    forest = RandomForestClassifier(200, random_state=0).fit(data.data[100:], data.target[100:])
    typical = np.median(data.data[data.target == 1], axis=0)
    order = [7, *(j for j in range(10) if j != 7)]  # concave points first
    columns = [j + 10 * part for j in order for part in range(3)]

    def score(masks: Any) -> Any:
        rows = np.tile(typical, (len(masks), 1))
        shown = np.repeat(masks, 3, axis=1) == 1
        rows[:, columns] = np.where(shown, data.data[2][columns], typical[columns])
        return forest.predict_proba(rows)[:, 0]

    return score, 10


def table() -> None:
    """A row of wine, as in the how-to about tables."""
    from sklearn.compose import make_column_transformer
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    wine = load_wine(as_frame=True)
    rows = wine.data[["alcohol", "malic_acid", "color_intensity", "proline"]]
    rows = rows.assign(shade=np.where(wine.data["hue"] > 1, "bright", "dark"))
    encode = make_column_transformer((OneHotEncoder(), ["shade"]), remainder="passthrough")
    pipeline = make_pipeline(encode, RandomForestClassifier(random_state=0))
    pipeline.fit(rows, wine.target_names[wine.target])
    explanation = eblime.TabularExplainer(pipeline, rows).explain(rows.iloc[3])
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    explanation.plot("means", ax=figure.subplots())
    save(figure, "tables")


def reasons() -> None:
    """The waterfall of a loan: what the code of the how-to about reasons draws."""
    page = (IMAGES.parent / "how-to" / "reasons.md").read_text(encoding="utf8")
    scope: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, scope)
    save(scope["axes"].figure, "reasons")


def images() -> None:
    """One photo, cut and hidden in three ways, as in the how-to about images."""
    from eblime.datasets import coffee, efficientnet_lite0

    network, photo = efficientnet_lite0(), coffee()
    choices: dict[str, dict[str, Any]] = {
        "the default": {},
        'segmentation="felzenszwalb"': {"segmentation": "felzenszwalb"},
        "hide=0": {"hide": 0},
    }
    figure = Figure(figsize=(9, 3.3), layout="constrained")
    for ax, (title, settings) in zip(figure.subplots(1, 3), choices.items(), strict=True):
        explainer = eblime.ImageExplainer(network, n_masks=400, **settings)
        explanation = explainer.explain(photo, "espresso")
        print(explanation)
        explanation.plot("map", original=False, ax=ax)
        r2 = explanation.posterior.r2_held_out
        ax.set_title(f"{title}\nheld-out R² {r2:.2f}", loc="left", fontsize=10)
    save(figure, "images", colours=256)


def words() -> None:
    """A review by words, as in the how-to about texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    praise = ["a witty film", "gorgeous and witty", "a good story", "good music and a good cast"]
    blame = ["a dull film", "boring and dull", "a bad story", "bad music and a bad cast"]
    texts = [*praise, "never boring", *blame, "never witty"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    model.fit(texts, ["praise"] * 5 + ["blame"] * 5)
    review = "A good film with good music and a witty cast. The end is dull, but never mind."
    explanation = eblime.TextExplainer(model).explain(review, "praise")
    save(explanation.plot("text", columns=50).figure, "text")


def box() -> None:
    """A box of a simple detector of coins, as in the how-to about images."""
    from scipy import ndimage
    from skimage import data

    import eblime

    def detect(images: Any) -> Any:
        found = []
        for image in images:
            objects = ndimage.find_objects(ndimage.label(image > 130)[0])
            large = [(r, c) for r, c in objects if r.stop - r.start > 15]
            corners = [(c.start, r.start, c.stop, r.stop) for r, c in large]
            scores = [image[r, c].mean() / 255 for r, c in large]
            found.append({"boxes": corners, "scores": scores, "labels": [1 for _ in large]})
        return found

    explainer = eblime.ImageExplainer(detect, hide=60, labels={1: "coin"}, progress=False)
    coins = data.coins()[160:240, 90:250]
    e = explainer.explain(coins, target=eblime.scores.Box("coin"))
    print(e)
    save(e.plot("map").figure, "box")


def signal() -> None:
    """The knock of the how-to about signals: its time and channel, and its frequencies."""
    rng = np.random.default_rng(0)
    time = np.arange(1000) / 500
    pump = np.stack([np.sin(2 * np.pi * 20 * time), np.cos(2 * np.pi * 20 * time)])
    pump += 0.1 * rng.normal(size=(2, 1000))
    pump[1, 600:660] += 2 * np.sin(2 * np.pi * 90 * time[:60])

    def knocks(batch: Any) -> Any:
        return np.abs(np.diff(batch[:, 1], axis=1)).max(axis=1)

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    cuts = (("cells", {"n": 10}), ("bands", {"n": 8}))
    for ax, cut in zip(figure.subplots(2, 1), cuts, strict=True):
        explainer = eblime.SignalExplainer(knocks, cut, rate=500, channels=["x", "y"])
        explainer.explain(pump).plot("signal", ax=ax)
    save(figure, "signal", colours=256)
    tiles = ("tiles", {"windows": 10, "bands": 4})
    explainer = eblime.SignalExplainer(knocks, tiles, rate=500, n_masks=512)
    save(explainer.explain(pump).plot("signal").figure, "signal-tiles", colours=256)


def signal_peers() -> None:
    """How far the orders of windows are better than those of LEFTIST and KernelSHAP."""
    import pandas as pd

    rows = pd.read_csv(IMAGES.parent / "results" / "signals-real.csv")
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    names = [*dict.fromkeys(rows["dataset"])][::-1]
    for ax, measure in zip(axes, ("deletion", "insertion"), strict=True):
        ax.axvline(0, color="black", lw=1)
        for other, colour, shift in (("LEFTIST", GREEN, 0.15), ("KernelSHAP, shap", ORANGE, -0.15)):
            part = rows[(rows["measure"] == measure) & (rows["other"] == other)]
            places = [names.index(name) + shift for name in part["dataset"]]
            ends = np.abs(part[["low", "high"]].to_numpy().T - part["gap"].to_numpy())
            ax.errorbar(part["gap"], places, xerr=ends, fmt="o", ms=4, color=colour, label=other)
        ax.set_title(measure, loc="left", fontsize=10)
        ax.set_xlabel("eblime minus the other (left: eblime is better)", fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), names, fontsize=8)
    axes[0].legend(fontsize=8, frameon=False)
    save(figure, "signal-peers")


def volume() -> None:
    """The pores of the how-to about volumes."""
    rng = np.random.default_rng(0)
    scan = rng.normal(size=(32, 48, 64)).astype(np.float32)
    scan[9:15, 26:34, 34:44] += 4
    scan[18:23, 3:9, 4:10] += 4

    def pores(batch: Any) -> Any:
        return np.tanh(120 * np.maximum(batch - 3, 0).mean(axis=(1, 2, 3)))

    blocks = ("blocks", {"n": 4})
    explainer = eblime.VolumeExplainer(
        pores, segmentation=blocks, hide=0, spacing=(0.5, 0.25, 0.25), n_masks=300
    )
    save(explainer.explain(scan).plot("projections", top=2).figure, "volume", colours=256)


def prompt() -> None:
    """The toy of the how-to about prompts, which is read from the page."""
    page = (IMAGES.parent / "how-to" / "prompts.md").read_text(encoding="utf8")
    found: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], found)
    figure = Figure(figsize=(7.2, 5.2), layout="constrained")
    above, below = figure.subplots(2, 1)
    found["e"].plot("text", ax=above)
    found["e"].plot("intervals", ax=below)
    below.set_title("", loc="left")  # the plot above has it
    below.set_xlabel("importance")
    save(figure, "prompt")


def masks() -> None:
    """How the intervals narrow with the number of masks, for two real explanations."""
    found = {
        "row": (row_halves(), GREEN),
        "photo": (photo_halves(), ORANGE),
    }
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    ax = figure.subplots()
    for name, (halves, colour) in found.items():
        counts, shares = np.array([*halves]), 100 * np.array([*halves.values()])
        ax.loglog(counts, shares, "o-", color=colour, label=name, ms=5)
        print(name, dict(zip(counts.tolist(), shares.round(1).tolist(), strict=True)))
        print(f"  10 % with {10 ** np.interp(-1, -np.log10(shares), np.log10(counts)):.0f} masks")
    ax.loglog([50, 6400], [90, 90 / np.sqrt(128)], ":", color="black", label="1 / √masks")
    ax.axhline(10, color="0.7", lw=1, zorder=0)
    ax.text(6400, 10.4, "10 %", ha="right", color="0.4")
    ax.set_xticks([50, 100, 200, 400, 800, 1600, 3200, 6400])
    ax.set_yticks([2, 5, 10, 20, 50, 100])
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.set_minor_locator(NullLocator())
    ax.set_xlabel("number of masks")
    ax.set_ylabel("half-width, % of the largest importance")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    save(figure, "masks")


def row_halves() -> dict[int, float]:
    """Half-widths for the row of the front page: by masks, mean of three seeds."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    cells = load_breast_cancer(as_frame=True)
    forest = RandomForestClassifier(random_state=0).fit(cells.data, cells.target)
    explainer = eblime.TabularExplainer(forest, cells.data)
    return {
        n: np.mean(
            [half(explainer.explain(cells.data.iloc[0], rng=s, n_masks=n)) for s in range(3)]
        )
        for n in (50, 100, 200, 400, 800, 1600)
    }


def photo_halves() -> dict[int, float]:
    """Half-widths for the photo of the front page: by masks, one seed."""
    from eblime.datasets import coffee, efficientnet_lite0

    explainer = eblime.ImageExplainer(efficientnet_lite0())
    counts = (50, 100, 200, 400, 800)
    return {n: half(explainer.explain(coffee(), n_masks=n)) for n in counts}


def half(explanation: Any) -> float:
    """Mean half-width of the five leading features, as a part of the largest importance."""
    post = explanation.posterior
    low, high = post.interval()[post.order()[:5]].T
    return float(np.mean(high - low) / 2 / np.abs(post.mean).max())


def models() -> None:
    """What a model receives and what it returns."""
    from eblime.datasets import class_names, coffee, efficientnet_lite0

    network, seen = efficientnet_lite0(), []

    def model(batch: Any) -> Any:
        seen.extend(batch.copy())
        return network(batch)

    calls = eblime.Calls(batch_size=8)
    eblime.ImageExplainer(model, hide=127, n_masks=40, calls=calls).explain(coffee())
    shown, names = np.array(seen[2:6]), class_names()
    scores = network(shown)
    best = np.argsort(-scores.sum(axis=0))[:3]
    figure = Figure(figsize=(7.4, 3.1))
    for image, place in zip(
        shown, [(0.03, 0.4), (0.165, 0.4), (0.03, 0.07), (0.165, 0.07)], strict=True
    ):
        ax = figure.add_axes((*place, 0.13, 0.31))
        ax.imshow(image[::3, ::3])
        ax.set_axis_off()
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    box = {"boxstyle": "round,pad=0.9", "facecolor": "#e6f2f8", "edgecolor": "#0072b2"}
    ax.text(0.44, 0.4, "your model", ha="center", va="center", weight="bold", bbox=box)
    for begin, end in ((0.305, 0.355), (0.525, 0.575)):
        ax.annotate("", (end, 0.4), (begin, 0.4), arrowprops={"arrowstyle": "-|>", "lw": 1.5})
    for x, title, shape in (
        (0.165, "a batch of n inputs", "(n, H, W, C) for photos"),
        (0.79, "scores", "(n, outputs)"),
    ):
        ax.text(x, 0.88, title, ha="center", weight="bold")
        ax.text(x, 0.79, shape, ha="center", fontsize=9)
    lines = [[names[c] for c in best], *([f"{v:.2f}" for v in line] for line in scores[:, best])]
    for number, line in enumerate(lines):
        for column, word in enumerate(line):
            place = (0.645 + 0.145 * column, 0.66 - 0.125 * number)
            ax.text(*place, word, ha="center", va="center", style="normal" if number else "italic")
    save(figure, "models", colours=256)


def slow_models() -> None:
    """What a stop rule, a cache and several calls at once save."""
    asked: list[str] = []

    def score(texts: Any) -> Any:
        asked.extend(texts)
        words = {"good": 0.5, "dull": -0.4, "nice": 0.25, "songs": 0.1}
        return [sum(v for w, v in words.items() if w in t) ** 2 for t in texts]

    def seconds(concurrency: int) -> float:
        def service(texts: Any) -> Any:
            time.sleep(0.05 * len(texts))
            return score(texts)

        calls = eblime.Calls(concurrency=concurrency, batch_size=4)
        explainer = eblime.TextExplainer(service, n_masks=200, calls=calls)
        return float(explainer.explain(REVIEW).provenance["seconds"])

    with tempfile.TemporaryDirectory() as folder:
        cache = eblime.AnswerCache(f"{folder}/answers.db", model_id="words")
        explainer, counts = eblime.TextExplainer(score, cache=cache), {}
        for name, settings in (
            ("default", {}),
            ("again, with\nthe cache", {}),
            ("until=TopK(2)", {"until": eblime.TopK(2), "cache": None}),
        ):
            asked.clear()
            if "until" in settings:
                explainer = eblime.TextExplainer(score)
            explainer.explain(REVIEW, **settings)
            counts[name] = len(asked)
    figure = Figure(figsize=(7.4, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    bars = left.barh([*counts], [*counts.values()], color="#0072b2", height=0.6)
    left.bar_label(bars, padding=3, fmt="{:,.0f}")
    left.invert_yaxis()
    left.set(title="model calls of one explanation", xlim=(0, 1200), xticks=[0, 500, 1000])
    at_once = [1, 2, 4, 8]
    taken = [seconds(n) for n in at_once]
    bars = right.bar([str(n) for n in at_once], taken, color=ORANGE, width=0.6)
    right.bar_label(bars, padding=2, fmt="{:.1f} s")
    right.set(title="200 calls of 50 ms", xlabel="concurrency", ylim=(0, 1.15 * taken[0]))
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, "slow-models")


REVIEW = "a good film with a dull end and a few nice songs in it for the very young"


def many() -> None:
    """The importances of a run: one point per row, and one column against its values."""
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    wine = load_wine(as_frame=True)
    table = wine.data[["alcohol", "flavanoids", "hue", "proline"]]
    forest = RandomForestClassifier(20, random_state=0).fit(table, wine.target_names[wine.target])
    explainer = eblime.TabularExplainer(forest, table, n_masks=200)
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
    run = explainer.explain_many(table, targets="class_0", progress=False)
    run.plot("beeswarm", ax=left)
    run.plot("dependence", feature="proline", ax=right)
    save(figure, "many")


def plots() -> None:
    """One small panel for each kind of plot, with its name."""
    made = explained()
    kinds = {
        "row": ("intervals", "means", "waterfall", "density", "ranks", "lambda", "convergence"),
        "photo": (
            "width",
            "fit",
            "map",
            *(f'map", of="{of}' for of in ("mean", "uncertainty", "top_k", "sign")),
        ),
        "review": ("text",),
        "pump": ("signal",),
        "scan": ("slices", "projections"),
    }
    pairs = [(name, kind) for name in kinds for kind in kinds[name]]
    figure = Figure(figsize=(7.5, 12), layout="constrained")
    cells = figure.subplots(6, 3).ravel()
    for cell in cells:
        cell.axis("off")
    for cell, (name, kind) in zip(cells, pairs, strict=False):
        cell.imshow(panel(made[name], kind))
        cell.set_title(f'"{kind}"', family="monospace", fontsize=12)
    save(figure, "plots", colours=256)


def command_line() -> None:
    """The page that `eblime explain image` writes, in a browser (needs playwright)."""
    from playwright.sync_api import sync_playwright

    from eblime.datasets import sample_scans, ultrasonic_network

    labels = ["no defect", "with defect"]
    explainer = eblime.ImageExplainer(ultrasonic_network(), n_masks=400, labels=labels)
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 900, "height": 900})
        page.set_content(explainer.explain(sample_scans()[0][2], "with defect").to_html())
        shown = page.screenshot()
        browser.close()
    Image.open(io.BytesIO(shown)).convert("RGB").quantize(128).save(IMAGES / "command-line.png")


def extend() -> None:
    """The parts that an explanation passes through; those that can be replaced are green."""
    figure = Figure(figsize=(7.6, 2.7), layout="constrained")
    ax = figure.subplots()
    ax.set(xlim=(0, 10), ylim=(0, 3.4))
    ax.axis("off")
    above = {"input": 0.8, "domain": 2.9, "design": 5.0, "model": 7.1, "kernel": 9.2}
    below = {"method": 9.2, "posterior": 7.1, "stop rule": 5.0, "explanation": 2.9, "plot": 0.8}
    places = {name: (x, 2.6) for name, x in above.items()}
    places |= {name: (x, 0.7) for name, x in below.items()}
    names = list(places)
    for first, second in itertools.pairwise(names):
        ends = {"shrinkA": 10 + 3.2 * len(first), "shrinkB": 10 + 3.2 * len(second)}
        arrow = {"arrowstyle": "-|>", "color": "grey", **ends}
        if first == "kernel":
            arrow |= {"shrinkA": 13, "shrinkB": 13}
        ax.annotate("", places[second], places[first], arrowprops=arrow)
    given = ("input", "posterior", "explanation")
    for name, (x, y) in places.items():
        colours = {"fc": "#eee", "ec": "grey"} if name in given else {"fc": "#d5efe6", "ec": GREEN}
        box = {"boxstyle": "round,pad=0.4", **colours}
        ax.text(x, y, name, ha="center", va="center", fontsize=11, bbox=box)
    notes = {"domain": "features", "design": "masks", "model": "scores", "kernel": "weights"}
    for name, note in notes.items():
        ax.text(places[name][0], 3.2, note, ha="center", fontsize=9, color="grey")
    arrow = {"arrowstyle": "-|>", "color": "grey", "ls": "--", "shrinkA": 13, "shrinkB": 13}
    ax.annotate("", places["design"], places["stop rule"], arrowprops=arrow)
    ax.text(5.1, 1.65, "next round", fontsize=9, color="grey", va="center")
    save(figure, "extend")


def panel(explanation: Any, kind: str) -> Any:
    """A plot without its title, as pixels."""
    tops = {"density": 2, "convergence": 2, "width": 2, "slices": 1, "projections": 1}
    tops |= dict.fromkeys(("intervals", "means", "waterfall", "ranks"), 4)
    options: dict[str, Any] = {"top": tops[kind]} if kind in tops else {}
    if kind in ("text", "signal"):
        options["ax"] = Figure(figsize=(4, 2), layout="constrained").subplots()
    kind, *of = kind.split('", of="')
    figure = explanation.plot(kind, **options, **({"of": of[0]} if of else {})).figure
    if kind not in ("text", "signal", "slices", "projections"):
        figure.set_size_inches(4, 3.2)
    for ax in figure.axes:
        ax.set_title("", loc="left")
    if kind == "width":
        figure.axes[0].get_legend().remove()
    file = io.BytesIO()
    figure.savefig(file, dpi=100)
    file.seek(0)
    return Image.open(file)


def explained() -> dict[str, Any]:
    """A row, a photo, a text, a signal and a volume, explained."""
    from skimage.data import lfw_subset
    from sklearn.datasets import load_wine
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    wine = load_wine(as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(wine.data, wine.target)
    faces = lfw_subset()  # 100 faces, then 100 other photos
    svm = make_pipeline(PCA(30, random_state=0), SVC(random_state=0))
    svm.fit(faces.reshape(200, -1), [1] * 100 + [0] * 100)
    time, rng = np.arange(600) / 300, np.random.default_rng(0)
    pump = np.sin(2 * np.pi * 3 * time) + 0.1 * rng.normal(size=600)
    pump[320:360] += 2 * np.sin(2 * np.pi * 60 * time[:40])
    scan = rng.normal(size=(16, 24, 32))
    scan[4:8, 6:12, 18:26] += 5.0
    good = {"good": 2.0, "witty": 1.0, "dull": -1.5}
    review = "A witty film with good music, although the end is rather dull."
    return {
        "row": eblime.TabularExplainer(model, wine.data, n_masks=300).explain(wine.data.iloc[0]),
        "photo": eblime.ImageExplainer(
            lambda batch: svm.decision_function(batch.reshape(len(batch), -1)),
            segmentation=("grid", {"rows": 5, "columns": 5}),
            hide=float(faces.mean()),
            n_masks=200,
        ).explain(faces[9]),
        "review": eblime.TextExplainer(
            lambda texts: [sum(v for word, v in good.items() if word in text) for text in texts]
        ).explain(review),
        "pump": eblime.SignalExplainer(
            lambda batch: np.abs(np.diff(batch, axis=1)).max(axis=1), rate=300
        ).explain(pump),
        "scan": eblime.VolumeExplainer(
            lambda batch: np.maximum(batch - 3, 0).mean(axis=(1, 2, 3)),
            segmentation=("blocks", {"n": 4}),
            hide=0,
            n_masks=500,
        ).explain(scan),
    }


def save(figure: Any, name: str, *, colours: int | None = None) -> None:
    """Write a picture; a palette of so many colours makes it smaller."""
    from PIL import Image

    path = IMAGES / f"{name}.png"
    figure.savefig(path, dpi=120, pil_kwargs={"optimize": True})
    if colours is not None:
        with Image.open(path) as picture:
            small = picture.convert("RGB").quantize(colours, method=Image.Quantize.FASTOCTREE)
        small.save(path, optimize=True)


PICTURES = (
    interval,
    row,
    text,
    detection,
    methods,
    compare,
    shapley,
    own_masks,
    from_lime,
    from_shap,
    photo,
    table,
    reasons,
    images,
    words,
    box,
    signal,
    signal_peers,
    volume,
    prompt,
    model,
    quadrature,
    family,
    masks,
    models,
    slow_models,
    many,
    plots,
    command_line,
    extend,
)

if __name__ == "__main__":
    for draw in PICTURES:
        if draw.__name__ in (sys.argv[1:] or draw.__name__):
            draw()
