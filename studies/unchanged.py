"""Whether the numbers are the same as before: records explanations, compares two records.

    python -m studies unchanged before.npz                   # with the code before a change
    python -m studies unchanged after.npz --before before.npz

The models are formulas, so nothing is downloaded, and a record takes a few seconds. Differences are
in widths of the 95 % interval of the same feature.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

import eblime


def photo() -> np.ndarray:
    """A colour picture with soft blobs, (64, 64, 3) between 0 and 1."""
    rng = np.random.default_rng(7)
    rows, columns = np.mgrid[:64, :64] / 64
    picture = np.zeros((64, 64, 3))
    for centre, colour in zip(rng.random((12, 2)), rng.random((12, 3)), strict=True):
        distance = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2
        picture += np.exp(-distance / 0.01)[..., None] * colour
    return picture / picture.max()


def image_model(batch: np.ndarray) -> np.ndarray:
    """Three classes that respond to corners of the picture, not linearly."""
    red, green = (
        batch[:, :32, :32, 0].mean(axis=(1, 2)),
        batch[:, 20:50, 20:50, 1].mean(axis=(1, 2)),
    )
    blue = batch[:, 40:, 10:60, 2].mean(axis=(1, 2))
    logits = np.stack([6 * red + 8 * red * green, 9 * green, 7 * blue - 5 * red * blue], axis=1)
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def table() -> np.ndarray:
    """400 rows with five numbers and two categories."""
    rng = np.random.default_rng(8)
    numbers = rng.normal(size=(400, 5)) @ (np.eye(5) + 0.3)
    return np.column_stack([numbers, rng.integers(0, 3, 400), rng.integers(0, 2, 400)])


def table_model(rows: np.ndarray) -> np.ndarray:
    """The probability of a logistic model with one interaction."""
    rows = np.asarray(rows, dtype=float)
    logits = rows[:, 0] - 0.5 * rows[:, 1] + rows[:, 2] * (rows[:, 5] == 1) + 0.8 * rows[:, 6]
    return 1 / (1 + np.exp(-logits))


TEXT = "a good film with a very slow start and a great end that nobody in the house will forget"


def text_model(texts: list[str]) -> np.ndarray:
    """A score of words, with one that changes its neighbour's meaning."""
    good = np.array([("good" in t) + 1.5 * ("great" in t) for t in texts], dtype=float)
    slow = np.array([("slow" in t) * (1.0 + 0.7 * ("very" in t)) for t in texts], dtype=float)
    return 1 / (1 + np.exp(slow - good))


def explanations() -> Iterator[tuple[str, eblime.Explanation]]:
    """The explanations, each with its name."""
    picture, rows = photo(), table()
    blocks = ("grid", {"rows": 4, "columns": 4})
    images: dict[str, dict[str, Any]] = {
        "image": {},
        "image-paper": {"method": "eblime-paper"},
        "image-bayeslime": {"method": "bayeslime"},
        "image-lime": {"method": "lime"},
        "image-ridge": {"method": "eblime-ridge"},
        "image-bernoulli": {"design": "bernoulli"},
        "image-leverage": {"design": "leverage"},
        "image-cosine": {"kernel": "cosine"},
        "image-blur": {"hide": "blur"},
        "image-slic": {"segmentation": ("slic", {"n_segments": 20})},
        "image-quadrature": {"method": "quadrature", "n_masks": 200},
        "image-rounds": {"method": "quadrature", "design": "adaptive", "n_masks": 160},
    }
    for name, settings in images.items():
        chosen = {"segmentation": blocks, "n_masks": 400, **settings}
        yield name, eblime.ImageExplainer(image_model, **chosen).explain(picture, rng=3)
    found = eblime.ImageExplainer(image_model, segmentation=blocks, n_masks=300)
    for column, explanation in found.explain_targets(picture, targets=2, rng=4).items():
        yield f"image-target-{column}", explanation
    rule = eblime.TopK(2, prob=0.9)
    yield "image-until", found.explain(picture, rng=5, until=rule, max_masks=1500)
    yield "image-more", found.explain(picture, rng=6).more(200)
    tables: dict[str, dict[str, Any]] = {
        "table": {},
        "table-unequal": {"method": eblime.EBLIME(noise="unequal")},
        "table-design": {"design": "bernoulli"},
    }
    for name, settings in tables.items():
        chosen = {"n_masks": 500, **settings}
        yield name, eblime.TabularExplainer(table_model, rows, **chosen).explain(rows[3], rng=1)
    texts: dict[str, dict[str, Any]] = {
        "text": {},
        "text-bernoulli": {"design": "bernoulli"},
        "text-lime": {"method": "lime"},
        "text-baylime": {"method": "baylime"},
    }
    for name, settings in texts.items():
        chosen = {"n_masks": 500, **settings}
        yield name, eblime.TextExplainer(text_model, **chosen).explain(TEXT, rng=2)


def numbers(explanation: eblime.Explanation) -> np.ndarray:
    """Mean, standard deviation and both ends of the 95 % interval, (p, 4)."""
    posterior = explanation.posterior
    if explanation.method.name == "LIME":  # a point estimate has no spread
        return np.repeat(posterior.mean[:, None], 4, axis=1)
    return np.column_stack([posterior.mean, posterior.sd, posterior.interval(0.95)])


def compare(before: str, after: str) -> None:
    """Print how far the numbers of two records are apart, in widths of intervals."""
    with np.load(before) as old, np.load(after) as new:
        print("| set | largest | median | |\n|---|---|---|---|")
        for name in old.files:
            if name not in new.files or old[name].shape != new[name].shape:
                print(f"| {name} | - | - | missing or of another shape |")
                continue
            width = old[name][:, 3] - old[name][:, 2]
            width = np.where(width > 0, width, np.abs(old[name][:, 0]).max())
            gap = np.abs(new[name] - old[name]) / width[:, None]
            same = "equal" if (old[name] == new[name]).all() else ""
            print(f"| {name} | {gap.max():.2g} | {np.median(gap):.2g} | {same} |")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The record to write, and the one to compare with."""
    parser.add_argument("record", help="the .npz file to write")
    parser.add_argument("--before", help="a record of the code before")


def run(options: argparse.Namespace) -> None:
    """Explain everything, store the numbers, and compare them with those before."""
    found = {name: numbers(explanation) for name, explanation in explanations()}
    np.savez(options.record, **found)
    print(f"{len(found)} sets of numbers in {options.record}")
    if options.before is not None:
        compare(options.before, options.record)
