"""
Where is the map uncertain?
===========================

The colour is the posterior standard deviation of the importance of each superpixel of an ultrasonic
scan. Small values mean that more masks would change little there.
"""

import eblime
from eblime.datasets import sample_scans, ultrasonic_network

images, _ = sample_scans()
explainer = eblime.ImageExplainer(
    ultrasonic_network(),
    segmentation=("slic", {"n_segments": 40}),
    labels=["no defect", "with defect"],
    n_masks=300,
)
explanation = explainer.explain(images[1], "with defect")
ax = explanation.plot("map", of="uncertainty")
