"""Figures and numbers of the page about coverage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from eblime._types import FloatArray
from studies.cases import CASES
from studies.charts.style import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    NAMES,
    PRINTED,
    RED,
    SKY,
    canvas,
    legend_below,
    log_ticks,
    save,
    span,
)

__all__ = ["rank_part", "text_part", "truth_part"]

RANKED = {  # cases of coverage by rank
    "p13": "Photos, 11 to 13 features",
    "p40": "Photos, 28 to 45 features",
    "german": "German credit, 20 columns",
    "breast-cancer": "Breast cancer, standardised",
    "breast-cancer-raw": "Breast cancer, 30 columns",
    "games": "Games, 12 to 16 features",
}
TEXTS = {
    "logistic": "logistic regression",
    "forest": "randomised trees",
    "transformer": "transformer",
    "interactions": "many interactions",
    "rare": "an effect of three words",
}
# the rows of Table 2 with more than one photo
MANY = [name for name in CASES if not name.startswith(("stored", "corn", "scuba"))]


def rank_part(found: pd.DataFrame) -> dict[str, str]:
    """Coverage of the most important features: two figures, and numbers of the text."""
    ours = found[found["method"] == "EBLIME()"]
    common, bayes = (
        found[found["method"] == name] for name in ("EBLIME(local=False)", "BayesLIME()")
    )
    figure, panels = canvas(1, 3, 8.4, 2.5, sharey=True)
    names = ["EBLIME.paper()", "BayesLIME()", "EBLIME(local=False)", "EBLIME()"]
    titles = {"all": "all features", "top": "the most important", "next": "the next two"}
    for axes, (column, title) in zip(panels[0], titles.items(), strict=True):
        for k, name in enumerate(names):
            values = found[found["method"] == name][column]
            colour = GREEN if name == "EBLIME()" else GREY
            axes.plot([values.min(), values.max()], [k, k], color=colour, lw=3, alpha=0.5)
            axes.plot(values.mean(), k, "o", color=colour)
        axes.axvline(0.95, color="black", lw=0.8, ls="--")
        axes.set_title(title, fontsize=10)
        axes.set_xlim(0, 1.02)
    panels[0, 0].set_yticks(range(len(names)), names)
    figure.supxlabel("coverage of 95 % intervals: worst cell, mean, best cell", fontsize=9)
    save(figure, "coverage-summary")

    figure, panels = canvas(2, 3, 8.4, 4.9, sharex=True, sharey=True)
    lines = {"all": ("all features", SKY), "next": ("the next two", BLUE)}
    lines |= {"top": ("the most important", GREEN)}
    for axes, (case, title) in zip(panels.flat, RANKED.items(), strict=True):
        part = ours[ours["case"] == case]
        for shift, (column, (name, colour)) in zip((0.97, 1, 1.03), lines.items(), strict=True):
            fits = {"top": 100, "next": 200}.get(column)
            error = 1.96 * np.sqrt(part[column] * (1 - part[column]) / fits) if fits else None
            axes.errorbar(
                part["N"] * shift, part[column], error, fmt="-o", ms=3.5, color=colour, label=name
            )
        other = common[common["case"] == case]
        label = "the most important, EBLIME(local=False)"
        axes.plot(other["N"], other["top"], ":", color=GREY, label=label)
        axes.axhline(0.95, color="black", lw=0.8, ls="--")
        axes.set_title(title, fontsize=9.5)
        axes.set_ylim(0.55, 1.01)
        log_ticks(axes, [100, 200, 500, 1000], "")
    for axes in panels[1]:
        axes.set_xlabel("masks", fontsize=9)
    legend_below(figure, panels[0, 0], 4)
    save(figure, "coverage-by-rank")

    few = ours[(ours["N"] == 100) & (ours["case"] != "p13")]
    alike = ours[(ours["case"] == "breast-cancer") & (ours["N"] <= 200)]["score"]
    worst = ours.sort_values("top").iloc[0]
    return {
        "rank-all": span(ours["all"]),
        "rank-cells": str(len(ours)),
        "rank-top": f"{100 * ours['top'].mean():.0f}",
        "rank-next": f"{100 * ours['next'].mean():.0f}",
        "rank-worst": f"{100 * worst['top']:.0f}",
        "rank-worst-where": f"{RANKED[worst['case']]}, {worst['N']} masks",
        "rank-best": f"{100 * ours['top'].max():.0f}",
        "rank-top-common": f"{100 * common['top'].mean():.0f}",
        "rank-next-common": f"{100 * common['next'].mean():.0f}",
        "rank-worst-common": f"{100 * common['top'].min():.0f}",
        "rank-top-bayeslime": f"{100 * bayes['top'].mean():.0f}",
        "rank-bayeslime": f"{(bayes['score'] > 1).sum()} of {len(bayes)}",
        "rank-alike": " and ".join(f"{100 * (x - 1):.0f}" for x in alike),
        "rank-top-few": span(few["top"]),
        "rank-next-few": span(few["next"]),
        "rank-first": span(ours["first"]),
        "rank-then": span(ours["then"]),
        "rank-80": span(ours["all 80%"]),
        "rank-50": span(ours["all 50%"]),
        "rank-sign": f"{ours['sign'].median():.2f}",
        "rank-sign-photos": ", ".join(f"{x:.3f}" for x in ours[ours["case"] == "p40"]["sign"]),
        "rank-sign-worst": f"{ours['sign'].max():.2f}",
        "rank-score": f"{ours['score'].min():.2f} to {ours['score'].max():.2f}",
    }


def text_part(found: pd.DataFrame) -> dict[str, str]:
    """Coverage of texts: a figure, and numbers of the text."""
    ours = found[found["method"] == "as it is"]
    figure, panels = canvas(1, 3, 8.4, 2.6, sharey=True)
    titles = {"all": "all words", "top 1": "the most important", "top 2-3": "the next two"}
    for axes, (column, title) in zip(panels[0], titles.items(), strict=True):
        for case, colour in zip(TEXTS, (GREEN, SKY, RED, BLUE, GREY), strict=True):
            part = ours[ours["case"] == case]
            axes.plot(part["N"], part[column], "-o", ms=4, color=colour, label=TEXTS[case])
        axes.axhline(0.95, color="black", lw=0.8, ls="--")
        axes.set_title(title, fontsize=10)
        axes.set_ylim(0.85, 1.005)
        log_ticks(axes, [100, 200, 1000], "masks")
    panels[0, 0].set_ylabel("coverage", fontsize=9)
    legend_below(figure, panels[0, 0], 5)
    save(figure, "coverage-texts")
    return {"text-all": span(ours["all"]), "text-top": span(ours["top 1"])}


def truth_part(found: pd.DataFrame, dogs: pd.DataFrame) -> dict[str, str]:
    """Coverage under two truths: two figures, and numbers of the text."""
    many = found[found["dataset"].isin(MANY)]
    truths = {
        "paper": "truth: equation (1), no intercept",
        "exact": "truth: lime's ridge, free intercept",
    }
    figure, panels = canvas(1, 2, 8.4, 3.3, sharey=True)
    for axes, (truth, title) in zip(panels[0], truths.items(), strict=True):
        for method in (*PRINTED, "eblime"):
            part = many[(many["truth"] == truth) & (many["method"] == method)]
            by_n = part.groupby("n")["coverage"].agg(["min", "mean", "max"])
            axes.fill_between(
                by_n.index, by_n["min"], by_n["max"], color=COLOURS[method], alpha=0.1
            )
            axes.plot(by_n["mean"], "-o", ms=4, color=COLOURS[method], label=NAMES[method])
        axes.axhline(0.95, color="black", lw=0.8, ls="--")
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("masks", fontsize=9)
    panels[0, 0].set_ylabel("coverage of 95 % intervals", fontsize=9)
    legend_below(figure, panels[0, 0], 3)
    save(figure, "coverage-truths")
    save(coverage_figure(dogs[dogs["truth"].isin(truths)], truths), "coverage")

    at_least = many[many["n"] >= 100]
    spans = {
        f"{method}-{truth}": span(part["coverage"], 1)
        for (method, truth), part in at_least.groupby(["method", "truth"])
    }
    exact = at_least[at_least["truth"] == "exact"]
    scores = exact.pivot_table(index="dataset", columns="method", values="score")
    better = int((scores["eblime"] < scores["bayeslime"]).sum())
    means = {f"score-{method}": f"{scores[method].mean():.4f}" for method in scores}
    return {**spans, **means, "score-better": f"{better} of {len(scores)}"}


def coverage_figure(found: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Fig. 3: coverage against the number of masks, as boxes over seeds; one panel per truth."""
    methods, sizes = list(dict.fromkeys(found["method"])), sorted(found["n"].unique())
    step = 0.7 / len(methods)  # between the boxes of one number of masks
    figure, panels = canvas(1, len(titles), 8.4, 3.3, sharey=True)
    for axes, (truth, title) in zip(panels[0], titles.items(), strict=True):
        for k, method in enumerate(methods):
            part = found[(found["truth"] == truth) & (found["method"] == method)]
            boxes = [_by_seed(part[part["n"] == n]) for n in sizes]
            positions = np.arange(len(sizes)) + step * (k - (len(methods) - 1) / 2)
            drawn = axes.boxplot(
                boxes,
                positions=positions,
                widths=0.8 * step,
                patch_artist=True,
                flierprops={"ms": 3},
            )
            for box in drawn["boxes"]:
                box.set(facecolor=COLOURS[method], alpha=0.55, edgecolor=COLOURS[method])
            for line in drawn["medians"]:
                line.set(color="#222222")
            axes.plot([], [], "s", color=COLOURS[method], alpha=0.55, label=NAMES[method])
        axes.axhline(0.95, color="black", lw=0.8, ls="--")
        axes.set_xticks(range(len(sizes)), [str(n) for n in sizes])
        axes.set_xlabel("masks", fontsize=9)
        axes.set_title(title, fontsize=10)
    panels[0, 0].set_ylabel("coverage of 95 % intervals", fontsize=9)
    legend_below(figure, panels[0, 0], 4)
    return figure


def _by_seed(part: pd.DataFrame) -> FloatArray:
    """Coverage for each seed, over all features."""
    weighted = part.assign(hit=part["coverage"] * part["features"])
    sums = weighted.groupby("seed")[["hit", "features"]].sum()
    return (sums["hit"] / sums["features"]).to_numpy()
