"""
Shapley values with error bars
==============================

`method="bayesshap"` estimates Shapley values, with intervals. For texts and images they share out
the difference between the prediction and the score with everything hidden: the printed sum is
exact.
"""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import eblime

films = ["a witty film", "good music", "never boring", "a dull film", "bad music", "never witty"]
model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
model.fit(films, ["praise"] * 3 + ["blame"] * 3)
review = "A witty film: good music, a good cast, and hardly ever boring, although the end is dull."
explainer = eblime.TextExplainer(model, method="bayesshap", design="leverage", n_masks=100)
explanation = explainer.explain(review, "praise")
ax = explanation.plot("intervals", top=8)
hidden, shares = explanation.posterior.intercept, explanation.posterior.mean.sum()
print(f"everything hidden {hidden:.3f} + Shapley values {shares:.3f} = {hidden + shares:.3f}")
print(f"prediction {explanation.prediction:.3f}")
