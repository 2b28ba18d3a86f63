"""Photos per second of a run on a GPU: the next photos are segmented while the GPU is busy.

The inputs are crops of scikit-image's photos, 224 x 224 pixels, with SLIC superpixels and 1,000
masks each. The networks are those of torchvision with random weights, which take the same time. The
clock runs while a worker explains inputs, without the writing of Parquet files.

    python -m studies speed-batch-gpu --photos 64
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest import mock

import numpy as np
import torch
from skimage import data

import eblime
from eblime._threads import available_cores
from eblime.batch import worker as worker_module
from eblime.batch.inputs import as_inputs
from eblime.batch.location import Location
from eblime.models.torch import TorchModel
from studies.tables import head, row

N, SIDE = 1_000, 224


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


def speed(explainer: Any, count: int, ahead: int) -> float:
    """Photos per second if `ahead` photos are segmented in advance; 0 is one after the other."""
    settings = {"targets": 1, "seed": 0, "together": True}
    worker = worker_module.Worker(
        explainer=explainer,
        inputs=as_inputs(photos(count)),
        settings=settings,
        folder=Location.of("nowhere"),
    )
    with (
        mock.patch.object(worker_module, "on_gpu", return_value=ahead > 0),
        mock.patch.object(worker_module, "available_cores", return_value=ahead + 1),
    ):
        list(worker.explained(range(4)))  # warm up
        start = time.perf_counter()
        failed = [
            found for _, found in worker.explained(range(count)) if isinstance(found, Exception)
        ]
        if failed:
            raise failed[0]
        return count / (time.perf_counter() - start)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--photos", type=int, default=64)


def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    import torchvision

    count = options.photos
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{device}, {available_cores()} cores, {count} photos, N = {N}\n")
    heads = ["network", "segmented ahead", "photos per second", "model inputs per second"]
    print(head(heads, right=1))
    home = "cuda" if torch.cuda.is_available() else "cpu"
    for name, autocast in (
        ("resnet18", False),
        ("resnet18", True),
        ("resnet50", True),
        ("vgg16", True),
    ):
        network = getattr(torchvision.models, name)(weights=None).eval().to(home)
        explainer = eblime.ImageExplainer(TorchModel(module=network, autocast=autocast), n_masks=N)
        for ahead in (0, 2, 8):
            found = speed(explainer, count, ahead)
            half = ", mixed precision" if autocast else ""
            numbers = ahead, f"{found:.1f}", f"{N * found:.0f}"
            print(row([f"{name}{half}", *numbers]), flush=True)
