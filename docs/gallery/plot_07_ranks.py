"""
How certain is the order of the features?
=========================================

Each row shows the probability of every rank of one feature. Here "bmi" is certain to be the
first, and which of the next two is second is open.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import eblime

data = load_diabetes(as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0)
model.fit(data.data, data.target)
explainer = eblime.TabularExplainer(model, data.data, n_masks=500)
explanation = explainer.explain(data.data.iloc[0])
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
explanation.plot("ranks", top=5, ax=ax)
