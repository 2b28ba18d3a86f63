"""
The most important words of a text
==================================

scikit-learn describes each of its data sets in English. A classifier learned to tell from which
description a sentence comes. The shading shows the importance of each word; the sign of underlined
words is certain.
"""

from sklearn import datasets
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import eblime

loaders = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "diabetes": datasets.load_diabetes,
}
sentences, names = [], []
for name, load in loaders.items():
    found = [part.strip() for part in load().DESCR.replace("\n", " ").split(". ") if len(part) > 30]
    sentences += found
    names += [name] * len(found)
pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(C=30)).fit(sentences, names)

text = (
    "The data are the results of a chemical analysis of wines that are grown in the same region, "
    "one class of plant for each cultivator, with thirteen measurements."
)
explanation = eblime.TextExplainer(pipeline, n_masks=500).explain(text, target="wine")
ax = explanation.plot("text")
