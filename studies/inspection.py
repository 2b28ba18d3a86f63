"""Inspection: what explanations of ultrasonic scans find, from a single A-scan to a curve.

Part `signals`: of A-scans that a network says show a hole, how often does the most important window
hold its echo? Part `volume`: do the most important blocks of the real 3-D scan hold its eight
holes? The network of both was trained on simulated echoes alone. Part `detection`: simulated scans
with one pore of 20 sizes; a pore is found by the network if its score is above one half, and by the
explanation if a superpixel that the pore touches is among the three most important with
probability .9.

    python -m studies inspection --part detection --jobs 16 --store
    python -m studies inspection --part pictures    (after the others, with --store)
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import ndimage, stats

import eblime
from eblime import measures
from eblime._types import BoolArray
from eblime.cli.kinds import parse_hide
from eblime.datasets import ultrasonic_network
from eblime.plot.style import COLOURS
from studies.charts.style import IMAGES, RESULTS
from studies.data import sources
from studies.data.echoes import RATE, echo_network, hole_probability, plate, simulated_echoes
from studies.data.scans import Block, block_image, pore_mask
from studies.runner import Row, add_run_options, positive, run_study, study_generator
from studies.tables import frame_table, write_csv

__all__ = ["inspection"]

WINDOWS, BLOCKS = 20, (12, 11, 5)
SIZES = np.geomspace(0.2, 1.6, 20).round(3)  # radius of a pore in millimetres
NEAR, WIDE = 10, 8.0  # what an echo covers: samples up and down, and millimetres to each side
NAMES = {"holds": "holds the echo's time", "near": "within 10 samples of it"}
DEFAULTS = {"signals": (200, 200), "volume": (2000, 5), "detection": (200, 600)}  # masks, items


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--part", default="signals", choices=[*DEFAULTS, "pictures"])
    parser.add_argument("--n", type=positive, help="masks per input (default: 200; volume: 2000)")
    parser.add_argument(
        "--hide", type=parse_hide, help="what hidden parts show (signals: bridge; others: mean)"
    )
    parser.add_argument("--store", action="store_true", help="write the rows to docs/results")
    add_run_options(parser, many="200, 5 or 600")


def run(options: argparse.Namespace) -> None:
    """Run a part; print its table, and store the rows if wanted."""
    settings = vars(options)
    store = settings.pop("store")
    if options.part == "pictures":
        draw_pictures(settings["seed"])
        return
    rows = inspection(**settings)
    print(f"\n{frame_table(SUMMARIES[options.part](rows))}\n")
    if store:
        write_csv(rows, RESULTS / f"inspection-{options.part}.csv", digits=5)


def inspection(
    part: str = "signals",
    *,
    n: int | None = None,
    hide: str | float | None = None,
    items: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    **how: Any,
) -> pd.DataFrame:
    """One row per A-scan, per hole and seed, or per pore. `how` are settings of `run_study`."""
    masks, most = DEFAULTS[part]
    settings: dict[str, Any] = {
        "part": part,
        "n": n or masks,
        "hide": ("bridge" if part == "signals" else "mean") if hide is None else hide,
        "seed": seed,
    }
    inputs = []
    if part == "detection":
        settings |= {"sizes": SIZES.tolist(), "echoes": [pore_echo(r, Block()) for r in SIZES]}
    else:
        echo_network()  # train once, here, and not in every process
        inputs = sources("drilled")
    numbers = range(min(items or most, most))
    return run_study(ROWS[part], settings, numbers, inputs=inputs, jobs=jobs, **how)


def a_scan(settings: Mapping[str, Any], number: int) -> tuple[Any, int, float]:
    """An A-scan with a hole, the hole's number and the time of its echo.

    The first 72 are real, nine of each hole, the others simulated.
    """
    if number < 72:
        hole, (along, across) = number // 9, divmod(number % 9, 3)
        x, y, time = plate().holes[hole]
        return plate().volume[:, int(x) + along - 1, int(y) + across - 1], hole, time
    made = simulated_echoes(study_generator(settings, number, 1), 1)
    return made.signals[0], number, float(made.times[0])


def signal_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """How one A-scan is explained."""
    signal, hole, time = a_scan(settings, number)
    e = explain_signal(signal, settings, number)
    edges = np.linspace(0, len(signal), WINDOWS + 1)
    holds = (edges[:-1] <= time) & (time < edges[1:])
    near = (edges[:-1] <= time + NEAR) & (time - NEAR < edges[1:])
    top = int(e.posterior.mean.argmax())
    return [
        {
            **{"source": "real" if number < 72 else "simulated", "hole": hole},
            **{"score": e.prediction, "time": time, "top": top, "holds": bool(holds[top])},
            **{"near": bool(near[top]), "chance_near": float(near.mean())},
            "p_near": float(e.posterior.top_k_probability(1, by="value")[near].sum()),
            "r2": e.posterior.r2_held_out,
        }
    ]


def explain_signal(signal: Any, settings: Mapping[str, Any], number: int) -> eblime.Explanation:
    """Explain the probability that an A-scan shows a hole."""
    explainer = eblime.SignalExplainer(
        hole_probability,
        segmentation=("windows", {"n": WINDOWS}),
        hide=settings["hide"],
        n_masks=settings["n"],
        rate=RATE,
        progress=False,
    )
    return explainer.explain(signal, rng=study_generator(settings, number))


def volume_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """The eight holes in one explanation of the real scan; the number is that of the seed."""
    e = explain_volume(settings, number)
    rank = stats.rankdata(-e.posterior.mean, method="ordinal")
    t, x, y = np.indices(e.segments.shape, sparse=True)
    rows, near_any = [], np.zeros(len(rank), dtype=bool)
    for hole, (along, across, time) in enumerate(plate().holes):
        echo = (np.abs(t - time) <= NEAR) & (np.hypot(2 * x - along, 2 * y - across) <= WIDE)
        near = np.unique(e.segments[echo])
        near_any[near] = True
        own = int(e.segments[round(time), round(along / 2), round(across / 2)])
        rows.append(
            {
                **{"seed": number, "hole": hole, "blocks": len(rank), "near": len(near)},
                **{"rank": int(rank[own]), "best_rank": int(rank[near].min())},
                **{"score": e.prediction, "r2": e.posterior.r2_held_out},
            }
        )
    share = {f"top_{k}": float(near_any[rank <= k].mean()) for k in (8, 16, 32)}
    return [{**row, **share, "chance": float(near_any.mean())} for row in rows]


def explain_volume(settings: Mapping[str, Any], number: int) -> eblime.Explanation:
    """Explain the share of A-scans that show a hole, for every second position of the scan."""
    explainer = eblime.VolumeExplainer(
        share_of_holes,
        segmentation=("blocks", {"n": BLOCKS}),
        hide=settings["hide"],
        n_masks=settings["n"],
        progress=False,
    )
    return explainer.explain(plate().volume[:, ::2, ::2], rng=study_generator(settings, number))


def share_of_holes(volumes: Any) -> Any:
    """The mean probability of a hole over the A-scans of each volume, (n, T, X, Y) -> (n,)."""
    return [float(hole_probability(one.reshape(len(one), -1).T).mean()) for one in volumes]


def detection_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One simulated scan with a pore, as the network and its explanation see it."""
    rng, block = study_generator(settings, number, 1), Block()
    size = float(SIZES[number % len(SIZES)])
    place = [rng.uniform(6, block.width - 6), rng.uniform(5, block.depth - 4)]
    pores = np.array([[*place, size]])
    image = block_image(rng, block, pores, echo=pore_echo(size, block))
    explainer = eblime.ImageExplainer(
        ultrasonic_network(),
        segmentation=("slic", {"n_segments": 40}),
        hide=settings["hide"],
        n_masks=settings["n"],
        calls=eblime.Calls(batch_size=50),
        progress=False,
    )
    e = explainer.explain(image, target=1, rng=study_generator(settings, number))
    pore = pore_mask(np.array([[*place, max(size, 0.3)]]), block)
    regions = [pore_region(e.segments, pore, least=share) for share in (0, 0.25)]
    draws = e.posterior.sample(2000, rng=study_generator(settings, number, 2))
    third = np.sort(draws, axis=1)[:, -3]
    p_top, p_quarter = (float((draws[:, r].max(axis=1) >= third).mean()) for r in regions)
    p, r = len(regions[0]), int(regions[0].sum())
    chance = 1 - stats.hypergeom(p, r, 3).pmf(0)
    return [
        {
            **{"size": size, "depth": place[1], "score": e.prediction, "p_top": p_top},
            **{"classified": e.prediction > 0.5, "located": p_top >= 0.9},
            **{"superpixels": p, "region": r, "chance": float(chance)},
            **{"r2": e.posterior.r2_held_out, "p_quarter": p_quarter},
        }
    ]


