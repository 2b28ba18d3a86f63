"""
Find a defect in an ultrasonic scan
===================================

A network says that a printed block has a defect. Where does it see the defect? The white circle,
which the network never saw, encloses the true one.
"""

import numpy as np

import eblime
from eblime.datasets import sample_scans, ultrasonic_network

images, defects = sample_scans()
explainer = eblime.ImageExplainer(
    ultrasonic_network(),
    segmentation=("slic", {"n_segments": 40, "compactness": 1.0}),
    n_masks=400,
    labels=["no defect", "with defect"],
)
explanation = explainer.explain(images[2], target="with defect")

ax = explanation.plot("map", top=5)
rows, columns = np.nonzero(defects[2])
ax.plot(columns.mean(), rows.mean(), "o", ms=40, mfc="none", mec="white", mew=2)
