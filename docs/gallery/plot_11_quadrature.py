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

photos = lfw_subset()  # 100 faces, then 100 other photos
svm = make_pipeline(PCA(30, random_state=0), SVC(random_state=0))
svm.fit(photos.reshape(200, -1), [1] * 100 + [0] * 100)
explainer = eblime.ImageExplainer(
    lambda batch: svm.decision_function(batch.reshape(len(batch), -1)),
    segmentation=("grid", {"rows": 3, "columns": 3}),
    hide=float(photos.mean()),
    method="quadrature",
)

face, counts, seeds = photos[9], [32, 64, 128, 256], range(5)
truth = explainer.explain(face, n_masks=512).posterior.mean
runs = [[explainer.explain(face, n_masks=n, rng=r) for r in seeds] for n in counts]
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
for method in ("eblime", "quadrature"):
    found = [[run.refit(method).posterior.mean for run in same] for same in runs]
    error = np.sqrt(np.square(found - truth).mean(axis=(1, 2)))
    ax.loglog(counts, error, "o-", label=method)
ax.set_xticks(counts, counts)
ax.set(xlabel="masks", ylabel="root mean square error")
ax.minorticks_off()
ax.legend()
