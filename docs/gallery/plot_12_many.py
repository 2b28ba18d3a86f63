"""
Explain many rows at once
=========================

`explain_many` explains many rows. Each dot is one patient; the colour is the value of the
measurement.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import eblime

data = load_diabetes(as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0)
model.fit(data.data, data.target)
explainer = eblime.TabularExplainer(model, data.data, n_masks=200)
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
run = explainer.explain_many(data.data.iloc[:60])
run.plot("beeswarm", top=6, ax=ax)
