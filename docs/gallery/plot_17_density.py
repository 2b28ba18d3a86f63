"""
The whole posterior
===================

An interval is a summary. The posterior of each importance is a smooth density, computed without
sampling.
"""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import eblime

iris = load_iris(as_frame=True)
forest = RandomForestClassifier(50, random_state=0).fit(iris.data, iris.target_names[iris.target])
explanation = eblime.TabularExplainer(forest, iris.data, n_masks=200).explain(iris.data.iloc[70])
ax = explanation.plot("density", top=4)
