"""
What a hidden superpixel shows
==============================

To hide a superpixel, something must replace it. Four choices of `hide`: the mean colour, a blurred
copy, black and white. The same superpixels of scikit-image's cat are hidden in each.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import chelsea

import eblime

cat = chelsea()[:300, 80:380]
fig, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for ax, hide in zip(axes, ["mean", "blur", 0, (255, 255, 255)], strict=True):
    seen = []
    explainer = eblime.ImageExplainer(
        lambda batch, seen=seen: seen.append(batch.copy()) or batch.mean(axis=(1, 2, 3)),
        segmentation=("slic", {"n_segments": 40}),
        hide=hide,
        n_masks=64,
        calls=eblime.Calls(batch_size=64),
    )
    explainer.explain(cat)
    ax.imshow(np.concatenate(seen)[5])
    ax.set_title(f"hide={hide!r}")
    ax.axis("off")
