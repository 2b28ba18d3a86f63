"""Write the pages of results, coverage and faithfulness, with figures, from docs/results.

make results
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from eblime._types import FloatArray
from studies.cases import CASES
from studies.coverage_by_rank import results_table
from studies.faithfulness import HIGHER_IS_BETTER, paired_gaps, standings
from studies.localisation import PAIRS, SETTINGS, counts, mcnemar
from studies.paper import LOCALISED, TABLE_2
from studies.stability import MEASURES
from studies.tables import table

__all__ = ["LEAGUE", "REPEATS", "RESULTS"]

DOCS = Path(__file__).parents[1] / "docs"
RESULTS, IMAGES = DOCS / "results", DOCS / "images"
NAMES = {
    "lime": "LIME",
    "bayeslime": "BayesLIME",
    "eblime-paper": "EBLIME as printed",
    "eblime-ridge": "EBLIME, one ridge parameter",
    "eblime": "EBLIME",
}
PRINTED = ("bayeslime", "eblime-paper")  # the methods of the paper's Table 2
MATCHED = ("bayeslime", "eblime-paper", "eblime-ridge", "eblime")
COUNTED = (100, 200, 400)  # numbers of masks
PHOTOS = ("french-bulldog", "broccoli", "mixed")  # more than one photo
PARTS = {
    "ultrasonic": "simulated ultrasonic scans",
    "tiles": "magnetic tiles",
    "drilled": "real ultrasonic scans of drilled holes",
}
# data set -> settings of the study
LEAGUE: dict[str, dict[str, Any]] = {
    "stored-photos": {"n": 100, "items": 40},
    "photos": {"n": 200, "items": 32, "nearby": 1},
    "rt-polarity": {"n": 100, "items": 100},
    "compas": {"n": 50, "items": 100},
    "german": {"n": 100, "items": 100},
    "tiles": {"n": 200, "items": 60, "nearby": 2},
    "drilled": {"n": 200, "items": 48, "nearby": 2},
}
REPEATS: dict[str, dict[str, Any]] = {
    "stored-photos": {"n": [100], "items": 40},
    "stored-games": {"n": [100], "items": 40},
    "german": {"n": [100, 1000], "items": 20},
    "compas": {"n": [100, 1000], "items": 20},
}
SLASH = "\u00a0/\u00a0"  # cells of several numbers stay on one line
CLOSE = 0.05  # coverages that differ by less are called equal
PEERS = ["lime", "lime-table", "shap", "captum-lime", "captum-shap", "rise"]
OURS = ("eblime", "eblime-table", "quadrature", "quadrature+adaptive")
TITLES = {
    "photos": "Photos, EfficientNet-Lite0",
    "stored-photos": "Photos with 11 to 13 superpixels, EfficientNet-Lite0 (stored answers)",
    "tiles": "Magnetic tiles",
    "drilled": "Drilled holes",
    "german": "German credit, random forest",
    "compas": "COMPAS, random forest",
    "rt-polarity": "Film reviews (rt-polarity), logistic regression",
    "stored-games": "Games of shapiq (stored answers)",
}
COLOURS = {
    "bayeslime": "#D55E00",
    "eblime-paper": "#0072B2",
    "eblime": "#009E73",
    "eblime-ridge": "#56B4E9",
}
# the groups of figure 5: dataset, kind of masks -> what they are
GROUPS = {
    ("french-bulldog", "coarse"): "dogs, at most 13 superpixels, paper's masks",
    ("french-bulldog", "paper"): "dogs, paper's masks",
    ("ultrasonic", "paper"): "scans, paper's masks",
    ("french-bulldog", "library"): "dogs, library's masks",
    ("ultrasonic", "library"): "scans, library's masks",
}
TRUTHS = {
    "exact": "truth: lime's ridge, all masks",
    "lime": "truth: lime's ridge, 10,000 masks",
    "paper": "truth: equation (1), no intercept",
}


def run(options: argparse.Namespace) -> None:
    """Draw the figures and write the pages."""
    about = json.loads((RESULTS / "runs.json").read_text())
    names = ("coverage", "localisation", "stability", "coverage-by-rank")
    covered, located, again, ranks, found, repeats = (
        pd.read_csv(RESULTS / f"{name}.csv") for name in (*names, "faithfulness", "agreement")
    )
    draw_figures()
    paper = {
        **coverage_tables(covered),
        "scores": score_table(covered),
        "localisation": localisation_part(located),
        "stability": stability_part(again),
        "mismatches": mismatch_part(covered, located),
        "by-rank": results_table(ranks),
        "versions": versions_of(about["coverage"]),
        **claims(covered),
        **hiding_claims(located),
        **rank_claims(ranks),
        **figure_parts(),
    }
    fill("paper", paper)
    fill("coverage", paper)
    parts = {
        "league": league_part(found),
        "missing": missing_part(found),
        "worse": worse_part(found),
        "count": count_part(found),
        "stability": repeats_part(repeats),
        "versions": versions_of(about["faithfulness"]),
    }
    fill("comparisons", parts)


def versions_of(run: Mapping[str, Any]) -> str:
    """The versions that a study was run with."""
    return ", ".join(f"{name} {number}" for name, number in run["versions"].items())


def fill(page: str, parts: Mapping[str, str]) -> None:
    """Write a page from its template, in which `@name@` stands for a part."""
    text = (DOCS / "measurements" / f"{page}.in.md").read_text(encoding="utf8")
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    (DOCS / "measurements" / f"{page}.md").write_text(text, encoding="utf8")


def percent(value: float) -> str:
    """A share in per cent, with one decimal."""
    return f"{100 * value:.1f}"


def coverage_tables(found: pd.DataFrame) -> dict[str, str]:
    """Table 2: under the paper's truth beside the printed numbers, and under the matched truth."""
    paper, matched = [], []
    for name, case in CASES.items():
        part = found[found["dataset"] == name]
        if part.empty:
            continue
        head = [case.title, str(int(part["items"].max()))]
        cells = [
            cell
            for method in PRINTED
            for cell in (in_the_paper(name, method), coverage_cell(part, method, "paper"))
        ]
        paper.append([*head, *cells])
        matched.append([*head, *(coverage_cell(part, method, "exact") for method in MATCHED)])
    head = ["", "inputs"]
    printed = [f"{NAMES[m]}, {who}" for m in PRINTED for who in ("in the paper", "here")]
    return {
        "coverage-paper": table([*head, *printed], paper),
        "coverage-matched": table([*head, *(NAMES[method] for method in MATCHED)], matched),
    }


