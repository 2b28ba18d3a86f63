"""Time a complete image explanation on a GPU, compared with the forward passes of its network.

The networks of torchvision are first trained for some seconds to tell two photos apart, of which
the explained one is half and half, so that the scores depend on the image; EfficientNet-Lite0 is
trained on ImageNet. There are 1,000 masks of a 224 x 224 image with 49 superpixels, and one batch
size for all. The forward passes are those in full precision, in PyTorch's usual memory layout and
in channels last, which eblime uses. The last column is the largest change of an importance by half
precision, in posterior standard deviations. captum's Lime is measured too if it is installed.

    python -m studies speed-image-gpu [--batch 250]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import torch
from skimage import data

import eblime
from studies.speed.clock import SPEED, add_store_option, median_seconds, store
from studies.tables import table, write_csv

N_MASKS, N_STEPS = 1_000, 200
NETWORKS = ("resnet50", "vgg16", "vit_b_16", "convnext_tiny", "efficientnet_lite0")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def photos() -> list[np.ndarray]:
    """Two photos of scikit-image."""
    return [data.astronaut(), data.coffee()]


def picture() -> np.ndarray:
    """The left half of one photo beside the right half of another, 224 x 224 x 3."""
    left, right = (photo[100:324, 100:324] for photo in photos())
    return np.concatenate([left[:, :112], right[:, 112:]], axis=1)


def normalisation() -> Callable[[torch.Tensor], torch.Tensor]:
    """The usual preparation of photos in [0, 1], on the device."""
    mean = torch.tensor(MEAN, device="cuda")[:, None, None]
    std = torch.tensor(STD, device="cuda")[:, None, None]
    return lambda x: (x - mean) / std


def forward_passes(
    net: torch.nn.Module, batch: int, layout: torch.memory_format = torch.contiguous_format
) -> Callable[[], None]:
    """The forward passes of all masks, and nothing else."""
    tensors = torch.randn(batch, 3, 224, 224, device="cuda").contiguous(memory_format=layout)

    def run() -> None:
        with torch.inference_mode():
            for start in range(0, N_MASKS, batch):
                net(tensors[: N_MASKS - start])

    return run


def captum_lime(
    net: torch.nn.Module, image: np.ndarray, labels: np.ndarray, batch: int
) -> Callable[[], None]:
    """Captum's Lime with the same superpixels and batches."""
    import captum.attr

    prepare = normalisation()
    tensor = torch.from_numpy(image.transpose(2, 0, 1).copy())[None].cuda()
    mask = torch.from_numpy(labels)[None, None].cuda()

    def run() -> None:
        with torch.inference_mode():
            captum.attr.Lime(lambda x: net(prepare(x / 255)).softmax(dim=1)).attribute(
                tensor,
                target=0,
                feature_mask=mask,
                baselines=0,
                n_samples=N_MASKS,
                perturbations_per_eval=batch,
            )

    return run


def trained(name: str) -> torch.nn.Module:
    """A network on the GPU that tells from which photo a crop with hidden parts is."""
    import torchvision

    if name == "efficientnet_lite0":
        from eblime.datasets import efficientnet_lite0

        return efficientnet_lite0(device="cuda").module.cuda().eval()
    torch.manual_seed(0)
    net = getattr(torchvision.models, name)(weights=None).cuda()
    whole = [torch.from_numpy(photo.copy()).cuda().movedim(-1, 0) / 255 for photo in photos()]
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    prepare = normalisation()
    for _ in range(N_STEPS):
        labels = torch.randint(len(whole), (64,))
        crops = [
            whole[k][:, i : i + 224, j : j + 224]
            for k, i, j in zip(
                labels.tolist(),
                torch.randint(170, (64,)).tolist(),
                torch.randint(280, (64,)).tolist(),
                strict=True,
            )
        ]
        shown = (torch.rand(64, 1, 7, 7, device="cuda") < 0.5).float()
        shown = torch.nn.functional.interpolate(shown, size=224)
        with torch.autocast("cuda", torch.bfloat16):
            scores = net(prepare(torch.stack(crops) * shown))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores.float(), labels.cuda()).backward()
        optimizer.step()
    return net.eval()


def measure(name: str, batch: int) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Measure one network: eblime in each precision, forward passes alone, captum.

    And how far half precision moves its importances, in posterior standard deviations.
    """
    image = picture()
    net = trained(name)

    def explain(precision: str) -> eblime.Explanation:
        explainer = eblime.ImageExplainer(
            eblime.TorchModel(net, normalisation(), precision=precision),
            segmentation="grid",
            hide=0,
            n_masks=N_MASKS,
            calls=eblime.Calls(batch_size=batch),
        )
        return explainer.explain(image, target=target, rng=0)

    target: int | None = None
    exact = explain("full")
    target = exact.target
    runs: dict[str, Callable[[], object]] = {
        "forward passes alone": forward_passes(net, batch),
        "forward passes alone, channels last": forward_passes(net, batch, torch.channels_last),
    }
    for precision in ("full", "half", "auto"):
        runs[f"eblime, {precision}"] = lambda word=precision: explain(word).posterior.interval()
    if find_spec("captum") and find_spec("sklearn"):
        runs["captum Lime"] = captum_lime(net, image, exact.segments.copy(), batch)
    found = median_seconds(runs, 9, wait=torch.cuda.synchronize)
    bases = [value for run, value in found.items() if run.startswith("forward")]
    words, shifts = {}, []
    for precision in ("half", "auto"):
        e = explain(precision)
        moved = np.abs(e.posterior.mean - exact.posterior.mean) / exact.posterior.sd
        used = e.provenance["input"]["precision"]
        words[f"eblime, {precision}"] = f"{moved.max():.3f}, {used}"
        row = {"network": name, "precision": precision, "used": used.partition(" ")[0]}
        shifts.append({**row, "change": round(float(moved.max()), 3)})
    rows = [
        [run, f"{value:.3f}", *(f"{value / base:.3f}" for base in bases), words.get(run, "")]
        for run, value in found.items()
    ]
    print(f"{name}, batches of {batch}, {explain('auto').prediction:.3f}:\n")
    heads = ["", "seconds", "relative to forward passes", "in channels last", "change in sds"]
    print(table(heads, rows), end="\n\n", flush=True)
    return found, shifts


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--batch", type=int, default=250, help="images per model call")
    add_store_option(parser)


def run(options: argparse.Namespace) -> None:
    """Measure every network."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    found = {name: measure(name, options.batch) for name in NETWORKS}
    if options.store:
        store("speed-image-gpu", {name: times for name, (times, _) in found.items()})
        changes = pd.DataFrame([row for _, shifts in found.values() for row in shifts])
        write_csv(changes, SPEED.with_name("half-precision.csv"))
