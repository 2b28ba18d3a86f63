"""
Get a smaller error from the same model calls
=============================================

A photo in nine squares has only 512 masks, so the true importances are known. With fewer masks,
the method "quadrature" comes closer to them than a regression.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import lfw_subset
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import eblime

photos = lfw_subset()  # 100 faces, then 100 other photos, 25 x 25 pixels
svm = make_pipeline(PCA(30, random_state=0), SVC(random_state=0))
svm.fit(photos.reshape(200, -1), [1] * 100 + [0] * 100)
explainer = eblime.ImageExplainer(
    lambda batch: svm.decision_function(batch.reshape(len(batch), -1)),
    segmentation=("grid", {"rows": 3, "columns": 3}),
    hide=float(photos.mean()),
    method="quadrature",
)

truth, counts = explainer.explain(photos[9], n_masks=512).posterior.mean, [32, 64, 128, 256]
runs = [[explainer.explain(photos[9], n_masks=n, rng=r) for r in range(5)] for n in counts]
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
for method in ("eblime", "quadrature"):
    off = [[run.refit(method).posterior.mean - truth for run in same] for same in runs]
    ax.loglog(counts, np.sqrt(np.square(off).mean(axis=(1, 2))), "o-", label=method)
ax.set(xlabel="masks", ylabel="root mean square error", xticks=counts, xticklabels=counts)
ax.minorticks_off()
ax.legend()