def coverage_cell(part: pd.DataFrame, method: str, truth: str) -> str:
    """Coverage at each number of masks, in per cent."""
    chosen = part[(part["method"] == method) & (part["truth"] == truth)].set_index("n")
    return SLASH.join(percent(chosen.loc[n, "coverage"]) for n in COUNTED)


def in_the_paper(name: str, method: str) -> str:
    """The same as printed in the paper, empty for data sets that it does not have."""
    printed = TABLE_2.get(name)
    return SLASH.join(percent(printed[method][n]) for n in COUNTED) if printed else ""


def claims(found: pd.DataFrame) -> dict[str, str]:
    """Numbers in the text of the pages, which thus always agree with the tables."""
    many = found[~found["dataset"].isin(["corn", "scuba-diver"]) & (found["n"] >= 100)]

    def span(method: str, truth: str, names: Sequence[str] = tuple(CASES)) -> str:
        part = many[(many["method"] == method) & (many["truth"] == truth)]
        part = part[part["dataset"].isin(names)]["coverage"]
        return f"{percent(part.min())} to {percent(part.max())}"

    exact = many[many["truth"] == "exact"]
    scores = exact.pivot_table(index="dataset", columns="method", values="score")
    better = int((scores["eblime"] < scores["bayeslime"]).sum())
    photos = scores.loc[[name for name in scores.index if name in PHOTOS]]
    return {
        "ours-matched": span("eblime", "exact"),
        "ridge-matched": span("eblime-ridge", "exact"),
        "bayeslime-matched": span("bayeslime", "exact"),
        "printed-paper": span("eblime-paper", "paper"),
        "printed-matched": span("eblime-paper", "exact"),
        "bayeslime-paper": span("bayeslime", "paper"),
        "score-ours": f"{scores['eblime'].mean():.4f}",
        "score-ridge": f"{scores['eblime-ridge'].mean():.4f}",
        "score-bayeslime": f"{scores['bayeslime'].mean():.4f}",
        "score-printed": f"{scores['eblime-paper'].mean():.4f}",
        "score-better": f"{better} of {len(scores)}",
        "score-photos": f"{photos['eblime'].mean():.4f} and {photos['bayeslime'].mean():.4f}",
        "german-bayeslime": span("bayeslime", "exact", ["german"]),
        "german-ours": span("eblime", "exact", ["german"]),
    }


