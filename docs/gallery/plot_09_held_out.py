"""
Read the held-out R² first
==========================

With few masks, a linear fit follows its own data well and predicts new scores badly. The in-sample
R² hides this; the held-out R², which eblime prints, shows it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier

import eblime

data = load_breast_cancer(as_frame=True)
model = GradientBoostingClassifier(random_state=0)
model.fit(data.data, data.target)
explainer = eblime.TabularExplainer(model, data.data)

row, counts = data.data.iloc[0], [40, 60, 100, 200, 400, 800]
fits = [explainer.explain(row, n_masks=n).posterior for n in counts]
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.semilogx(counts, [fit.r2 for fit in fits], "o--", label="in-sample R²")
held_out = [fit.r2_held_out for fit in fits]
ax.semilogx(counts, held_out, "o-", label="held-out R²")
ax.set_xticks(counts, counts)
ax.set_xlabel("number of masks, for 30 features")
ax.minorticks_off()
ax.legend()
