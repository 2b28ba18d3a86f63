"""
How certain is the order?
=========================

A list of "the most important features" does not show that neighbours in the list may be in the
wrong order. Each row shows the probability of every rank of one feature.
"""

from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import eblime

wine = load_wine(as_frame=True)
forest = RandomForestClassifier(50, random_state=0).fit(wine.data, wine.target_names[wine.target])
explanation = eblime.TabularExplainer(forest, wine.data, n_masks=300).explain(wine.data.iloc[100])
ax = explanation.plot("ranks")