def rank_claims(ranks: pd.DataFrame) -> dict[str, str]:
    """Numbers in the text about the most important features: means over cases and ranges."""
    ours, common = (
        ranks[ranks["method"] == name].reset_index() for name in ("EBLIME()", "EBLIME(local=False)")
    )
    bayes = ranks[ranks["method"] == "BayesLIME()"].reset_index()
    few = ours[(ours["N"] == 100) & (ours["case"] != "p13")]
    alike = (ours["case"] == "breast-cancer") & (ours["N"] <= 200)

    def span(values: pd.Series, digits: int = 0) -> str:
        return f"{100 * values.min():.{digits}f} to {100 * values.max():.{digits}f}"

    return {
        "rank-all": span(ours["all"]),
        "rank-cells": str(len(ours)),
        "rank-top": f"{100 * ours['top 1'].mean():.0f}",
        "rank-next": f"{100 * ours['top 2-3'].mean():.0f}",
        "rank-top-common": f"{100 * common['top 1'].mean():.0f}",
        "rank-next-common": f"{100 * common['top 2-3'].mean():.0f}",
        "rank-bayeslime": f"{(bayes['score'] > 1).sum()} of {len(bayes)}",
        "rank-alike": " and ".join(f"{100 * (x - 1):.0f}" for x in ours[alike]["score"]),
        "rank-else": f"{100 * (ours[~alike]['score'].max() - 1):.1f}",
        "rank-top-few": span(few["top 1"]),
        "rank-next-few": span(few["top 2-3"]),
        "rank-score": f"{ours['score'].min():.2f} to {ours['score'].max():.2f}",
    }


def score_table(found: pd.DataFrame) -> str:
    """Interval scores and widths under the matched truth, averaged over N >= 100."""
    part = found[(found["truth"] == "exact") & (found["n"] >= 100)]
    scores = part.pivot_table(index="dataset", columns="method", values="score", sort=False)
    widths = part.pivot_table(index="dataset", columns="method", values="width", sort=False)
    rows = [
        [
            CASES[name].title,
            *(f"{scores.loc[name, m]:.4f} ({widths.loc[name, m]:.3f})" for m in MATCHED),
        ]
        for name in scores.index
    ]
    rows.append(
        ["**mean**", *(f"**{scores[m].mean():.4f} ({widths[m].mean():.3f})**" for m in MATCHED)]
    )
    return table(["interval score (width)", *(NAMES[m] for m in MATCHED)], rows)


