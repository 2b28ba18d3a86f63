"""
LIME changes from run to run; the interval says by how much
===========================================================

We explain one biopsy twenty times with LIME, each time with different random masks. The dots are
the twenty results. The bars are the 95 % intervals of a *single* run of eblime: they show how
large this spread is without repeated runs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eblime

data = load_breast_cancer(as_frame=True)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data.data, data.target)
explainer = eblime.TabularExplainer(model, data.data, n_masks=300)
one = explainer.explain(data.data.iloc[20], target=0, rng=0)
again = [
    eblime.TabularExplainer(model, data.data, n_masks=300, method="lime")
    .explain(data.data.iloc[20], target=0, rng=seed)
    .posterior.mean
    for seed in range(1, 21)
]

top = np.argsort(-abs(one.posterior.mean))[:8]
low, high = one.posterior.interval(0.95)[top].T
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
place = np.arange(len(top))[::-1]
ax.hlines(place, low, high, lw=8, color="#009e73", alpha=0.4, label="95 % interval of one run")
for j, y in zip(top, place, strict=True):
    shown = "LIME, 20 runs" if j == top[0] else None
    ax.plot([run[j] for run in again], np.full(20, y), "k.", ms=4, label=shown)
ax.set_yticks(place, [one.features[j] for j in top])
ax.set_xlabel("importance for 'malignant'")
ax.axvline(0, color="grey", lw=0.5)
fig.legend(frameon=False, loc="outside upper center", ncols=2)
