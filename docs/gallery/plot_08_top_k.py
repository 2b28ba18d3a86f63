"""
Which superpixels are among the top five?
=========================================

The map shows the probability that each superpixel has one of the five largest importances. With 150
masks, a few superpixels are certain to be among them, and the last place is open.
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
ax = explanation.plot("top_k", top=5)
