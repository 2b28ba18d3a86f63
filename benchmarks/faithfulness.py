"""Run the league of faithfulness and the study of repeated runs, and write their page.

Stores the frames in docs/results and writes docs/explanation/faithfulness.md from them. A run that
was interrupted resumes. Takes about ten minutes on 16 cores, and the training of the networks for
tiles and drilled holes. `--page` writes the page from the stored frames alone.

    pip install -e '.[test,bench]' && EBLIME_DATA=... python benchmarks/faithfulness.py --jobs 2
"""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from eblime.evaluation.faithfulness import faithfulness, paired_gaps, standings
from eblime.evaluation.metrics import HIGHER_IS_BETTER
from eblime.evaluation.stability import stability

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results"
WORK = Path("eblime-bench")
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
MASKED = [
    "lime",
    "bayeslime",
    "eblime",
    "eblime+paired",
    "quadrature+paired",
    "quadrature+adaptive",
]
TABULAR = ["lime", "bayeslime", "eblime", "eblime+paired", "quadrature+paired"]
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


def run(jobs: int) -> None:
    """Run what is not finished and store the frames."""
    rows = []
    for name, settings in LEAGUE.items():
        out = WORK / f"faithfulness-{name}"
        rows.append(faithfulness(name, **settings, jobs=jobs, out=out, progress=True))
    numbers = pd.concat(rows)
    for name in HIGHER_IS_BETTER:
        numbers[name] = numbers[name].map(lambda value: float(f"{value:.4g}"))
    numbers.to_csv(RESULTS / "faithfulness.csv", index=False)
    again = []
    for name, settings in REPEATS.items():
        methods = MASKED if name.startswith("stored") else TABULAR
        out = WORK / f"agreement-{name}"
        found = stability(name, **settings, methods=methods, jobs=jobs, out=out, progress=True)
        again.append(found)
    pd.concat(again).round(5).to_csv(RESULTS / "agreement.csv", index=False)
    packages = ("eblime", "lime", "shap", "captum", "numpy", "scikit-learn", "torch")
    about = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    (RESULTS / "faithfulness.json").write_text(json.dumps(about, indent=1) + "\n")


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table with right-aligned numbers."""
    ruler = ["---", *(["---:"] * (len(head) - 1))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ruler, *rows))


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


def stability_part(again: pd.DataFrame) -> str:
    """Agreement of repeated runs."""
    names = ["overlap", "sign_flips", "vsi", "csi", "spread", "claimed"]
    parts = []
    for name in REPEATS:
        part = again[again["dataset"] == name]
        if part.empty:
            continue
        means = part.groupby(["method", "n"], sort=False)[names].mean()
        rows = [
            [method, str(n), *("" if pd.isna(v) else f"{v:.3f}" for v in row)]
            for (method, n), row in means.iterrows()
        ]
        items = part["item"].nunique()
        parts.append(
            f"### {TITLES[name]}\n\n{items} inputs, 5 runs each.\n\n"
            f"{table(['', 'masks', *names], rows)}"
        )
    return "\n\n".join(parts)


def write_page() -> None:
    """Write the page from the stored frames."""
    found = pd.read_csv(RESULTS / "faithfulness.csv")
    again = pd.read_csv(RESULTS / "agreement.csv")
    about = json.loads((RESULTS / "faithfulness.json").read_text())
    text = (DOCS / "explanation" / "faithfulness.in.md").read_text(encoding="utf8")
    parts = {
        "league": league_part(found),
        "missing": missing_part(found),
        "worse": worse_part(found),
        "count": count_part(found),
        "stability": stability_part(again),
        "versions": ", ".join(f"{name} {value}" for name, value in about.items()),
    }
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    (DOCS / "explanation" / "faithfulness.md").write_text(text, encoding="utf8")


def main() -> None:
    """Run the studies unless only the page is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if not options.page:
        run(options.jobs)
    write_page()


if __name__ == "__main__":
    main()
