"""
Which superpixels are among the top five?
=========================================

The colour is the probability that a superpixel is one of the five most important. With 150 masks,
a few are certain, and the last place is open.
"""

import eblime
from eblime.datasets import sample_scans, ultrasonic_network

images, _ = sample_scans()
explainer = eblime.ImageExplainer(
    ultrasonic_network(),
    segmentation=("slic", {"n_segments": 40}),
    n_masks=150,
    labels=["no defect", "with defect"],
)
explanation = explainer.explain(images[0], target="with defect")
ax = explanation.plot("map", of="top_k", top=5)