def pore_echo(radius: float, block: Block) -> float:
    """How strong the echo of a pore is, as a share of that of a large one with 1 mm radius.

    It grows with the radius, and vanishes with its third power below the wavelength (Rayleigh).
    """
    waves = 2 * np.pi * block.frequency / block.speed * radius
    return float(radius * waves**2 / (1 + waves**2))


def pore_region(segments: Any, pore: BoolArray, *, least: float = 0) -> BoolArray:
    """Superpixels that hold a pixel of a pore's echo, one wider than the pore, or a least share."""
    echo = ndimage.binary_dilation(pore)
    held = np.bincount(segments[echo], minlength=int(segments.max()) + 1)
    return np.asarray((held > 0) & (held >= least * held.sum()))


def signal_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Shares of top windows that hold the echo; the interval counts a real hole once."""
    found = []
    for source, part in rows[rows["score"] > 0.5].groupby("source", sort=False):
        for name, chance in (("holds", 1 / WINDOWS), ("near", part["chance_near"].mean())):
            by_hole = part.groupby("hole")[name].mean() > 0.5
            ends = stats.binomtest(int(by_hole.sum()), len(by_hole)).proportion_ci()
            found.append(
                {
                    **{"A-scans": f"{len(part)} {source}", "holes": len(by_hole)},
                    **{"top window": NAMES[name], "share": part[name].mean()},
                    **{"chance": chance, "located": int(by_hole.sum())},
                    **{"95 % low": ends.low, "95 % high": ends.high},
                }
            )
    return pd.DataFrame(found)


def volume_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Holes whose block is among the top k, over the seeds, and blocks of the top k at a hole."""
    blocks, seeds = int(rows["blocks"].iloc[0]), rows["seed"].nunique()
    found = []
    for k in (8, 16, 32):
        holes = (rows["rank"] <= k).groupby(rows["seed"]).sum().mean()
        found.append(
            {
                **{"top k": k, "of blocks": blocks, "seeds": seeds},
                **{"holes whose block is in it": holes, "by chance": 8 * k / blocks},
                "share of it at a hole": rows[f"top_{k}"].mean(),
                "by chance ": rows["chance"].mean(),
            }
        )
    return pd.DataFrame(found)


