"""Figures and numbers of the page about the paper's studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from studies.cases import CASES
from studies.charts.style import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    NAMES,
    PALE,
    PRINTED,
    RED,
    canvas,
    legend_below,
    save,
    span,
)
from studies.localisation import PAIRS, SETTINGS, counts, mcnemar
from studies.paper import LOCALISED, TABLE_2
from studies.tables import table

__all__ = [
    "GROUPS",
    "defect_part",
    "figure_parts",
    "good_explanations",
    "stability_part",
    "table_2_part",
    "verdict",
]

CLOSE = 0.05  # coverages that differ by less are called equal
PARTS = {
    "ultrasonic": "Simulated scans",
    "tiles": "Magnetic tiles",
    "drilled": "Drilled holes (real scans)",
}
# the groups of figure 5: dataset, kind of masks -> what they are
GROUPS = {
    ("french-bulldog", "coarse"): "dogs, at most 13 superpixels, paper's masks",
    ("french-bulldog", "paper"): "dogs, paper's masks",
    ("ultrasonic", "paper"): "scans, paper's masks",
    ("french-bulldog", "library"): "dogs, library's masks",
    ("ultrasonic", "library"): "scans, library's masks",
}


def table_2_part(found: pd.DataFrame) -> dict[str, str]:
    """Table 2: a figure of N = 100 and 400, in the paper and here."""
    whole = found[found["truth"] == "paper"].set_index(["dataset", "method", "n"])
    found = whole["coverage"]
    names = list(TABLE_2)[::-1]
    figure, panels = canvas(2, 2, 8.4, 6.2, sharex=True, sharey=True)
    for row, n in zip(panels, (100, 400), strict=True):
        for axes, method in zip(row, PRINTED, strict=True):
            here = [found[name, method, n] for name in names]
            paper = [TABLE_2[name][method][n] for name in names]
            axes.hlines(range(len(names)), here, paper, color=PALE, lw=1.5)
            axes.plot(paper, range(len(names)), "o", mfc="white", color=BLUE, label="in the paper")
            axes.plot(here, range(len(names)), "o", color=GREEN, label="here")
            axes.axvline(0.95, color="black", lw=0.8, ls="--")
            axes.set_title(f"{NAMES[method]}, {n} masks", fontsize=10)
            axes.set_xlim(0, 1.02)
            axes.tick_params(axis="y", labelsize=7.5)
    panels[0, 0].set_yticks(range(len(names)), [CASES[name].title for name in names])
    for axes in panels[1]:
        axes.set_xlabel("coverage, equation (1) as the truth", fontsize=9)
    legend_below(figure, panels[0, 0], 2)
    save(figure, "paper-table-2")
    gaps = {
        (name, method): max(
            abs(found[name, method, n] - TABLE_2[name][method][n]) for n in (100, 200, 400)
        )
        for name in TABLE_2
        for method in PRINTED
    }
    apart = {
        method: sum(gap > CLOSE for (_, other), gap in gaps.items() if other == method)
        for method in PRINTED
    }
    reasons = whole[["expected", "shrunk"]].sub(found, axis=0).abs()
    reasons = reasons.loc[[(name, "bayeslime", n) for name in TABLE_2 for n in (100, 200, 400)]]
    left = reasons.groupby(level="dataset", sort=False).max().min(axis=1) > CLOSE
    return {
        **{f"apart-{method}": f"{count} of {len(TABLE_2)}" for method, count in apart.items()},
        "explained": f"{(~left).sum()} of {len(left)}",
        "unexplained": ", ".join(CASES[str(name)].title for name in left.index[left]),
    }


def defect_part(found: pd.DataFrame) -> dict[str, str]:
    """Table 1 for three kinds of parts: a figure of two settings, and tests between methods."""
    both = list(SETTINGS)[:2]
    figure, panels = canvas(1, 3, 8.4, 3.0, sharey=True)
    tests = []
    for axes, (name, title) in zip(panels[0], PARTS.items(), strict=True):
        part = found[found["dataset"] == name]
        for k, (how, colour) in enumerate(zip(both, (GREY, GREEN), strict=True)):
            shares = counts(setting(part, how)).set_index("method").loc[list(NAMES)]
            errors = [shares["share"] - shares["low"], shares["high"] - shares["share"]]
            places = np.arange(len(NAMES)) + 0.4 * k - 0.2
            axes.bar(places, shares["share"], 0.38, color=colour, label=how)
            axes.errorbar(
                places,
                shares["share"],
                np.clip(errors, 0, 1),
                fmt="none",
                ecolor="black",
                elinewidth=0.8,
            )
        if name == "ultrasonic":
            hits = [LOCALISED[m][0] / LOCALISED[m][1] if m in LOCALISED else np.nan for m in NAMES]
            axes.plot(
                np.arange(len(NAMES)),
                hits,
                "D",
                ms=5,
                mfc="white",
                color=RED,
                label="the paper, its own scans",
            )
        axes.set_title(title, fontsize=10)
        short = ["LIME", "BayesLIME", "as printed", "one ridge", "EBLIME"]
        axes.set_xticks(range(len(NAMES)), short, rotation=35, ha="right")
        for first, second in PAIRS:
            outcomes = [mcnemar(setting(part, how), first, second) for how in both]
            pair = f"{NAMES[first]} against {NAMES[second]}"
            points = [f"{100 * test['difference']:+.0f}" for test in outcomes]
            tests.append([title, pair, *points, verdict(outcomes)])
    panels[0, 0].set_ylabel("share of defects found", fontsize=9)
    legend_below(figure, panels[0, 0], 3)
    save(figure, "paper-table-1")
    return {
        "defect-tests": table(["", "points of difference", *both, "in both"], tests, right=2),
        **hiding_claims(found),
    }


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


def setting(found: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one hiding and design of Table 1."""
    hide, design = SETTINGS[name]
    return found[(found["hide"] == hide) & (found["design"] == design)]


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
            f"hiding-{name}": f"{paper[name, 'eblime']:.0f} and {library[name, 'eblime']:.0f} %"
            for name in PARTS
        },
    }


