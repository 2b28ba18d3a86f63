"""
Explain several classes with one set of model calls
===================================================

`explain_targets` explains several outputs of a model at the price of one. What supports one wine
counts against another.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eblime

wine = load_wine(as_frame=True)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
model.fit(wine.data, wine.target)
explainer = eblime.TabularExplainer(model, wine.data, n_masks=500)

found = explainer.explain_targets(wine.data.iloc[0], [0, 1])
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
eblime.plot.compare({"wine 0": found[0], "wine 1": found[1]}, top=4, ax=ax)
ax.set_title("", loc="left")
