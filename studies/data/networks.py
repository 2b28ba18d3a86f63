"""Small networks: seeded, trained quickly on two cores, and stored in the cache folder."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eblime._files import write_whole
from eblime.models.torch import TorchModel, import_torch
from studies.data.files import cache_folder, digest

if TYPE_CHECKING:
    import torch

__all__ = ["cached_network", "scan_layers", "train_classifier", "weights_digest"]

BATCH = 32


def scan_layers(seed: int = 0) -> torch.nn.Sequential:
    """Five layers for grey scans: four convolutions that each halve the image, and a linear one.

    Before the linear layer, each channel is reduced to its maximum over the image.
    """
    torch = import_torch()
    torch.manual_seed(seed)
    layers: list[Any] = []
    for before, after in ((1, 8), (8, 16), (16, 32), (32, 32)):
        layers += [
            torch.nn.Conv2d(before, after, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
        ]
    return torch.nn.Sequential(
        *layers, torch.nn.AdaptiveMaxPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 2)
    )


def train_classifier(
    layers: torch.nn.Module,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    epochs: int,
    rate: float = 6e-3,
    mirror: bool = True,
    seed: int = 0,
) -> None:
    """Train with Adam and one cycle of the learning rate; `mirror` flips half of the batches."""
    torch = import_torch()
    x = torch.from_numpy(images[:, None].astype(np.float32) / 255)
    y = torch.from_numpy(labels.astype(np.int64))
    steps = max(1, len(x) // BATCH)
    adam = torch.optim.Adam(layers.parameters())
    cycle = torch.optim.lr_scheduler.OneCycleLR(adam, rate, total_steps=epochs * steps)
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(x)), steps):
            shown = x[batch].flip(3) if mirror and rng.random() < 0.5 else x[batch]
            adam.zero_grad()
            loss = torch.nn.functional.cross_entropy(layers(shown), y[batch])
            loss.backward()
            adam.step()
            cycle.step()


def weights_digest(model: TorchModel) -> str:
    """A short checksum of a network's weights."""
    found = hashlib.sha256()
    for name, values in sorted(model.module.state_dict().items()):
        found.update(name.encode())
        found.update(np.ascontiguousarray(values.detach().cpu().numpy()).tobytes())
    return found.hexdigest()[:12]


def cached_network(
    name: str, data: Any, make: Callable[[], Any], train: Callable[[Any], None]
) -> TorchModel:
    """A network as a `TorchModel`, read from the cache folder, or trained and stored there.

    The name of its file ends in a digest of `data`, the images that it is trained on.
    """
    torch = import_torch()

    layers = make()
    path = cache_folder() / f"{name}-{digest(data)[:12]}.pt"
    if path.exists():
        layers.load_state_dict(torch.load(path, weights_only=True))
    else:
        train(layers)
        buffer = io.BytesIO()
        torch.save(layers.state_dict(), buffer)
        write_whole(path, buffer.getvalue())
    return TorchModel(layers)
