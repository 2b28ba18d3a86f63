"""Time the explanation of a text, compared with lime and shap's KernelExplainer in the same run.

The model is TF-IDF with logistic regression, trained on rt-polarity if EBLIME_DATA has it, else on
generated sentences. Documents have about 250 different words; there are 5,000 perturbed texts. The
time of the model is subtracted. shap has no text sampler of this kind: its KernelExplainer gets the
masks, and we turn them into texts, which does not count as shap's time.

    pip install -e '.[bench]' && python benchmarks/text.py
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import shap
from clock import Clocked, chosen, measure, options
from lime.lime_text import LimeTextExplainer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import eblime
from eblime.compat import lime as compat
from eblime.domains.text.scene import read_text

N, TEXTS, ROUNDS = 5_000, 3, 5


def load() -> tuple[str, list[str], list[int]]:
    """Name of the data, sentences, and their classes."""
    folder = Path(os.environ.get("EBLIME_DATA", "nowhere")) / "text"
    if folder.exists():
        said = [(folder / f"rt-polarity.{mood}").read_text("latin1") for mood in ("neg", "pos")]
        lines = [text.splitlines() for text in said]
        return "rt-polarity", lines[0] + lines[1], [0] * len(lines[0]) + [1] * len(lines[1])
    rng = np.random.default_rng(0)
    words = [f"{a}{b}" for a in ("ba", "ko", "li", "mu", "so") for b in map(str, range(200))]
    texts = [" ".join(rng.choice(words, 20)) for _ in range(4_000)]
    return "generated sentences", texts, [int("ba7" in text or "ko9" in text) for text in texts]


def main() -> None:
    """Measure and print."""
    settings = options(__doc__, rounds=ROUNDS)
    name, sentences, labels = load()
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression(C=4)).fit(sentences, labels)
    model = Clocked(pipe.predict_proba, settings.now)
    documents = [" ".join(sentences[20 * k : 20 * k + 20]) for k in range(TEXTS)]
    ours = eblime.TextExplainer(model, n_masks=N)
    lime = LimeTextExplainer(random_state=0)
    replacements = {
        method: compat.LimeTextExplainer(random_state=0, method=method)
        for method in ("eblime", "lime")
    }
    scenes = [read_text(text) for text in documents]

    def explained_by_shap(k: int) -> object:
        scene = scenes[k]
        texts = Clocked(lambda masks: scene.inputs(masks), settings.now)
        explainer = shap.KernelExplainer(
            lambda masks: model(texts(masks))[:, 1], np.zeros((1, scene.n_features)), silent=True
        )
        values = explainer.shap_values(np.ones(scene.n_features), nsamples=N, silent=True)
        model.seconds += texts.seconds  # rendering is ours, not shap's
        return values

    def listed(exp: compat.explanation.Explanation, method: str) -> object:
        return exp.as_list(intervals=method == "eblime")

    jobs = {
        "lime": lambda k: lime.explain_instance(
            documents[k], model, num_features=30, num_samples=N
        ),
        **{
            f"eblime.compat.lime, {method}": lambda k, e=e, method=method: listed(
                e.explain_instance(documents[k], model, num_features=30, num_samples=N), method
            )
            for method, e in replacements.items()
        },
        "eblime": lambda k: ours.explain(documents[k], 1, rng=k).posterior.interval(),
        "shap": explained_by_shap,
    }
    found = measure(model, chosen(jobs, settings.only), TEXTS, settings.rounds)
    packages = ", ".join(f"{p} {version(p)}" for p in ("eblime", "lime", "shap", "scikit-learn"))
    count = np.mean([scene.n_features for scene in scenes])
    print(f"{name}, {count:.0f} features per text, {N} perturbed texts")
    print(f"Python {platform.python_version()}, {packages}")
    print("Median milliseconds per text; eblime's include the exact posterior and its intervals.\n")
    print("| | own time | model time | own time / lime's |")
    print("|---|---|---|---|")
    base = found["lime"][0]
    for row, (own, asked, _) in found.items():
        print(f"| {row} | {1e3 * own:.0f} | {1e3 * asked:.0f} | {own / base:.2f} |")


if __name__ == "__main__":
    main()