def setting(found: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one hiding and design of Table 1."""
    hide, design = SETTINGS[name]
    return found[(found["hide"] == hide) & (found["design"] == design)]


def localisation_part(found: pd.DataFrame) -> str:
    """Table 1 for three kinds of parts in all settings, and tests between methods in two."""
    both, mixed, parts = list(SETTINGS)[:2], list(SETTINGS)[2:], []
    for name, title in PARTS.items():
        part = found[found["dataset"] == name]
        by_setting = {how: counts(setting(part, how)).set_index("method") for how in SETTINGS}
        rows = []
        for method in by_setting[both[0]].index:
            hit, of = LOCALISED.get(method, (0, 0))
            shown = [found_cell(by_setting[how].loc[method]) for how in both]
            shown += [percent(by_setting[how].loc[method, "share"]) for how in mixed]
            printed = [f"{hit}/{of}" if of else ""] if name == "ultrasonic" else []
            rows.append([NAMES[method], *shown, *printed])
        tests = []
        for first, second in PAIRS:
            outcomes = [mcnemar(setting(part, how), first, second) for how in both]
            title_of_pair = f"{NAMES[first]} against {NAMES[second]}"
            tests.append([title_of_pair, *map(test_cell, outcomes), verdict(outcomes)])
        unit = "holes" if name == "drilled" else "images"
        head = [f"difference in points ({unit} better / worse)", *both, "in both"]
        printed = ["paper, on its own scans"] if name == "ultrasonic" else []
        parts += [
            table([title, *both, *mixed, *printed], rows),
            table(head, tests),
        ]
    return "\n\n".join(parts)


def found_cell(row: Any) -> str:
    """Defects found, and their share with its interval in per cent."""
    ends = f"{percent(row['low'])} to {percent(row['high'])}"
    return f"{row['found']}/{row['of']}: {percent(row['share'])} ({ends})"


def test_cell(test: Mapping[str, float]) -> str:
    """The outcome of `mcnemar`."""
    points = [f"{100 * test[name]:+.1f}" for name in ("difference", "low", "high")]
    return (
        f"{points[0]} ({points[1]} to {points[2]}), p = {test['p']:.2g} "
        f"({test['first']:.0f} / {test['second']:.0f})"
    )


def verdict(outcomes: Sequence[Mapping[str, float]]) -> str:
    """What holds in every setting, at the level of 5 %: by the test or by the interval."""
    signs = {
        int(np.sign(test["difference"]))
        if test["p"] < 0.05 or test["low"] * test["high"] > 0
        else 0
        for test in outcomes
    }
    words = {1: "more found", -1: "fewer found", 0: "no difference shown"}
    return words[signs.pop()] if len(signs) == 1 else "the settings disagree"


def hiding_claims(found: pd.DataFrame) -> dict[str, str]:
    """How far the hiding and the design move the share of defects found, in points."""
    shares = {
        how: pd.concat(
            [counts(setting(found[found["dataset"] == name], how)) for name in PARTS]
        ).set_index(["dataset", "method"])["share"]
        for how in SETTINGS
    }
    paper, library, black_pairs, mean_random = (100 * shares[how] for how in SETTINGS)
    designs = pd.concat([abs(paper - black_pairs), abs(library - mean_random)])
    hidings = pd.concat([abs(paper - mean_random), abs(library - black_pairs)])
    return {
        "moved-by-design": f"{designs.max():.0f}",
        "moved-by-hiding": f"{hidings.min():.0f} to {hidings.max():.0f}",
        **{
            f"hiding-{name}": f"{paper[name, 'eblime']:.1f} and {library[name, 'eblime']:.1f} %"
            for name in PARTS
        },
    }


def mismatch_part(covered: pd.DataFrame, located: pd.DataFrame) -> str:
    """Where the paper's numbers and ours differ by more than five points, and what ours follow."""
    covered = covered[covered["truth"] == "paper"]
    rows = []
    for name, printed in TABLE_2.items():
        for method in PRINTED:
            part = covered[(covered["dataset"] == name) & (covered["method"] == method)]
            ours = part.set_index("n")["coverage"]
            if max(abs(ours[n] - printed[method][n]) for n in COUNTED) > CLOSE:
                title = f"Table 2, {CASES[name].title}, {NAMES[method]}"
                rows.append([title, in_the_paper(name, method), *expected_cells(part, COUNTED)])
    dogs = covered[(covered["dataset"] == "french-bulldog") & (covered["method"] == "bayeslime")]
    rows.append(
        ["Figure 3, BayesLIME, N = 50 / 500", "about 93 / 35", *expected_cells(dogs, (50, 500))]
    )
    scans = setting(located[located["dataset"] == "ultrasonic"], next(iter(SETTINGS)))
    for row in counts(scans).itertuples():
        if row.method in LOCALISED:
            hit, of = LOCALISED[row.method]
            label = f"Table 1, {NAMES[row.method]}"
            rows.append([label, f"{hit}/{of}", f"{row.found}/{row.of}", "", "other scans"])
    return table(
        ["", "in the paper", "here", "expected here", "does this explain ours?"], rows, right=1
    )


def expected_cells(part: pd.DataFrame, sizes: Sequence[int]) -> list[str]:
    """Coverage, the coverage that is expected, and whether they agree."""
    some = part.set_index("n").loc[list(sizes)]
    gap = (some["coverage"] - some["expected"]).abs().max()
    cells = [SLASH.join(map(percent, some[name])) for name in ("coverage", "expected")]
    return [*cells, "yes" if gap <= CLOSE else f"no, {100 * gap:.0f} points off"]


def stability_part(found: pd.DataFrame) -> str:
    """Agreement of repeated runs, and the posterior sd; cells have all numbers of masks."""
    names = {"overlap": 2, "spread": 4, "claimed": 4}  # and digits
    means = found.groupby(["dataset", "method", "n"], sort=False)[list(names)].mean()
    rows = []
    for (dataset, method), part in means.groupby(level=["dataset", "method"], sort=False):
        cells = [
            SLASH.join(f"{value:.{digits}f}" for value in part[name].dropna())
            for name, digits in names.items()
        ]
        rows.append([CASES[dataset].title, NAMES[method], *cells])
    head = ["", "method", "overlap of the top 3", "spread over runs", "posterior sd"]
    return table(head, rows, right=2)


def draw_figures() -> None:
    """The coverage of the French bulldogs."""
    photos = pd.read_csv(RESULTS / "coverage-french-bulldog.csv")
    both = photos[photos["truth"].isin(["paper", "exact"])]
    coverage_figure(both, "French bulldog").savefig(IMAGES / "coverage.png", dpi=80)


def independent(found: pd.DataFrame) -> pd.DataFrame:
    """The rows, with the patches of one drilled hole averaged: they show the same hole."""
    holes = found["item"].mask(found["dataset"] == "drilled", found["item"] % 8)
    keys = ["dataset", "method", "item"]
    return found.assign(item=holes).groupby(keys, sort=False).mean(numeric_only=True).reset_index()


def league_part(found: pd.DataFrame) -> str:
    """One table per data set: mean (standard error), the best but for oracles bold."""
    parts = []
    for name, settings in LEAGUE.items():
        part = standings(independent(found[found["dataset"] == name]))
        if part.empty:
            continue
        items = found[found["dataset"] == name]["item"].nunique()
        features = found[found["dataset"] == name].drop_duplicates("item")["features"]
        names = [m for m in HIGHER_IS_BETTER if (part["measure"] == m).any()]
        wide = part.pivot(index="method", columns="measure", values=["mean", "se"])
        about = part.drop_duplicates("method").set_index("method")
        rows = []
        for method in part["method"].unique():
            cells = [f"{about.loc[method, 'items']}", f"{about.loc[method, 'calls']:.0f}"]
            for measure in names:
                fair = wide["mean"][measure].drop(["oracle", "oracle-shapley"], errors="ignore")
                best = fair.max() if HIGHER_IS_BETTER[measure] else fair.min()
                mean, se = wide.loc[method, ("mean", measure)], wide.loc[method, ("se", measure)]
                if pd.isna(mean):
                    cells.append("")
                    continue
                text = f"{mean:.3f} ({se:.3f})"
                cells.append(f"**{text}**" if method in fair.index and mean == best else text)
            rows.append([method, *cells])
        arrows = [f"{m} {'↑' if HIGHER_IS_BETTER[m] else '↓'}" for m in names]
        parts.append(
            f"### {TITLES[name]}\n\n{items} inputs, {settings['n']} masks, {_range(features)} "
            f"features.\n\n{table(['', 'inputs', 'masks', *arrows], rows)}"
        )
    return "\n\n".join(parts)


def _range(values: pd.Series) -> str:
    """`7`, or `11 to 13`."""
    low, high = values.min(), values.max()
    return str(low) if low == high else f"{low} to {high}"


def worse_part(found: pd.DataFrame) -> str:
    """Where one of ours is worse than another package: the 95 % interval is above zero.

    `eblime-table` is compared with `lime-table` alone, which draws the same kind of rows.
    """
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    for ours in OURS:
        gaps = paired_gaps(independent(found), ours)
        peers = ["lime-table"] if ours == "eblime-table" else PEERS
        for row in gaps[gaps["other"].isin(peers) & (gaps["low"] > 0)].itertuples():
            key = (TITLES[row.dataset], row.measure, row.other)
            cells.setdefault(key, {})[ours] = f"{row.gap:.3f} ({row.low:.3f} to {row.high:.3f})"
    if not cells:
        return "None."
    head = ["data", "measure", "better", *(f"than {ours}, by" for ours in OURS)]
    rows = [[*key, *(by.get(ours, "") for ours in OURS)] for key, by in cells.items()]
    return table(head, rows)


def count_part(found: pd.DataFrame) -> str:
    """How often each of ours is better or worse than a peer, by 95 % intervals."""
    rows = []
    for ours in OURS:
        gaps = paired_gaps(independent(found), ours)
        cells = []
        for peer in PEERS:
            part = gaps[gaps["other"] == peer]
            better = int((part["high"] < 0).sum())
            worse = int((part["low"] > 0).sum())
            cells.append(f"{better} / {worse} / {len(part) - better - worse}")
        rows.append([ours, *cells])
    return table(["better / worse / no significant difference", *PEERS], rows)


def missing_part(found: pd.DataFrame) -> str:
    """The data sets without results."""
    missing = [TITLES[name] for name in LEAGUE if name not in set(found["dataset"])]
    return f"Not run for this page: {'; '.join(missing)}." if missing else ""


def repeats_part(again: pd.DataFrame) -> str:
    """Agreement of repeated runs."""
    parts = []
    for name in REPEATS:
        part = again[again["dataset"] == name]
        if part.empty:
            continue
        means = part.groupby(["method", "n"], sort=False)[MEASURES].mean()
        rows = [
            [method, str(n), *("" if pd.isna(v) else f"{v:.3f}" for v in row)]
            for (method, n), row in means.iterrows()
        ]
        items = part["item"].nunique()
        parts.append(
            f"### {TITLES[name]}\n\n{items} inputs, 5 runs each.\n\n"
            f"{table(['', 'masks', *MEASURES], rows)}"
        )
    return "\n\n".join(parts)


def coverage_figure(table: pd.DataFrame, title: str = "") -> Figure:
    """Fig. 3: coverage against the number of masks, as boxes over seeds; one panel per truth."""
    truths = list(dict.fromkeys(table["truth"]))
    methods = list(dict.fromkeys(table["method"]))
    counts = sorted(table["n"].unique())
    step = 0.7 / len(methods)  # between the boxes of one number of masks
    figure = Figure(figsize=(5.6 * len(truths), 3.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(truths), sharey=True))
    for axes, truth in zip(panels, truths, strict=True):
        for k, method in enumerate(methods):
            part = table[(table["truth"] == truth) & (table["method"] == method)]
            boxes = [_by_seed(part[part["n"] == n]) for n in counts]
            positions = np.arange(len(counts)) + step * (k - (len(methods) - 1) / 2)
            colour = COLOURS.get(method, "#767676")
            drawn = axes.boxplot(boxes, positions=positions, widths=0.8 * step, patch_artist=True)
            for part_of in drawn["boxes"]:
                part_of.set(facecolor=colour, alpha=0.55, edgecolor=colour)
            for line in drawn["medians"]:
                line.set(color="#222222")
            axes.plot([], [], "s", color=colour, alpha=0.55, label=NAMES.get(method, method))
        axes.axhline(0.95, color="#222222", linewidth=0.8, linestyle="--")
        axes.set_xticks(range(len(counts)), [str(n) for n in counts])
        axes.set_xlabel("masks")
        axes.set_title(f"{title}{': ' if title else ''}{TRUTHS[truth]}", fontsize="medium")
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("share of 95 % intervals that contain the truth")
    panels[-1].legend(frameon=False, fontsize="small", loc="lower left")
    return figure


def _by_seed(part: pd.DataFrame) -> FloatArray:
    """Coverage for each seed, over all features."""
    weighted = part.assign(hit=part["coverage"] * part["features"])
    sums = weighted.groupby("seed")[["hit", "features"]].sum()
    return (sums["hit"] / sums["features"]).to_numpy()


def good_explanations(found: pd.DataFrame) -> pd.DataFrame:
    """The explanations of figure 5: recognised dogs, and defects that EBLIME as printed finds."""
    printed = found[(found["method"] == "eblime-paper") & (found["covered"] >= 0.5)]
    keys = ["dataset", "item", "masks"]
    hits = pd.MultiIndex.from_frame(printed[keys])
    dogs = (found["dataset"] == "french-bulldog") & (found["score"] > 0.5)
    scans = (found["dataset"] == "ultrasonic") & pd.MultiIndex.from_frame(found[keys]).isin(hits)
    return found[dogs | scans]


def figure_parts() -> dict[str, str]:
    """Tables and sentences about the paper's figures 1, 2, 4 and 5."""
    cat = pd.read_csv(RESULTS / "figure-1.csv")
    dogs, scans = (
        pd.read_csv(RESULTS / f"figures-{n}.csv") for n in ("french-bulldog", "ultrasonic")
    )
    certain = dogs[dogs["score"] >= 0.9]
    shown = certain[certain["item"].isin(certain["item"].unique()[:3])]
    printed = shown[(shown["masks"] == "paper") & (shown["method"] == "eblime-paper")]
    return {
        "figure-1": cat_table(cat),
        "figure-2": maps_table(certain),
        "figure-2-count": str(certain["item"].nunique()),
        "figure-2-ratios": ", ".join(f"{ratio:.1f}" for ratio in printed["sd_ratio"]),
        "figure-2-shared": ", ".join(f"{count}" for count in printed["shared"]),
        "figure-2-variance": variance_line(certain, "scaled_region"),
        "figure-4": maps_table(scans),
        "figure-4-r2": " and ".join(
            f"{part['r2'].median():.2f}"
            for _, part in scans[scans["method"] == "eblime"].groupby("masks", sort=False)
        ),
        "figure-5-below": below_one(dogs),
        "figure-4-variance": variance_line(both_found(scans), "scaled_top"),
        "figure-5": ridge_table(pd.concat([dogs, scans])),
    }


def cat_table(found: pd.DataFrame) -> str:
    """Figure 1: width of the intervals, how many contain the truth, and which is the largest."""
    rows = []
    for (masks, method, n), part in found.groupby(["masks", "method", "n"], sort=False):
        inside = int(((part["low"] <= part["truth"]) & (part["truth"] <= part["high"])).sum())
        first = part.sort_values("largest").iloc[-1]
        rows.append(
            [
                f"{NAMES[method]}, {masks}'s masks",
                n,
                f"{(part['high'] - part['low']).mean():.2f}",
                f"{inside} of {len(part)}",
                f"{first['feature']} ({first['largest']:.2f})",
            ]
        )
    head = ["", "N", "mean width", "contain the truth", "most likely the largest (probability)"]
    return table(head, rows)


def maps_table(found: pd.DataFrame) -> str:
    """Figures 2 and 4: what the maps say, over many images."""
    dogs = found["dataset"].iloc[0] == "french-bulldog"
    count = found["item"].nunique()
    rows, tops = [], []
    for masks in ("paper", "library"):
        for method in ("bayeslime", "eblime-paper", "eblime"):
            part = found[(found["masks"] == masks) & (found["method"] == method)]
            name, ratios = f"{NAMES[method]}, {masks}'s masks", part["sd_ratio"]
            same = method == "bayeslime"
            span = f"{ratios.median():.2f} ({ratios.min():.2f} to {ratios.max():.2f})"
            cells = [
                "1" if same else span,
                "" if same else f"{part['shared'].mean():.1f}",
                f"{part['scaled_region'].mean():.2f}",
                f"{part['scaled_top'].mean():.2f}",
                f"{part['certainty'].median():.1f}",
            ]
            columns = ("region_positive", "elsewhere_positive", "elsewhere_negative")
            tops.append([name, *(int((part[column] > 0).sum()) for column in columns)])
            hits = [] if dogs else [int((part["covered"] >= 0.5).sum())]
            rows.append([name, *cells, *hits])
    head = ["", "sd / BayesLIME's", "top five shared with BayesLIME"]
    head += [f"scaled variance on the {'dog' if dogs else 'defect'}", "in the top five"]
    head += ["mean / sd in the top five", *([] if dogs else [f"found, of {count}"])]
    if not dogs:
        return table(head, rows)
    kinds = ["dog, positive", "background, positive", "background, negative"]
    return f"{table(head, rows)}\n\n{table([f'photos of {count}', *kinds], tops)}"


def both_found(found: pd.DataFrame) -> pd.DataFrame:
    """Scans whose defect both methods of the paper find, for each kind of masks."""
    hits = found[found["covered"] >= 0.5].pivot_table(
        index=["item", "masks"], columns="method", values="covered"
    )
    keys = hits[[*PRINTED]].dropna().index
    return found[pd.MultiIndex.from_frame(found[["item", "masks"]]).isin(keys)]


def variance_line(found: pd.DataFrame, name: str) -> str:
    """On how many images BayesLIME's scaled variance is larger than that of EBLIME as printed."""
    parts = []
    for masks in ("paper", "library"):
        wide = found[found["masks"] == masks].pivot(index="item", columns="method", values=name)
        larger, total = int((wide["bayeslime"] > wide["eblime-paper"]).sum()), len(wide)
        p = stats.binomtest(larger, total).pvalue
        parts.append(f"{larger} of {total} images with the {masks}'s masks (sign test p = {p:.2g})")
    return " and ".join(parts)


def ridge_table(found: pd.DataFrame) -> str:
    """Figure 5: where the posterior of lambda is, on the published grid and on the half-line."""
    good = good_explanations(found)
    rows = []
    for (dataset, masks), name in GROUPS.items():
        part = good[(good["dataset"] == dataset) & (good["masks"] == masks)]
        logs = part[part["method"] == "eblime-paper"]["log_mean"]
        cells = [f"{logs.median():.2f} ({logs.min():.2f} to {logs.max():.2f})"]
        for method in ("eblime-half-line", "eblime-ridge"):
            some = part[part["method"] == method]
            most = int((some["above"] > 0.5).sum())
            share = f"{100 * most / len(some):.0f} %"
            middle = float(f"{some['median'].median():.2g}")
            cells += [f"{most} of {len(some)} ({share})", f"{middle:g}"]
        rows.append([f"{part['item'].nunique()} {name}", *cells])
    head = ["", "log E(λ \\| Y), λ ≤ 1: median (range)"]
    for name in ("the paper's model", "free intercept"):
        head += [f"P(λ > 1 \\| Y) > ½, {name}", f"median λ, {name}"]
    return table(head, rows)


def below_one(found: pd.DataFrame) -> str:
    """All dogs with at most 13 superpixels whose median of lambda, intercept free, is below 1."""
    part = found[(found["masks"] == "coarse") & (found["method"] == "eblime-ridge")]
    below = int((part["median"] < 1).sum())
    return f"{below} of all {len(part)} ({100 * below / len(part):.1f} %)"
