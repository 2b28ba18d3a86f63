"""Write the pages of results, coverage and faithfulness, with figures, from docs/results.

make results
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from eblime._types import FloatArray
from studies.cases import CASES
from studies.faithfulness import HIGHER_IS_BETTER, paired_gaps, standings
from studies.localisation import PAIRS, comparison, counts, mcnemar
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
TRUTHS = {
    "exact": "truth: lime's ridge, all masks",
    "lime": "truth: lime's ridge, 10,000 masks",
    "paper": "truth: equation (1), no intercept",
}


def run(options: argparse.Namespace) -> None:
    """Draw the figures and write the pages."""
    about = json.loads((RESULTS / "runs.json").read_text())
    covered, located, again, found, repeats = (
        pd.read_csv(RESULTS / f"{name}.csv")
        for name in ("coverage", "localisation", "stability", "faithfulness", "agreement")
    )
    draw_figures(located)
    paper = {
        **coverage_tables(covered),
        "scores": score_table(covered),
        "localisation": localisation_part(located),
        "stability": stability_part(again),
        "versions": ", ".join(f"{name} {v}" for name, v in about["versions"].items()),
        "python": about["python"],
        "runs": table(
            ["study", f"seconds on {about['cores']} cores"],
            [[name, f"{seconds:.0f}"] for name, seconds in about["seconds"].items()],
        ),
        **claims(covered),
    }
    fill("results", paper)
    fill("coverage", paper)
    about = json.loads((RESULTS / "faithfulness.json").read_text())
    parts = {
        "league": league_part(found),
        "missing": missing_part(found),
        "worse": worse_part(found),
        "count": count_part(found),
        "stability": repeats_part(repeats),
        "versions": ", ".join(f"{name} {value}" for name, value in about.items()),
    }
    fill("faithfulness", parts)


def fill(page: str, parts: Mapping[str, str]) -> None:
    """Write a page from its template, in which `@name@` stands for a part."""
    text = (DOCS / "explanation" / f"{page}.in.md").read_text(encoding="utf8")
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    (DOCS / "explanation" / f"{page}.md").write_text(text, encoding="utf8")


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
    head = ["", "photos, digits or rows"]
    printed = [f"{NAMES[m]}, {who}" for m in PRINTED for who in ("in the paper", "here")]
    return {
        "coverage-paper": table([*head, *printed], paper),
        "coverage-matched": table([*head, *(NAMES[method] for method in MATCHED)], matched),
    }


def coverage_cell(part: pd.DataFrame, method: str, truth: str) -> str:
    """Coverage at each number of masks, in per cent."""
    chosen = part[(part["method"] == method) & (part["truth"] == truth)].set_index("n")
    return " / ".join(percent(chosen.loc[n, "coverage"]) for n in COUNTED)


def in_the_paper(name: str, method: str) -> str:
    """The same as printed in the paper, empty for data sets that it does not have."""
    printed = TABLE_2.get(name)
    return " / ".join(percent(printed[method][n]) for n in COUNTED) if printed else ""


def claims(found: pd.DataFrame) -> dict[str, str]:
    """Numbers in the text of the pages, which thus always agree with the tables."""
    many = found[~found["dataset"].isin(["corn", "scuba-diver"]) & (found["n"] >= 100)]

    def span(method: str, truth: str) -> str:
        part = many[(many["method"] == method) & (many["truth"] == truth)]["coverage"]
        return f"{percent(part.min())} to {percent(part.max())}"

    exact = many[many["truth"] == "exact"]
    scores = exact.pivot_table(index="dataset", columns="method", values="score")
    better = int((scores["eblime"] < scores["bayeslime"]).sum())
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


def localisation_part(found: pd.DataFrame) -> str:
    """Table 1 for three kinds of parts, and exact tests between methods."""
    parts = []
    for name, title in PARTS.items():
        unit = "holes" if name == "drilled" else "images"
        part = found[found["dataset"] == name]
        rows = []
        for row in counts(part).itertuples():
            hit, of = LOCALISED.get(row.method, (0, 0))
            printed = f"{hit}/{of}" if name == "ultrasonic" and of else ""
            share = f"{percent(row.share)} ({percent(row.low)} to {percent(row.high)})"
            rows.append([NAMES[row.method], f"{row.found}/{row.of}", share, printed])
        head = [title, "found", "per cent (95 % interval)", "paper, on its own scans"]
        lines = [table(head, rows), ""]
        for first, second in PAIRS:
            outcome = comparison(mcnemar(part, first, second), f" {unit}")
            lines.append(f"- {NAMES[first]} against {NAMES[second]}: {outcome}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def stability_part(found: pd.DataFrame) -> str:
    """Agreement of repeated runs, and the posterior sd."""
    means = found.groupby(["dataset", "method", "n"], sort=False)[
        ["overlap", "spread", "claimed"]
    ].mean()
    rows = [
        [
            CASES[dataset].title,
            NAMES[method],
            str(n),
            f"{row['overlap']:.2f}",
            f"{row['spread']:.4f}",
            "" if pd.isna(row["claimed"]) else f"{row['claimed']:.4f}",
        ]
        for (dataset, method, n), row in means.iterrows()
    ]
    head = ["", "method", "N", "overlap of the top 3", "spread over runs", "posterior sd"]
    return table(head, rows)


def draw_figures(located: pd.DataFrame) -> None:
    """The coverage of the French bulldogs, and lambda for photos and scans."""
    photos = pd.read_csv(RESULTS / "coverage-french-bulldog.csv")
    both = photos[photos["truth"].isin(["paper", "exact"])]
    coverage_figure(both, "French bulldog").savefig(IMAGES / "coverage.png", dpi=80)
    scans = located[
        (located["dataset"] == "ultrasonic")
        & (located["method"] == "eblime-paper")
        & located["found"]
    ]
    scans = scans.assign(log_mean=pd.Series(scans["lambda_mean"]).map(math.log))
    ridge = pd.read_csv(RESULTS / "lambda.csv")
    good = ridge[ridge["score"] > 0.5]
    lambda_figure(
        {f"{len(good)} French bulldogs": good, f"{len(scans)} ultrasonic scans": scans}
    ).savefig(IMAGES / "lambda.png", dpi=80)


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


def lambda_figure(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Fig. 5: boxes of log E(lambda | Y) for several studies."""
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    names = list(tables)
    drawn = axes.boxplot(
        [tables[name]["log_mean"].to_numpy() for name in names], widths=0.4, patch_artist=True
    )
    for box in drawn["boxes"]:
        box.set(facecolor="#0072B2", alpha=0.4)
    axes.set_xticks(range(1, len(names) + 1), names)
    axes.set_ylabel("log E(λ | Y), published grid")
    axes.grid(axis="y", alpha=0.3)
    return figure
