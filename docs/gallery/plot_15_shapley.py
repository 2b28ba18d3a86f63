"""
Shapley values with error bars
==============================

`method="bayesshap"` estimates Shapley values. They sum to the difference between the prediction
and the prediction with everything hidden.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import eblime

data = load_diabetes(as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(data.data, data.target)
explainer = eblime.TabularExplainer(model, data.data, method="bayesshap", n_masks=500)
explanation = explainer.explain(data.data.iloc[3])
ax = explanation.plot("values")
print(f"sum of the values: {explanation.posterior.mean.sum():.1f}")
