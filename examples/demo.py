"""Ask why a random forest calls a tumour malignant, and how sure the answer is.

A real model on real data (569 biopsies, bundled with scikit-learn), explained by `eblime.fit`
alone: ten measurements, each hidden by giving its columns the values of a typical benign biopsy.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import eblime

N_MASKS = 400

data = load_breast_cancer()
forest = RandomForestClassifier(200, random_state=0).fit(data.data[100:], data.target[100:])
biopsy = data.data[2]  # not among those the forest has learnt from
typical = np.median(data.data[data.target == 1], axis=0)
names = [name.removeprefix("mean ") for name in data.feature_names[:10]]

# Masks, and what the forest answers for each: three columns (mean, error, worst) a measurement.
rng = np.random.default_rng(0)
masks = rng.integers(0, 2, size=(N_MASKS, 10))
masks[0] = 1
rows = np.where(np.tile(masks, 3) == 1, biopsy, typical)
malignant = forest.predict_proba(rows)[:, 0]

# Masks that hide less are nearer to the biopsy and weigh more: lime's kernel.
hidden = 10 - masks.sum(axis=1)
weights = np.exp(-hidden / (2 * 0.75**2 * 10))

post = eblime.fit(masks, malignant, weights)
ranking = post.ranking()

print(f"The forest says: malignant with probability {malignant[0]:.2f}. What did it look at?\n")
print(post.table(names))
print(f"\nEBLIME learnt the ridge parameter: median {post.lam.median:.2g}, ", end="")
low, high = post.lam.quantile([0.025, 0.975])
print(f"95% between {low:.2g} and {high:.2g}.")
sure = [names[j] for j in ranking.order[:3]]
print(f"Most important, by expected rank: {', '.join(sure)}.")
print(f"Among the top three with 95%: {', '.join(names[j] for j in ranking.credible_set(3))}.")