def detection_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """The curves of the network, of the explanation, and of the explanation where it is right."""
    right = rows[rows["classified"]]
    parts = {
        "network": (rows["size"], rows["classified"]),
        "explanation": (rows["size"], rows["located"]),
        "explanation, where the network is right": (right["size"], right["located"]),
    }
    found = []
    for name, (sizes, hits) in parts.items():
        ends = dict.fromkeys(("a50", "a90", "a90/95"), np.nan)
        try:
            curve = measures.probability_of_detection(sizes, hits)
        except ValueError as error:  # all were found, or none
            print(f"{name}: {error}")
        else:
            for note in curve.notes:
                print(f"{name}: {note}")
            known = zip(ends, (curve.a50, curve.a90, curve.a90_95), strict=True)
            ends |= {end: value for end, value in known if value < np.inf}
        found.append({"curve": name, "scans": len(hits), "found": int(hits.sum()), **ends})
    return pd.DataFrame(found)


ROWS = {"signals": signal_rows, "volume": volume_rows, "detection": detection_rows}
SUMMARIES = {
    "signals": signal_summary,
    "volume": volume_summary,
    "detection": detection_summary,
}


def draw_pictures(seed: int) -> None:
    """The pictures of the page: two A-scans, the volume, and the curves of detection."""
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    settings = {"n": 1000, "hide": "bridge", "seed": seed}
    for ax, hole in zip(figure.subplots(2, 1), (2, 1), strict=True):
        x, y, time = plate().holes[hole]
        draw_signal(ax, plate().volume[:, int(x), int(y)], time, settings, number=9 * hole + 4)
    save(figure, "inspection-signal")
    e = explain_volume({"n": DEFAULTS["volume"][0], "hide": "mean", "seed": seed}, 0)
    save(volume_figure(e), "inspection-volume")
    rows = pd.read_csv(RESULTS / "inspection-detection.csv")
    ax = None
    for name, colour in (("classified", COLOURS[2]), ("located", COLOURS[1])):
        curve = measures.probability_of_detection(rows["size"], rows[name])
        label = "network" if name == "classified" else "explanation"
        ax = curve.plot(ax=ax, label=label, colour=colour)
    ax.set_xlabel("radius of the pore in mm")
    save(ax.figure, "inspection-detection")


