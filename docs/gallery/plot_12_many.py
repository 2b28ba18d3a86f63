"""
Explain many rows at once
=========================

`explain_many` stores the explanations of many rows in a folder. Each dot is one patient; the colour
is the value of the measurement.
"""

import tempfile

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import eblime

data = load_diabetes(as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0)
model.fit(data.data, data.target)
explainer = eblime.TabularExplainer(model, data.data, n_masks=200)
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
with tempfile.TemporaryDirectory() as folder:
    run = eblime.explain_many(explainer, data.data.iloc[:60], folder + "/run")
    run.plot("beeswarm", top=6, ax=ax)
