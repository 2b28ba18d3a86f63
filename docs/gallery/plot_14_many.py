"""
Many rows at once
=================

`explain_many` explains many rows and stores the results in a folder, from which an interrupted run
resumes. Each dot is one patient; the colour is the value of the measurement.
"""

import tempfile

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import eblime

data = load_diabetes(as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(data.data, data.target)
explainer = eblime.TabularExplainer(model, data.data, n_masks=200)
with tempfile.TemporaryDirectory() as folder:
    run = eblime.explain_many(explainer, data.data.iloc[:60], folder + "/run")
    ax = run.plot("beeswarm")
    print(run.summary()[["feature", "mean_abs", "low", "high"]].head().to_string(index=False))
