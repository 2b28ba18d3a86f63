"""
Slices of a volume
==================

A toy model counts the voxels above a threshold, which only one of two balls in a volume exceeds.
Three slices through the centre of the most important block show which ball that is.
"""

import numpy as np

import eblime

rng = np.random.default_rng(0)
z, y, x = np.indices((40, 48, 64))
volume = 0.3 * rng.random((40, 48, 64))
volume += np.exp(-((z - 15) ** 2 + (y - 30) ** 2 + (x - 40) ** 2) / 30)
volume += 0.6 * np.exp(-((z - 30) ** 2 + (y - 10) ** 2 + (x - 12) ** 2) / 30)

explainer = eblime.VolumeExplainer(
    lambda batch: (batch > 0.9).sum(axis=(1, 2, 3)),
    segmentation=("blocks", {"n": (3, 3, 4)}),
    spacing=(0.5, 0.5, 0.5),
    n_masks=200,
)
explanation = explainer.explain(volume)
ax = explanation.plot("slices")
