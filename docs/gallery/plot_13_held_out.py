"""
Read the held-out R² first
==========================

With few masks and many features, a linear fit follows its own data well and predicts new scores
badly. The in-sample R² hides this. eblime prints the held-out R², which shows it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import eblime

data = load_breast_cancer(as_frame=True)
forest = RandomForestClassifier(50, random_state=0).fit(data.data, data.target)
counts = [40, 60, 100, 200, 400, 800]
fits = [
    eblime.TabularExplainer(forest, data.data, n_masks=n).explain(data.data.iloc[5]).posterior
    for n in counts
]

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.semilogx(counts, [fit.r2 for fit in fits], "o--", color="grey", label="in-sample R²")
ax.semilogx(counts, [fit.r2_held_out for fit in fits], "o-", color="#009e73", label="held-out R²")
ax.set_xticks(counts, counts)
ax.minorticks_off()
ax.set_xlabel("masks, for 30 features")
ax.legend(frameon=False)
