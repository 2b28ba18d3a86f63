"""Figures and numbers of the page of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from studies.charts.style import (
    BLUE,
    GREEN,
    GREY,
    PALE,
    RED,
    SKY,
    canvas,
    legend_below,
    log_ticks,
    save,
    span,
)
from studies.faithfulness import paired_gaps
from studies.tables import table

__all__ = ["LEAGUE", "REPEATS", "agreement_part", "faithfulness_part", "league_part", "photo_part"]

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
TITLES = {
    "photos": "Photos",
    "stored-photos": "Photos, 11 to 13 superpixels",
    "tiles": "Magnetic tiles",
    "drilled": "Drilled holes",
    "german": "German credit",
    "compas": "COMPAS",
    "rt-polarity": "Film reviews",
    "stored-games": "Games of shapiq",
}
KINDS = {  # of games, with their number of features
    "adult": "Adult table (14)",
    "bike": "bikes table (12)",
    "cal": "housing table (8)",
    "img14": "ResNet-18 (14)",
    "img16": "ViT (16)",
    "img9": "ViT (9)",
    "sent": "sentiment (14)",
}
PEERS = ["lime", "shap", "captum-lime", "captum-shap", "rise"]
OURS = ("eblime", "quadrature", "quadrature+adaptive")


def league_part(found: pd.DataFrame) -> dict[str, str]:
    """Error against calls beside shapiq: three figures, and numbers of the text."""
    games = found[found["kind"] == "games of shapiq"]
    games = games[games["games"] == games["games"].max()]
    peers = games[games["peer"]]
    best = peers.loc[peers.groupby(["index", "calls"])["mse"].idxmin()].assign(
        method="the best of shapiq"
    )
    lines = {
        "the best of shapiq": RED,
        "EBLIME, uniform kernel": GREY,
        "BayesSHAP": GREY,
        "Quadrature, pairs": SKY,
        "Quadrature, rounds": GREEN,
    }
    figure, panels = canvas(1, 2, 8.4, 3.3, sharey=True)
    for axes, index in zip(panels[0], ("banzhaf", "shapley"), strict=True):
        for name, colour in lines.items():
            part = pd.concat([games, best])
            part = part[(part["index"] == index) & (part["method"] == name)].sort_values("calls")
            if len(part):
                default = name.startswith(("EBLIME", "Bayes"))
                shown = f"{name.partition(',')[0]}, same pairs" if default else name
                axes.plot(part["calls"], part["mse"], "-o", ms=4, color=colour, label=shown)
        axes.set_yscale("log")
        axes.set_title(f"{index.capitalize()} values", fontsize=10)
        log_ticks(axes, sorted(games["calls"].unique()), "model calls per feature")
        axes.legend(frameon=False, fontsize=8.5)
    panels[0, 0].set_ylabel("relative mean squared error", fontsize=9)
    save(figure, "error-calls")
    draw_league(games)
    draw_kinds(found)

    ours = games[~games["peer"]].set_index(["method", "index", "calls"]).sort_index()
    kinds = found[found["kind"].isin(KINDS) & ~found["peer"]]
    rounds, pairs = (
        kinds[kinds["method"] == f"Quadrature, {name}"] for name in ("rounds", "pairs")
    )
    regression = ours.loc[("EBLIME, uniform kernel", "banzhaf", 20), "mse"]
    adaptive = ours.loc[("Quadrature, rounds", "banzhaf", 20), "mse"]
    return {
        "league-rounds": span(ours.loc["Quadrature, rounds", "ratio"], 2, times=1),
        "league-pairs": span(ours.loc["Quadrature, pairs", "ratio"], 2, times=1),
        "league-default": f"{adaptive / regression:.2f}",
        "league-eblime": span(ours.loc["EBLIME, uniform kernel", "ratio"], 1, times=1),
        "league-bayesshap": span(ours.loc["BayesSHAP", "ratio"], 1, times=1),
        "league-covered": span(ours.loc["Quadrature, rounds", "coverage"]),
        "league-covered-pairs": span(ours.loc["Quadrature, pairs", "coverage"]),
        "league-kinds-rounds": span(rounds["coverage"]),
        "league-kinds-pairs": span(pairs["coverage"]),
        "league-worse-rounds": f"{(rounds['ratio'] > 1).sum()} of {len(rounds)}",
        "league-worse-pairs": f"{(pairs['ratio'] > 1).sum()} of {len(pairs)}",
        "league-numbers": league_table(ours, best),
    }


def league_table(ours: pd.DataFrame, best: pd.DataFrame) -> str:
    """Errors and coverage of our methods beside the best of shapiq."""
    rows = []
    for peer in best.to_dict("records"):
        for kind in ("rounds", "pairs"):
            line = ours.loc[(f"Quadrature, {kind}", peer["index"], peer["calls"])]
            cells = [f"{line[name]:.3f}" for name in ("mse", "ratio", "coverage")]
            rows.append([peer["index"].capitalize(), peer["calls"], kind, *cells])
    return table(["", "calls per feature", "masks", "error", "ratio", "coverage"], rows)


def draw_league(games: pd.DataFrame) -> None:
    """All estimators: ours in colour, those of shapiq in grey, names at the right ends."""
    colours = {"Quadrature, rounds": GREEN, "Quadrature, pairs": SKY}
    calls = sorted(games["calls"].unique())
    figure, panels = canvas(1, 2, 8.8, 4.6, sharey=True)
    for axes, index in zip(panels[0], ("banzhaf", "shapley"), strict=True):
        ends: list[tuple[float, str, str]] = []
        for (name, peer), part in games[games["index"] == index].groupby(["method", "peer"]):
            line = part.sort_values("calls")
            colour = PALE if peer else colours.get(str(name), BLUE)
            axes.plot(line["calls"], line["mse"], "-o", color=colour, lw=1 if peer else 2, ms=3)
            ends.append((float(line["mse"].iloc[-1]), str(name), "#555555" if peer else colour))
        axes.set_yscale("log")
        axes.set_title(f"{index.capitalize()} values", fontsize=10)
        log_ticks(axes, calls, "model calls per feature")
        axes.set_xlim(calls[0] / 1.08, calls[-1] * 3.2)
        write_names(axes, calls[-1], sorted(ends))
    panels[0, 0].set_ylabel("relative mean squared error", fontsize=9)
    save(figure, "league")


def write_names(axes: Axes, right: float, ends: Sequence[tuple[float, str, str]]) -> None:
    """The names at the right ends; methods with the same error share a line of text."""
    shared: list[tuple[float, list[str], str]] = []
    for error, name, colour in ends:
        if shared and error < 1.005 * shared[-1][0] and colour == shared[-1][2]:
            shared[-1][1].append(name)
        else:
            shared.append((error, [name], colour))
    height = 0.0
    for error, names, colour in shared:
        height = max(error, 1.42 * height)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        axes.annotate(
            min(names, key=len) + more,
            xy=(right, error),
            xytext=(right * 1.12, height),
            fontsize=7.5,
            color=colour,
            va="center",
            arrowprops={"arrowstyle": "-", "color": "0.85", "lw": 0.5},
        )


def draw_kinds(found: pd.DataFrame) -> None:
    """The ratio to the best of shapiq for each kind of game."""
    figure, panels = canvas(1, 2, 8.4, 3.4, sharex=True, sharey=True)
    names = list(KINDS)[::-1]
    for axes, index in zip(panels[0], ("banzhaf", "shapley"), strict=True):
        for method, colour, shift in (("rounds", GREEN, 0.15), ("pairs", SKY, -0.15)):
            part = found[(found["index"] == index) & (found["method"] == f"Quadrature, {method}")]
            for calls, marker in ((5, "o"), (10, "s"), (20, "^")):
                some = part[part["calls"] == calls].set_index("kind").reindex(names)
                label = f"{method}, {calls} calls per feature"
                places = np.arange(len(names)) + shift
                axes.plot(some["ratio"], places, marker, color=colour, ms=5, label=label)
        axes.axvline(1, color="black", lw=0.8, ls="--")
        axes.set_yticks(range(len(names)), [KINDS[name] for name in names])
        axes.set_title(f"{index.capitalize()} values", fontsize=10)
        axes.grid(axis="y", alpha=0.2)
        axes.set_xlim(0, None)
        axes.set_xlabel("error over that of the best of shapiq (1: equal)", fontsize=9)
    legend_below(figure, panels[0, 0], 3)
    save(figure, "league-kinds")


def photo_part(found: pd.DataFrame) -> dict[str, str]:
    """Error on photos beside our own regressions: a figure, and numbers of the text."""
    lines = {
        "EBLIME(local=False), coin tosses": ("ridge, random masks", GREY),
        "EBLIME(), pairs": ("EBLIME(), pairs: the default", BLUE),
        "Quadrature(), pairs": ("Quadrature(), pairs", SKY),
        "Quadrature(), rounds": ("Quadrature(), rounds", GREEN),
    }
    titles = {"p13": "11 to 13 superpixels", "p40": "28 to 45 superpixels"}
    figure, panels = canvas(1, 2, 8.4, 3.1, sharey=True)
    for axes, (case, title) in zip(panels[0], titles.items(), strict=True):
        for method, (name, colour) in lines.items():
            part = found[(found["case"] == case) & (found["method"] == method)]
            axes.plot(part["N"], part["error"], "-o", ms=4, color=colour, label=name)
        axes.set_yscale("log")
        axes.set_yticks([0.005, 0.01, 0.02, 0.05], ["0.005", "0.01", "0.02", "0.05"])
        axes.set_title(title, fontsize=10)
        log_ticks(axes, sorted(found[found["case"] == case]["N"].unique()), "masks")
    panels[0, 0].set_ylabel("root mean square error", fontsize=9)
    legend_below(figure, panels[0, 0], 4)
    save(figure, "error-photos")

    wide = found[found["case"] == "p13"].pivot(index="N", columns="method", values="error").loc[400]
    rounds = found[found["method"] == "Quadrature(), rounds"]
    last = rounds[(rounds["case"] == "p13") & (rounds["N"] == 400)].iloc[0]
    ours = wide["Quadrature(), rounds"]
    return {
        "photo-ridge": f"{ours / wide['EBLIME(local=False), coin tosses']:.2f}",
        "photo-default": f"{ours / wide['EBLIME(), pairs']:.2f}",
        "photo-covered": f"{100 * last['coverage']:.0f}",
        "photo-top": f"{100 * last['top_1']:.0f}",
        "photo-covered-all": span(rounds["coverage"]),
    }


def faithfulness_part(found: pd.DataFrame) -> dict[str, str]:
    """How often our methods are better or worse than others: a figure, and every worse case."""
    gaps = {ours: paired_gaps(independent(found), ours) for ours in OURS}
    figure, panels = canvas(1, len(OURS), 8.4, 2.5, sharey=True)
    words: dict[str, str] = {}
    for axes, (ours, gap) in zip(panels[0], gaps.items(), strict=True):
        for k, peer in enumerate(PEERS[::-1]):
            part = gap[gap["other"] == peer]
            better, worse = int((part["high"] < 0).sum()), int((part["low"] > 0).sum())
            start = 0
            for count, colour in (
                (better, GREEN),
                (len(part) - better - worse, "#e3e3e3"),
                (worse, RED),
            ):
                axes.barh(k, count, left=start, color=colour, height=0.7)
                if count:
                    shade = "black" if colour == "#e3e3e3" else "white"
                    where = start + count / 2, k
                    axes.annotate(str(count), where, ha="center", va="center", color=shade, size=8)
                start += count
            words |= {f"better-{ours}-{peer}": str(better), f"worse-{ours}-{peer}": str(worse)}
            words["faithfulness-cells"] = str(len(part))
        axes.set_title(ours, fontsize=10)
        axes.spines["left"].set_visible(False)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
    panels[0, 0].set_yticks(range(len(PEERS)), PEERS[::-1])
    for colour, name in ((GREEN, "better"), ("#e3e3e3", "no difference shown"), (RED, "worse")):
        panels[0, 0].bar(0, 0, color=colour, label=name)
    legend_below(figure, panels[0, 0], 3)
    save(figure, "faithfulness")
    return {**words, "worse": worse_table(gaps)}


def worse_table(gaps: Mapping[str, pd.DataFrame]) -> str:
    """Where one of ours is worse than another package: the 95 % interval is above zero."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for ours, gap in gaps.items():
        for row in gap[gap["other"].isin(PEERS) & (gap["low"] > 0)].itertuples():
            found.setdefault((TITLES[row.dataset], row.measure, row.other), {})[ours] = row.gap
    rows = [[*key, ", ".join(by), f"{max(by.values()):.3f}"] for key, by in found.items()]
    return table(["data", "measure", "better", "than", "by at most"], rows, right=4)


