"""Write docs/explanation/results.md, coverage.md and their figures from the stored tables.

make results
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd

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
    "eblime-ridge": "EBLIME, one ridge parameter",
    "eblime": "EBLIME",
}
PRINTED = ("bayeslime", "eblime-paper")  # the methods of the paper's Table 2
MATCHED = ("bayeslime", "eblime-paper", "eblime-ridge", "eblime")
COUNTED = (100, 200, 400)  # numbers of masks
PAIRS = (("eblime", "lime"), ("eblime", "bayeslime"), ("eblime-paper", "lime"))
PARTS = {
    "ultrasonic": "simulated ultrasonic scans",
    "tiles": "magnetic tiles",
    "drilled": "real ultrasonic scans of drilled holes",
}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table with right-aligned numbers."""
    ruler = ["---", *(["---:"] * (len(head) - 1))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ruler, *rows))


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
            for cell in (in_the_paper(name, method), measured(part, method, "paper"))
        ]
        paper.append([*head, *cells])
        matched.append([*head, *(measured(part, method, "exact") for method in MATCHED)])
    head = ["", "photos, digits or rows"]
    printed = [f"{NAMES[m]}, {who}" for m in PRINTED for who in ("in the paper", "here")]
    return {
        "coverage-paper": table([*head, *printed], paper),
        "coverage-matched": table([*head, *(NAMES[method] for method in MATCHED)], matched),
    }


def measured(part: pd.DataFrame, method: str, truth: str) -> str:
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


def main() -> None:
    """Draw the figures and write the pages."""
    about = json.loads((RESULTS / "runs.json").read_text())
    covered = pd.read_csv(RESULTS / "coverage.csv")
    located = pd.read_csv(RESULTS / "localisation.csv")
    again = pd.read_csv(RESULTS / "stability.csv")
    draw_figures(located)
    filled = {
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
    }
    filled |= claims(covered)
    for page in ("results", "coverage"):
        text = (DOCS / "explanation" / f"{page}.in.md").read_text(encoding="utf8")
        for name, value in filled.items():
            text = text.replace(f"@{name}@", value)
        (DOCS / "explanation" / f"{page}.md").write_text(text, encoding="utf8")


if __name__ == "__main__":
    main()
