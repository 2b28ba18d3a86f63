"""
Where is the explanation uncertain?
===================================

On the left, the importance of each superpixel of a scan. On the right, its posterior standard
deviation.
"""

import eblime
from eblime.datasets import sample_scans, ultrasonic_network
from eblime.plot import posterior_maps

images, _ = sample_scans()
explainer = eblime.ImageExplainer(
    ultrasonic_network(),
    segmentation=("slic", {"n_segments": 40}),
    n_masks=300,
    labels=["no defect", "with defect"],
)
explanation = explainer.explain(images[1], target="with defect")
figure = posterior_maps(explanation)
