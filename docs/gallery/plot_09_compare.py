"""
Two methods, the same model calls
=================================

`refit` fits another method to the same scores, without model calls. Here, the default is compared
with BayesLIME, which fixes the ridge parameter at 1.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import eblime
from eblime.plot import compare

data = load_breast_cancer(as_frame=True)
forest = RandomForestClassifier(50, random_state=0).fit(data.data, data.target_names[data.target])
explanation = eblime.TabularExplainer(forest, data.data, n_masks=150).explain(data.data.iloc[1])
ax = compare(explanation, explanation.refit("bayeslime"))
