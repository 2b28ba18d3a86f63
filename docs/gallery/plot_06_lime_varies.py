"""
How much does LIME change from run to run?
==========================================

Dots: one biopsy explained by LIME with twenty seeds. Bars: the 95 % intervals of a *single* run of
eblime. An interval is about the value that all masks would give, not about another run: two runs
differ by up to 1.4 times as much, so about one dot in six lies outside its bar.
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

one, *others = [explainer.explain(data.data.iloc[20], 0, rng=seed) for seed in range(21)]
lime = np.array([other.refit("lime").posterior.mean for other in others])
top = one.posterior.order()[:5]
low, high = one.posterior.interval(0.95)[top].T
outside = ((lime[:, top] < low) | (lime[:, top] > high)).sum()
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.hlines(range(5), low, high, lw=12, color="#009e73", alpha=0.4, label="one run of eblime")
ax.plot(lime[:, top].T, range(5), "k.", ms=4, label=["LIME, 20 seeds", *[None] * 19])
ax.set_yticks(range(5), [str(data.data.columns[j]) for j in top])
ax.set_xlabel(f"importance: {outside} of 100 dots lie outside")
fig.legend(loc="outside upper center", ncols=2, frameon=False)
