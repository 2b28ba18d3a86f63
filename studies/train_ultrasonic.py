"""Train the network of the ultrasonic study, and write it and a few scans to the package.

The network has five layers: four convolutions and a linear one. It is trained on scans of the
endless generator, which are not among the 123 scans of the study, and tested on those. This takes
about two minutes on two cores.

    pip install -e '.[test]' && python -m studies train-ultrasonic
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
import torch

import eblime
from eblime.datasets.ultrasonic import ScanNetwork
from studies.data.networks import scan_layers, train_classifier
from studies.data.scans import endless_scans, scans

ASSETS = Path(eblime.__file__).parent / "datasets" / "assets"
COUNT, EPOCHS = 1_200, 25


def make_scans(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and whether they have a defect: a quarter of the training set."""
    made = list(islice(endless_scans(seed), COUNT // 4))
    return np.array([s.image for s in made]), np.array([s.has_defect for s in made])


def to_numpy(net: torch.nn.Sequential) -> ScanNetwork:
    """The same network in NumPy."""
    convolutions = [layer for layer in net if isinstance(layer, torch.nn.Conv2d)]
    return ScanNetwork(
        kernels=[layer.weight.detach().numpy() for layer in convolutions],
        biases=[layer.bias.detach().numpy() for layer in convolutions],
        head=net[-1].weight.detach().numpy(),
        head_bias=net[-1].bias.detach().numpy(),
    )


def run(options: argparse.Namespace) -> None:
    """Train, test and write."""
    with ProcessPoolExecutor() as pool:
        parts = list(pool.map(make_scans, range(4)))
    images, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    net = scan_layers()
    train_classifier(net, images, labels.astype(np.int64), epochs=EPOCHS)
    ASSETS.mkdir(exist_ok=True)
    model = to_numpy(net)
    named = {f"kernel{k}": kernel for k, kernel in enumerate(model.kernels)}
    named |= {f"bias{k}": bias for k, bias in enumerate(model.biases)}
    head = {"head": model.head, "head_bias": model.head_bias}
    np.savez(ASSETS / "ultrasonic.npz", **head, **named)
    study = scans()
    truth = np.array([s.has_defect for s in study])
    found = model(np.array([s.image for s in study])).argmax(axis=1) == 1
    print(f"{len(study)} scans of the study: {np.mean(found == truth):.1%} correct")
    few = [s for s in study if s.has_defect][:3] + [s for s in study if not s.has_defect][:1]
    np.savez_compressed(
        ASSETS / "scans.npz",
        images=np.array([s.image for s in few]),
        defects=np.array([s.defect for s in few]),
    )
    for path in sorted(ASSETS.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")