def draw_signal(ax: Any, signal: Any, time: float, settings: Any, *, number: int) -> None:
    """An explained A-scan; a triangle marks the known time of the hole's echo."""
    e = explain_signal(signal, settings, number)
    e.plot("signal", ax=ax)
    ax.set_xlabel("time in microseconds")
    ax.plot(
        time / RATE, 0.97, "v", color="#222222", markersize=9, transform=ax.get_xaxis_transform()
    )


def volume_figure(e: Any) -> Figure:
    """The scan from above and from the side, with the 16 most important blocks."""
    volume = np.abs(plate().volume[:, ::2, ::2])
    heat = np.where(stats.rankdata(-e.posterior.mean) <= 16, e.posterior.mean, 0)[e.segments]
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    above, side = figure.subplots(2, 1, height_ratios=[1, 1.5], sharex=True)
    inside = np.r_[95:320, 365:515]  # without the walls
    for ax, axis, extent in ((above, 0, (0, 111, 40, 0)), (side, 2, (0, 111, 564 / RATE, 0))):
        shown = volume[inside].max(axis=0).T if axis == 0 else volume.max(axis=2)
        level = np.clip(20 * np.log10(shown / shown.max() + 1e-3), -40, 0)
        kind = {"extent": extent, "aspect": "auto", "interpolation": "nearest"}
        ax.imshow(level, cmap="gray", **kind)
        found = heat.max(axis=axis)
        found = found.T if axis == 0 else found
        ax.imshow(np.ma.masked_equal(found, 0), cmap="Greens", alpha=0.5, vmin=0, **kind)
    for x, y, time in plate().holes:
        for ax, place in ((above, y), (side, time / RATE)):
            ax.plot(x, place, "o", mfc="none", mec=COLOURS[4], mew=2, markersize=14)
    above.set_ylabel("across the scan, mm")
    side.set(ylabel="microseconds", xlabel="along the scan, mm")
    return figure


def save(figure: Any, name: str) -> None:
    """Write a picture of the documentation."""
    figure.savefig(IMAGES / f"{name}.png", dpi=110, pil_kwargs={"optimize": True})
