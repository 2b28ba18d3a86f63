"""
What makes this a face?
=======================

A classifier learned to tell 100 small photos of faces from 100 other photos. We cut a face into
squares of five pixels, hide some of them, and call the classifier again. Green squares support
"face", orange squares count against it.
"""

from skimage.data import lfw_subset
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import eblime

photos = lfw_subset()  # 100 faces, then 100 other photos, 25 x 25 pixels
classifier = make_pipeline(PCA(30, random_state=0), SVC(random_state=0))
classifier.fit(photos.reshape(200, -1), [1] * 100 + [0] * 100)


def face_score(batch):
    """Score of the classifier, positive for faces."""
    return classifier.decision_function(batch.reshape(len(batch), -1))


explainer = eblime.ImageExplainer(
    face_score,
    segmentation=("grid", {"rows": 5, "columns": 5}),
    hide=float(photos.mean()),
    n_masks=500,
)
explanation = explainer.explain(photos[9])
ax = explanation.plot("map", top=8)