def independent(found: pd.DataFrame) -> pd.DataFrame:
    """The rows, with the patches of one drilled hole averaged: they show the same hole."""
    holes = found["item"].mask(found["dataset"] == "drilled", found["item"] % 8)
    keys = ["dataset", "method", "item"]
    return found.assign(item=holes).groupby(keys, sort=False).mean(numeric_only=True).reset_index()


def agreement_part(again: pd.DataFrame) -> dict[str, str]:
    """Agreement of repeated runs with 100 masks: a figure."""
    part = again[again["n"] == 100]
    means = part.groupby(["dataset", "method"], sort=False)[["overlap", "spread"]].mean()
    methods = {
        "lime": ("lime", GREY, "o"),
        "eblime+paired": ("eblime", BLUE, "s"),
        "quadrature+paired": ("quadrature", SKY, "D"),
        "quadrature+adaptive": ("quadrature, rounds", GREEN, "^"),
    }
    names = list(REPEATS)[::-1]
    figure, panels = canvas(1, 2, 8.4, 2.4, sharey=True)
    for method, (label, colour, marker) in methods.items():
        for axes, column in zip(panels[0], ("overlap", "spread"), strict=True):
            for k, name in enumerate(names):
                if (name, method) in means.index:
                    value = means.loc[(name, method), column]
                    if column == "spread":
                        value /= means.loc[(name, "lime"), column]
                    shown = label if name == "stored-photos" else None
                    axes.plot(value, k, marker, color=colour, ms=6, label=shown)
    for axes, title in zip(
        panels[0],
        ("overlap of the top 3 of two runs (1: equal)", "spread over runs, relative to lime's"),
        strict=True,
    ):
        axes.set_xlabel(title, fontsize=9)
        axes.set_xlim(0, 1.05)
        axes.grid(axis="y", alpha=0.3)
    panels[0, 0].set_yticks(range(len(names)), [TITLES[name] for name in names])
    legend_below(figure, panels[0, 0], 4)
    save(figure, "agreement")
    photos = means["overlap"].xs("stored-photos")
    wanted = {"lime": "lime", "eblime": "eblime+paired", "rounds": "quadrature+adaptive"}
    return {f"again-{name}": f"{float(photos[method]):.2f}" for name, method in wanted.items()}
