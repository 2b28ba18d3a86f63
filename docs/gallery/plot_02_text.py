"""
Which words decide?
===================

A classifier tells praise from blame. Green words support "praise", orange ones count against it;
the sign of underlined words is certain.
"""

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import eblime

films = ["a witty film", "good music", "never boring"]
films += ["a dull film", "bad music", "never witty"]
model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
model.fit(films, ["praise"] * 3 + ["blame"] * 3)

review = "A witty film, good music and a good cast. "
review += "It is never boring, but the end is dull."
explanation = eblime.TextExplainer(model).explain(review, "praise")
fig, ax = plt.subplots(figsize=(5, 2), layout="constrained")
explanation.plot("text", ax=ax)
