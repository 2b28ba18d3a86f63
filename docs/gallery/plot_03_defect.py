"""
Find a defect in an ultrasonic scan
===================================

A network predicts that a printed block has a defect. Which superpixels support this? The white
circle encloses the true defect, whose position the network was not given.
"""

import numpy as np

import eblime
from eblime.datasets import sample_scans, ultrasonic_network

images, defects = sample_scans()
explainer = eblime.ImageExplainer(
    ultrasonic_network(),
    segmentation=("slic", {"n_segments": 40}),
    n_masks=400,
    labels=["no defect", "with defect"],
)
explanation = explainer.explain(images[2], target="with defect")

ax = explanation.plot("map", top=5)
rows, columns = np.nonzero(defects[2])
ax.plot(columns.mean(), rows.mean(), "o", ms=40, mfc="none", mec="white", mew=2)
