"""
Stop when the question is answered
==================================

Some photos need few model calls until the five most important squares are known, and some need
many. `until=TopK(5)` stops for each photo as soon as they are known with 95 % probability.
"""

import matplotlib.pyplot as plt
from skimage.data import lfw_subset
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import eblime

photos = lfw_subset()  # 100 faces, then 100 other photos, 25 x 25 pixels
classifier = make_pipeline(PCA(30, random_state=0), SVC(random_state=0))
classifier.fit(photos.reshape(200, -1), [1] * 100 + [0] * 100)
explainer = eblime.ImageExplainer(
    lambda batch: classifier.decision_function(batch.reshape(len(batch), -1)),
    segmentation=("grid", {"rows": 4, "columns": 4}),
    hide=float(photos.mean()),
)
asked = [
    len(explainer.explain(photo, until=eblime.TopK(5), max_masks=2000).masks)
    for photo in photos[:10]
]

fig, (above, ax) = plt.subplots(2, 1, figsize=(7, 4), layout="constrained", height_ratios=[1, 3])
row = photos[:10].transpose(1, 0, 2).reshape(25, 250)
above.imshow(row, cmap="gray", aspect="auto", extent=(-0.5, 9.5, 0, 1))
above.axis("off")
ax.bar(range(10), asked, color="#0072b2")
ax.set_xlim(-0.5, 9.5)
ax.set_xticks([])
ax.set_ylabel("masks used")
