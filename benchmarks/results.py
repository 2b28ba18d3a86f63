"""Write docs/explanation/results.md, coverage.md and their figures from the stored tables.

make results
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
from md_table import table

from eblime.evaluation.cases import CASES
from eblime.evaluation.figures import coverage_figure, lambda_figure
from eblime.evaluation.localisation import counts, mcnemar
from eblime.evaluation.paper import LOCALISED, TABLE_2

DOCS = Path(__file__).parents[1] / "docs"
RESULTS, IMAGES = DOCS / "results", DOCS / "images"
NAMES = {
    "lime": "LIME",
    "bayeslime": "BayesLIME",
    "eblime-paper": "EBLIME as printed",
    "eblime-ridge": "EBLIME",
}
PAIRS = (("eblime-ridge", "lime"), ("eblime-ridge", "bayeslime"), ("eblime-paper", "lime"))
PARTS = {
    "ultrasonic": "simulated ultrasonic scans",
    "tiles": "magnetic tiles",
    "drilled": "real ultrasonic scans of drilled holes",
}


def percent(value: float) -> str:
    """A share in per cent, with one decimal."""
    return f"{100 * value:.1f}"


COLUMNS = (  # of the table of coverage: name, method, truth; None is the paper's own number
    ("BayesLIME, printed", "bayeslime", None),
    ("BayesLIME, paper's truth", "bayeslime", "paper"),
    ("EBLIME as printed, printed", "eblime-paper", None),
    ("EBLIME as printed, paper's truth", "eblime-paper", "paper"),
    ("EBLIME as printed, matched truth", "eblime-paper", "exact"),
    ("BayesLIME, matched truth", "bayeslime", "exact"),
    ("**EBLIME**, **matched truth**", "eblime-ridge", "exact"),
)
COUNTED = (100, 200, 400)  # masks


def coverage_table(found: pd.DataFrame) -> str:
    """Our coverage under both truths and the paper's, N = 100, 200, 400."""
    rows = []
    for name, case in CASES.items():
        part = found[found["dataset"] == name]
        if part.empty:
            continue
        cells = [_coverage(part, name, method, truth) for _, method, truth in COLUMNS]
        rows.append([case.title, str(int(part["items"].max())), *cells[:-1], f"**{cells[-1]}**"])
    return table(["", "photos, digits or rows", *(name for name, _, _ in COLUMNS)], rows)


def _coverage(part: pd.DataFrame, dataset: str, method: str, truth: str | None) -> str:
    """A cell of the table of coverage; empty if the paper has no such row."""
    if truth is None:
        printed = TABLE_2.get(dataset, {}).get(method)
        return "" if printed is None else " / ".join(percent(printed[n]) for n in COUNTED)
    chosen = part[(part["method"] == method) & (part["truth"] == truth)].set_index("n")
    return " / ".join(percent(chosen.loc[n, "coverage"]) for n in COUNTED)


def claims(found: pd.DataFrame) -> dict[str, str]:
    """Numbers in the text of the pages, which thus always agree with the tables."""
    many = found[~found["dataset"].isin(["corn", "scuba-diver"]) & (found["n"] >= 100)]

    def span(method: str, truth: str) -> str:
        part = many[(many["method"] == method) & (many["truth"] == truth)]["coverage"]
        return f"{percent(part.min())} to {percent(part.max())}"

    exact = many[many["truth"] == "exact"]
    scores = exact.pivot_table(index="dataset", columns="method", values="score")
    better = int((scores["eblime-ridge"] < scores["bayeslime"]).sum())
    return {
        "ours-matched": span("eblime-ridge", "exact"),
        "bayeslime-matched": span("bayeslime", "exact"),
        "printed-paper": span("eblime-paper", "paper"),
        "printed-matched": span("eblime-paper", "exact"),
        "bayeslime-paper": span("bayeslime", "paper"),
        "score-ours": f"{scores['eblime-ridge'].mean():.4f}",
        "score-bayeslime": f"{scores['bayeslime'].mean():.4f}",
        "score-printed": f"{scores['eblime-paper'].mean():.4f}",
        "score-better": f"{better} of {len(scores)}",
    }


def score_table(found: pd.DataFrame) -> str:
    """Interval scores and widths under the matched truth, averaged over N >= 100."""
    part = found[(found["truth"] == "exact") & (found["n"] >= 100)]
    scores = part.pivot_table(index="dataset", columns="method", values="score", sort=False)
    widths = part.pivot_table(index="dataset", columns="method", values="width", sort=False)
    methods = ["bayeslime", "eblime-paper", "eblime-ridge"]
    rows = [
        [
            CASES[name].title,
            *(f"{scores.loc[name, m]:.4f} ({widths.loc[name, m]:.3f})" for m in methods),
        ]
        for name in scores.index
    ]
    rows.append(
        ["**mean**", *(f"**{scores[m].mean():.4f} ({widths[m].mean():.3f})**" for m in methods)]
    )
    return table(["interval score (width)", *(NAMES[m] for m in methods)], rows)


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
            test = mcnemar(part, first, second)
            lines.append(
                f"- {NAMES[first]} against {NAMES[second]}: better on {test['first']:.0f}, "
                f"worse on {test['second']:.0f} of {test['of']:.0f} {unit}, "
                f"exact p = {test['p']:.2g}, "
                "difference "
                f"{100 * test['difference']:+.1f} points ({100 * test['low']:+.1f} to "
                f"{100 * test['high']:+.1f})."
            )
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
    """Draw the figures of coverage and of the ridge parameter."""
    photos = pd.read_csv(RESULTS / "coverage-french-bulldog.csv")
    both = photos[photos["truth"].isin(["paper", "exact"])]
    coverage_figure(both, "French bulldog").savefig(IMAGES / "coverage.png", dpi=80)
    ridge = pd.read_csv(RESULTS / "lambda.csv")
    good = ridge[ridge["score"] > 0.5]
    printed = (located["dataset"] == "ultrasonic") & (located["method"] == "eblime-paper")
    scans = located[printed & located["found"]]
    scans = scans.assign(log_mean=scans["lambda_mean"].map(math.log))
    names = f"{len(good)} French bulldogs", f"{len(scans)} ultrasonic scans"
    figure = lambda_figure(dict(zip(names, (good, scans), strict=True)))
    figure.savefig(IMAGES / "lambda.png", dpi=80)


def fill_pages(filled: dict[str, str]) -> None:
    """Write the pages from their templates."""
    for page in ("results", "coverage"):
        text = (DOCS / "explanation" / f"{page}.in.md").read_text(encoding="utf8")
        for name, value in filled.items():
            text = text.replace(f"@{name}@", value)
        (DOCS / "explanation" / f"{page}.md").write_text(text, encoding="utf8")


def main() -> None:
    """Draw the figures and write the pages."""
    about = json.loads((RESULTS / "runs.json").read_text())
    covered = pd.read_csv(RESULTS / "coverage.csv")
    located = pd.read_csv(RESULTS / "localisation.csv")
    draw_figures(located)
    seconds = [[name, f"{value:.0f}"] for name, value in about["seconds"].items()]
    fill_pages(
        {
            "coverage": coverage_table(covered),
            "scores": score_table(covered),
            "localisation": localisation_part(located),
            "stability": stability_part(pd.read_csv(RESULTS / "stability.csv")),
            "versions": ", ".join(f"{name} {v}" for name, v in about["versions"].items()),
            "python": about["python"],
            "runs": table(["study", "seconds on two cores"], seconds),
            **claims(covered),
        }
    )


if __name__ == "__main__":
    main()
