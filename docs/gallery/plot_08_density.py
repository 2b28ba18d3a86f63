"""
See the whole posterior, not only an interval
=============================================

The posterior of each importance is a smooth density, computed without sampling.
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
explainer = eblime.TabularExplainer(model, wine.data, n_masks=200)
explanation = explainer.explain(wine.data.iloc[0])
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
explanation.plot("density", top=2, ax=ax)
