"""
A row of a table, with error bars
=================================

A gradient boosting model predicts how far a patient's diabetes has advanced. The bars show how
much each measurement of one patient changes the prediction; the whiskers are 95 % intervals.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import eblime

data = load_diabetes(as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(data.data, data.target)

explanation = eblime.TabularExplainer(model, data.data, n_masks=500).explain(data.data.iloc[3])
ax = explanation.plot("values")

# %%
# Measurements whose whiskers cross zero may have no influence at all on this patient's prediction.
print(explanation)