def stability_part(found: pd.DataFrame) -> dict[str, str]:
    """Repeated runs of the paper's methods: a figure."""
    means = found.groupby(["dataset", "method", "n"])[["overlap", "spread", "claimed"]].mean()
    names = list(dict.fromkeys(found["dataset"]))
    figure, panels = canvas(1, 2, 8.4, 2.8)
    width = 0.15
    for k, method in enumerate(NAMES):
        places = np.arange(len(names)) + width * (k - 2)
        few, more = (means.loc[[(name, method, n) for name in names]] for n in (100, 400))
        how = {"color": COLOURS[method], "width": 0.9 * width}
        panels[0, 0].bar(places, more["overlap"], **how, alpha=0.4)
        panels[0, 0].bar(places, few["overlap"], **how, label=NAMES[method])
        panels[0, 1].bar(places, few["claimed"] / few["spread"], **how)
    panels[0, 1].axhline(1, color="black", lw=0.8, ls="--")
    titles = "overlap of the top 3 of two runs", "posterior sd over sd of the runs"
    for axes, title in zip(panels[0], titles, strict=True):
        axes.set_xticks(range(len(names)), [CASES[name].title for name in names])
        axes.set_title(title, fontsize=10)
    legend_below(figure, panels[0, 0], 5)
    save(figure, "paper-stability")
    ratios = means["claimed"] / means["spread"]
    return {
        "sd-ours": span([ratios[name, "eblime", 100] for name in names], 1, times=1),
        "sd-printed": span([ratios[name, "eblime-paper", 100] for name in names], 1, times=1),
    }


def figure_parts(found: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Numbers about the paper's figures 1, 2, 4 and 5."""
    cat, dogs, scans = (
        found[name] for name in ("figure-1", "figures-french-bulldog", "figures-ultrasonic")
    )
    certain = dogs[dogs["score"] >= 0.9]
    shown = certain[certain["item"].isin(certain["item"].unique()[:3])]
    printed = shown[(shown["masks"] == "paper") & (shown["method"] == "eblime-paper")]
    r2 = scans[scans["method"] == "eblime"].groupby("masks")["r2"].median()
    good = good_explanations(pd.concat([dogs, scans]))
    half = good[good["method"] == "eblime-half-line"]
    above = {
        masks: f"{(part['above'] > 0.5).sum()} of {len(part)}"
        for masks, part in half[half["dataset"] == "french-bulldog"].groupby("masks")
    }
    free = good[(good["masks"] == "coarse") & (good["method"] == "eblime-ridge")]
    inside = cat[(cat["low"] <= cat["truth"]) & (cat["truth"] <= cat["high"])]
    counted = {
        f"cat-{masks}-{n}": f"{(inside['masks'].eq(masks) & inside['n'].eq(n)).sum()} of 8"
        for masks in ("paper", "library")
        for n in (20, 200)
    }
    return {
        **counted,
        "dogs-certain": str(certain["item"].nunique()),
        "dogs-shared": ", ".join(map(str, printed["shared"])),
        "dogs-ratio": f"{printed['sd_ratio'].min():.1f} to {printed['sd_ratio'].max():.1f}",
        "dogs-variance": variance_line(certain, "scaled_region"),
        "scans-variance": variance_line(both_found(scans), "scaled_top"),
        "scans-r2-paper": f"{r2['paper']:.2f}",
        "scans-r2-library": f"{r2['library']:.2f}",
        "ridge-coarse": above["coarse"],
        "ridge-paper": above["paper"],
        "ridge-below": f"{(free['median'] < 1).sum()} of {len(free)}",
    }


def good_explanations(found: pd.DataFrame) -> pd.DataFrame:
    """The explanations of figure 5: recognised dogs, and defects that EBLIME as printed finds."""
    printed = found[(found["method"] == "eblime-paper") & (found["covered"] >= 0.5)]
    keys = ["dataset", "item", "masks"]
    hits = pd.MultiIndex.from_frame(printed[keys])
    dogs = (found["dataset"] == "french-bulldog") & (found["score"] > 0.5)
    scans = (found["dataset"] == "ultrasonic") & pd.MultiIndex.from_frame(found[keys]).isin(hits)
    return found[dogs | scans]


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
        parts.append(f"{larger} of {total} with the {masks}'s masks (sign test p = {p:.2g})")
    return " and ".join(parts)
