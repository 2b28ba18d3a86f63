"""
Stop when the question is answered
==================================

`until=TopK(5)` stops as soon as the five most important squares are known with 95 % probability.
Some photos need far fewer masks than others. Where two squares are nearly tied, `max_masks` ends
it.
"""

import matplotlib.pyplot as plt
from skimage.data import lfw_subset
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import eblime

photos = lfw_subset()  # 100 faces, then 100 other photos
svm = make_pipeline(PCA(30, random_state=0), SVC(random_state=0))
svm.fit(photos.reshape(200, -1), [1] * 100 + [0] * 100)
explainer = eblime.ImageExplainer(
    lambda batch: svm.decision_function(batch.reshape(len(batch), -1)),
    segmentation=("grid", {"rows": 4, "columns": 4}),
    hide=float(photos.mean()),
)

rule = {"until": eblime.TopK(5), "max_masks": 2000}
found = [explainer.explain(photo, **rule) for photo in photos[:10]]
asked = [len(explanation.masks) for explanation in found]
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.bar(range(1, 11), asked, color="#0072b2")
ax.set(xlabel="photo", ylabel="masks used", xticks=range(1, 11))
