"""Time the explanation of a text, compared with lime and shap's KernelExplainer in the same run.

The model is TF-IDF with logistic regression, trained on rt-polarity if EBLIME_DATA has it, else on
generated sentences. Documents have about 250 different words, 360 in all; there are 5,000 perturbed
texts. The time of the model is subtracted. shap has no text sampler of this kind: its
KernelExplainer gets the masks, and we turn them into texts, which does not count as shap's time.
Takes about a minute.

    pip install -e '.[studies]' && python -m studies speed-text
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import eblime
from eblime.compat import lime as compat
from eblime.domains.text import TextScene, read_text
from studies.speed.clock import Clocked, add_clock_options, chosen, measure, store, versions
from studies.tables import table

N, TEXTS, ROUNDS = 5_000, 3, 3


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


def text_jobs(documents: Sequence[str], model: Clocked) -> dict[str, Callable[[int], object]]:
    """Each library's explanation of document k."""
    from lime.lime_text import LimeTextExplainer

    lime = LimeTextExplainer(random_state=0)
    ours = eblime.TextExplainer(model, n_masks=N)
    scenes = [read_text(document) for document in documents]
    return {
        "lime": lambda k: lime.explain_instance(
            documents[k], model, num_features=30, num_samples=N
        ),
        **{
            f"eblime.compat.lime, {method}": compat_job(documents, model, method)
            for method in ("eblime", "lime")
        },
        "eblime": lambda k: ours.explain(documents[k], 1, rng=k).posterior.interval(),
        "shap": lambda k: shap_values_of(scenes[k], model),
    }


def compat_job(documents: Sequence[str], model: Clocked, method: str) -> Callable[[int], object]:
    """Our replacement of lime, with intervals where the method has them."""
    explainer = compat.LimeTextExplainer(random_state=0, method=method)

    def job(k: int) -> object:
        exp = explainer.explain_instance(documents[k], model, num_features=30, num_samples=N)
        return exp.as_list(intervals=method == "eblime")

    return job


def shap_values_of(scene: TextScene, model: Clocked) -> object:
    """Shap's values of the words; the time of our rendering counts as the model's."""
    import shap

    texts = Clocked(scene.inputs, model.now)
    explainer = shap.KernelExplainer(
        lambda masks: model(texts(masks))[:, 1], np.zeros((1, scene.n_features)), silent=True
    )
    values = explainer.shap_values(np.ones(scene.n_features), nsamples=N, silent=True)
    model.seconds += texts.seconds
    return values


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the benchmark."""
    add_clock_options(parser, rounds=ROUNDS)


def run(options: argparse.Namespace) -> None:
    """Measure and print."""
    name, sentences, labels = load()
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression(C=4)).fit(sentences, labels)
    model = Clocked(pipe.predict_proba, options.now)
    documents = [" ".join(sentences[20 * k : 20 * k + 20]) for k in range(TEXTS)]
    jobs = text_jobs(documents, model)
    found = measure(model, chosen(jobs, options.only), TEXTS, options.rounds)
    count = np.mean([read_text(text).n_features for text in documents])
    print(f"{name}, {count:.0f} features per text, {N} perturbed texts")
    print(versions("eblime", "lime", "shap", "scikit-learn"))
    print("Median milliseconds per text; eblime's include the exact posterior and its intervals.\n")
    if options.store:
        times = {job: (own, asked) for job, (own, asked, _) in found.items()}
        store("speed-text", {f"text of {count:.0f} words, {N} perturbed texts": times})
    base = found["lime"][0]
    rows = [
        [job, f"{1e3 * own:.0f}", f"{1e3 * asked:.0f}", f"{own / base:.2f}"]
        for job, (own, asked, _) in found.items()
    ]
    print(table(["", "own time", "model time", "own time / lime's"], rows))
