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
model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(data.data, data.target)
explainer = eblime.TabularExplainer(model, data.data, n_masks=300)

biopsy = data.data.iloc[20]
one, *others = [explainer.explain(biopsy, 0, rng=r) for r in range(21)]
lime = np.array([e.refit("lime").posterior.mean for e in others])
top = one.posterior.order()[:5]
low, high = one.posterior.interval(0.95)[top].T
outside = ((lime[:, top] < low) | (lime[:, top] > high)).sum()
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
label, green = "one run of eblime", "#009e73"
ax.hlines(range(5), low, high, lw=12, color=green, alpha=0.4, label=label)
labels = ["LIME, 20 seeds", *[None] * 19]
ax.plot(lime[:, top].T, range(5), "k.", ms=4, label=labels)
ax.set_yticks(range(5), [str(data.data.columns[j]) for j in top])
ax.set_xlabel(f"importance: {outside} of 100 dots lie outside")
fig.legend(loc="outside upper center", ncols=2, frameon=False)
