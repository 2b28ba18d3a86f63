"""
More masks, narrower intervals
==============================

The width of an interval depends on the number of masks. With four times as many masks, it is about
half as wide.
"""

from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import eblime

wine = load_wine(as_frame=True)
forest = RandomForestClassifier(50, random_state=0).fit(wine.data, wine.target_names[wine.target])
explanation = eblime.TabularExplainer(forest, wine.data, n_masks=1000).explain(wine.data.iloc[0])
ax = explanation.plot("convergence")
