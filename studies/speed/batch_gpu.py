"""Photos per second on a GPU: one after the other, and in a run, which works ahead of the GPU.

The inputs are crops of scikit-image's photos, 224 x 224 pixels, with SLIC superpixels and 1,000
masks each. The networks are those of torchvision with random weights, which take the same time. A
run segments the next photos while the GPU is busy, and writes Parquet files.

    python -m studies speed-batch-gpu --photos 64
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from skimage import data

import eblime
from studies.speed.clock import add_store_option, store
from studies.tables import head, row

N, SIDE = 1_000, 224
NETWORKS = (("resnet18", "full"), ("resnet18", "half"), ("resnet50", "half"), ("vgg16", "half"))


def photos(count: int) -> list[np.ndarray]:
    """Crops of scikit-image's photos."""
    whole = [data.astronaut(), data.coffee(), data.chelsea()]
    rng = np.random.default_rng(0)
    found = []
    for k in range(count):
        image = whole[k % len(whole)]
        top, left = (int(rng.integers(0, length - SIDE + 1)) for length in image.shape[:2])
        found.append(np.ascontiguousarray(image[top : top + SIDE, left : left + SIDE]))
    return found


def one_by_one(explainer: Any, inputs: list[np.ndarray]) -> None:
    """Explain a photo, then the next."""
    for photo in inputs:
        explainer.explain(photo)


def in_a_run(explainer: Any, inputs: list[np.ndarray]) -> None:
    """Explain all photos in one run."""
    with tempfile.TemporaryDirectory() as folder:
        eblime.explain_many(
            explainer, inputs, Path(folder) / "run", targets="predicted", progress=False
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the benchmark."""
    parser.add_argument("--photos", type=int, default=64)
    add_store_option(parser)


def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    import torch
    import torchvision

    home = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.cuda.get_device_name() if home == "cuda" else "CPU"
    print(f"{device}, {os.cpu_count()} cores, {options.photos} photos, N = {N}\n")
    print(head(["network", "one after the other", "in a run", "ratio", "model inputs per second"]))
    times = {}
    for name, precision in NETWORKS:
        network = getattr(torchvision.models, name)(weights=None).eval().to(home)
        model = eblime.TorchModel(network, precision=precision)
        explainer = eblime.ImageExplainer(model, n_masks=N, progress=False)
        alone, together = (
            photos_per_second(way, explainer, options.photos) for way in (one_by_one, in_a_run)
        )
        half = ", half precision" if precision == "half" else ""
        cells = f"{alone:.1f}", f"{together:.1f}", f"{together / alone:.1f}", f"{N * together:.0f}"
        print(row([f"{name}{half}", *cells]), flush=True)
        times[f"{name}{half}"] = {"one after the other": 1 / alone, "in a run": 1 / together}
    if options.store:
        store("speed-batch-gpu", times)


def photos_per_second(way: Callable[[Any, Any], None], explainer: Any, count: int) -> float:
    """The rate of a way to explain, after four photos that are not counted."""
    way(explainer, photos(4))
    start = time.perf_counter()
    way(explainer, photos(count))
    return count / (time.perf_counter() - start)
