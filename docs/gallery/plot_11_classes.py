"""
Three classes from the same calls
=================================

`explain_targets` explains several outputs of the model with one set of model calls. What supports
one wine counts against another.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eblime

wine = load_wine(as_frame=True)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(wine.data, wine.target)
explainer = eblime.TabularExplainer(model, wine.data, n_masks=500, labels=list(wine.target_names))

fig, axes = plt.subplots(3, 1, figsize=(6.5, 7.5), layout="constrained")
for ax, explanation in zip(
    axes, explainer.explain_targets(wine.data.iloc[0], 3).values(), strict=True
):
    explanation.plot("intervals", top=6, ax=ax)
