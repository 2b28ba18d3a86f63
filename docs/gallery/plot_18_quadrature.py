"""
A smaller error from the same calls
===================================

A face is cut into nine squares, so that all 512 masks can be asked and the true importances are
known. With fewer masks, the method "quadrature" is closer to the truth than a regression, because
it does not treat the model's deviations from a linear fit as noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import lfw_subset
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import eblime

photos = lfw_subset()
classifier = make_pipeline(PCA(30, random_state=0), SVC(random_state=0))
classifier.fit(photos.reshape(200, -1), [1] * 100 + [0] * 100)


def explained(method, n_masks, seed=0):
    """Importances of the nine squares."""
    explainer = eblime.ImageExplainer(
        lambda batch: classifier.decision_function(batch.reshape(len(batch), -1)),
        segmentation=("grid", {"rows": 3, "columns": 3}),
        hide=float(photos.mean()),
        n_masks=n_masks,
        method=method,
    )
    return explainer.explain(photos[9], rng=seed).posterior.mean


truth = explained("quadrature", 512)
counts = [32, 64, 128, 256]
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for method, colour in (("lime", "grey"), ("eblime", "#0072b2"), ("quadrature", "#009e73")):
    errors = [
        np.sqrt(np.mean([(explained(method, n, seed) - truth) ** 2 for seed in range(5)]))
        for n in counts
    ]
    ax.loglog(counts, errors, "o-", color=colour, label=method)
ax.set_xticks(counts, counts)
ax.minorticks_off()
ax.set_xlabel("masks")
ax.set_ylabel("root mean square error, 5 runs")
ax.legend(frameon=False)
