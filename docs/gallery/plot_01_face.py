"""
Which parts of a photo decide?
==============================

A classifier tells faces from other photos. Green squares support "face", orange ones count against
it.
"""

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
    segmentation=("grid", {"rows": 5, "columns": 5}),
    hide=float(photos.mean()),
)
ax = explainer.explain(photos[9]).plot("map", top=8)
