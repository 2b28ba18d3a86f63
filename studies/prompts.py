"""Sources of prompts: EBLIME and ContextCite's lasso on stored answers of a language model.

The tables have the log probability of SmolLM2-135M's answer for every set of 12 sources (30
questions), and for 2,000 random sets of 20 sources and their complements (20 questions), so that no
model is asked. At equal numbers of calls, for each design and for the lasso (`Lasso(alpha=.01)` on
standardised random masks and scores per token, as in `context-cite`), this prints

- the rank correlation of predicted and true scores on 64 fresh masks, and the highest one that any
  linear prediction reaches;
- the error of the importances: root mean square over the spread of the true ones;
- the coverage of 95 % intervals, of all sources and of the most important one;
- how often the most important source comes first, and how much the log probability of the answer
  drops if the one and the three highest sources are left out (12 sources).

Then the calls until `TopK(1)` is certain, all questions and those whose most important source is
one that was planted, and how often it is wrong. For 20 sources "orthogonal" chooses among
the stored pairs those that balance the sources best, which is not quite as balanced.

Then the held-out R2 of orthogonal masks beside the R2 on all masks that were not asked, and how
often either is below .5; and Shapley values (12 sources): `Quadrature(index="shapley")` as the
method, which chooses masks for them, with two designs; `e.importances("shapley")` of the default
masks; and KernelSHAP of shapiq with pairs, at as many calls.

Last, `TopK(1)` for 40 and 100 made-up sources of which one is the clear winner (1.2, the next .6),
with three sizes of noise and interactions: at most 96 and 192 calls are the aim.

    EBLIME_TABLES=... python -m studies prompts    # a minute
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

import eblime
from eblime._types import FloatArray, IntArray
from eblime.answers import Proposal
from eblime.designs import bernoulli, exhaustive, orthogonal
from studies.data.stored import answers_file
from studies.pairs import paired
from studies.runner import positive
from studies.tables import frame_table

CALLS = (16, 32, 64, 128)
FRESH = 64
DESIGNS: dict[str, Any] = {"orthogonal": orthogonal, "paired": paired, "bernoulli": bernoulli}
PER_SOURCE = 400  # stored pairs that compete for the next place


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--repeats", type=positive, default=2, help="draws (default: 2)")


def run(options: argparse.Namespace) -> None:
    """Run the study and print its tables."""
    for p in (12, 20):
        questions = list(stored_questions(p))
        rows = [row for q in questions for row in question_rows(q, options.repeats)]
        best = np.mean([rank_correlation(q.masks @ q.truth, q.scores) for q in questions])
        print(f"\n{p} sources; the best linear prediction has a rank correlation of {best:.3f}\n")
        found = pd.DataFrame(rows).groupby(["calls", "by"], sort=False).mean()
        print(frame_table(found, "{:.3f}"))
        print(f"\n{stop_summary(questions, options.repeats)}")
        print("\nHeld-out R2\n")
        print(frame_table(held_out_summary(questions, options.repeats), "{:.3f}"))
        if p == 12:
            print(
                "\nShapley values: coverage >= .93 and no larger error than shapiq's are the aim\n"
            )
            print(frame_table(shapley_summary(questions, options.repeats), "{:.3f}"))
    print("\nTopK(1) with a clear winner; the aim is 96 calls at 40 sources, 192 at 100\n")
    print(
        frame_table(pd.DataFrame([winner_row(p, k) for p in (40, 100) for k in range(3)]), "{:g}")
    )
    print(f"\nOwn time of an explanation, 64 calls and 20 sources: {own_time():.1f} ms CPU")


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """A question with the answers to all stored masks."""

    number: int
    masks: FloatArray  # (N, p)
    scores: FloatArray  # (N,) mean log probability of a token
    tokens: int
    support: IntArray  # 1 for a source that was planted
    truth: FloatArray  # (p,) importances of the fit to all stored masks

    @property
    def top(self) -> int:
        """The most important source."""
        return int(np.abs(self.truth).argmax())

    def rows(self, masks: FloatArray) -> IntArray:
        """Where masks are stored, if all masks are."""
        found: IntArray = (masks @ 2.0 ** np.arange(masks.shape[1])).astype(np.intp)
        return found

    def ask(self, name: str, rng: np.random.Generator, n: int) -> tuple[IntArray, Any]:
        """Numbers of the masks that a design asks about, and their weights."""
        p, count = self.masks.shape[1], len(self.masks)
        if p <= 12:
            drawn: Any = DESIGNS[name](rng, n, p)
            weights = getattr(drawn, "sampling_weights", None)
            return self.rows(getattr(drawn, "masks", drawn)), weights
        if name == "bernoulli" or (name == "orthogonal" and n < 1.5 * p):
            pool = 1 + rng.permutation(count - 1)
            chosen = pool[: n - 1] if name == "bernoulli" else balanced(self.masks, pool, n - 1)
            return np.concatenate([[0], chosen]), None
        pool = 1 + rng.permutation(count // 2 - 1)
        half = pool if name == "paired" else balanced(self.masks, pool, n // 2 - 1)
        half = np.concatenate([[0], half[: n // 2 - 1]])
        weights = np.ones(n)
        weights[:2] = 0.0
        return np.stack([half, half + count // 2], axis=1).ravel(), weights


def stored_questions(p: int) -> Iterator[Question]:
    """The questions with p sources."""
    numbers = np.load(answers_file("prompts-dev.npz"))
    about = json.loads(answers_file("prompts-dev.json").read_text(encoding="utf8"))
    for k, entry in enumerate(about[f"dev{p}"]):
        if p == 12:
            masks = exhaustive(np.random.default_rng(0), 0, p)
        else:
            half = np.unpackbits(numbers[f"dev{p}_{k}_masks"], axis=1)[:, :p].astype(float)
            masks = np.concatenate([half, 1 - half])
        scores = numbers[f"dev{p}_{k}"].astype(float) / entry["tokens"]
        rows = np.column_stack([np.ones(len(masks)), masks])
        yield Question(
            number=k,
            masks=masks,
            scores=scores,
            tokens=entry["tokens"],
            support=np.array(entry["support"]),
            truth=np.linalg.lstsq(rows, scores, rcond=None)[0][1:],
        )


def balanced(masks: FloatArray, pool: IntArray, n: int) -> IntArray:
    """Of a pool of stored masks, one after the other the one that is least like those before."""
    signs, left = 2 * masks - 1, list(pool)
    inverse, found = 2 * np.eye(masks.shape[1]), list[int]()
    while len(found) < n:
        some = left[:PER_SOURCE]
        z = signs[some]
        best = int(np.einsum("ij,jk,ik->i", z, inverse, z).argmax())
        step = inverse @ z[best]
        inverse -= np.outer(step, step) / (1 + z[best] @ step)
        found.append(some[best])
        left.remove(some[best])
    return np.array(found)


def question_rows(question: Question, repeats: int) -> Iterator[dict[str, Any]]:
    """What is measured for one question."""
    for repeat in range(repeats):
        for n in CALLS:
            for name in ("lasso", *DESIGNS):
                rng = np.random.default_rng([question.number, repeat, n])
                fit = lasso_fit if name == "lasso" else eblime_fit
                asked, weights = question.ask("bernoulli" if name == "lasso" else name, rng, n)
                yield {"calls": n, "by": name} | measure(question, rng, asked, weights, fit)


def lasso_fit(masks: FloatArray, scores: FloatArray, weights: Any) -> tuple[FloatArray, Any]:
    """ContextCite's importances, which have no intervals."""
    scale = StandardScaler().fit(masks)
    found = Lasso(alpha=0.01).fit(scale.transform(masks), scores).coef_ / scale.scale_
    return found, None


def eblime_fit(masks: FloatArray, scores: FloatArray, weights: Any) -> tuple[FloatArray, Any]:
    """The importances of EBLIME and their 95 % intervals."""
    post = eblime.fit(masks, scores, weights)
    return post.mean, post.interval()


def measure(
    question: Question,
    rng: np.random.Generator,
    asked: IntArray,
    weights: Any,
    fit: Callable[[FloatArray, FloatArray, Any], tuple[FloatArray, Any]],
) -> dict[str, float]:
    """The figures of one fit."""
    found, ends = fit(question.masks[asked], question.scores[asked], weights)
    others = np.setdiff1d(np.arange(len(question.masks)), asked)
    fresh = rng.choice(others, FRESH, replace=False)
    truth, top = question.truth, question.top
    row = {
        "rank correlation": rank_correlation(question.masks[fresh] @ found, question.scores[fresh]),
        "error": float(np.sqrt(np.mean((found - truth) ** 2)) / truth.std()),
        "coverage": np.nan,
        "coverage of the top": np.nan,
        "top found": float(np.abs(found).argmax() == top),
    }
    if ends is not None:
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        row |= {"coverage": inside.mean(), "coverage of the top": float(inside[top])}
    if question.masks.shape[1] == 12:
        order = np.argsort(-found)
        for k in (1, 3):
            left = np.ones((1, 12))
            left[0, order[:k]] = 0
            drop = question.scores[-1] - question.scores[question.rows(left)[0]]
            row[f"drop without the top {k}"] = question.tokens * float(drop)
    return row


def rank_correlation(predicted: FloatArray, scores: FloatArray) -> float:
    """Spearman's; zero for a prediction that is constant."""
    return float(spearmanr(predicted, scores).statistic) if np.ptp(predicted) else 0.0


def stop_summary(questions: list[Question], repeats: int) -> str:
    """How many calls `TopK(1)` takes."""
    found = pd.DataFrame([stop_row(q, r) for q in questions for r in range(repeats)])
    rows = []
    for name, part in (("all", found), ("planted", found[found["planted"]])):
        rows.append(
            {
                "questions": name,
                "number": len(part),
                "median calls": float(part["calls"].median()),
                "certain within 40": float((part["calls"] <= 40).mean()),
                "wrong": float(part["wrong"].mean()),
            }
        )
    return frame_table(pd.DataFrame(rows), "{:.2f}")


def stop_row(question: Question, repeat: int) -> dict[str, Any]:
    """One explanation that ends when the most important source is certain."""
    p, known = question.masks.shape[1], dict[bytes, float]()
    for mask, value in zip(question.masks.astype(bool), question.scores, strict=True):
        known[mask.tobytes()] = value
    names = [f"<{j}>" for j in range(p)]

    def score(prompts: list[str]) -> list[float]:
        return [known[np.array([name in prompt for name in names]).tobytes()] for prompt in prompts]

    design: Any = orthogonal if p == 12 else StoredPairs(question)
    explainer = eblime.PromptExplainer(score, names, "{sources}", design=design)
    e = explainer.explain(until=eblime.TopK(1), rng=repeat)
    return {
        "calls": e.provenance["model_calls"],
        "wrong": bool(e.provenance["reached"]) and e.posterior.order()[0] != question.top,
        "planted": question.support[question.top] == 1,
    }


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """Balanced masks among the stored ones, in the order and with the rounds of `orthogonal`."""

    question: Question
    keeps_order = True

    def __call__(self, rng: np.random.Generator, n_masks: int, p: int) -> Any:
        """As many masks as there are, and their weights."""
        asked, weights = self.question.ask("orthogonal", rng, min(n_masks, 1000))
        masks = self.question.masks[asked]
        return Proposal(masks=masks, sampling_weights=weights)

    def first_look(self, p: int) -> int | None:
        """As for `orthogonal`."""
        found: int | None = orthogonal.first_look(p)  # type: ignore[attr-defined]
        return found


def held_out_summary(questions: list[Question], repeats: int) -> pd.DataFrame:
    """The held-out R2 of `EBLIME()` beside that on the masks that were not asked."""
    rows = []
    for question in questions:
        for repeat in range(repeats):
            for n in CALLS:
                rng = np.random.default_rng([question.number, repeat, n])
                asked, weights = question.ask("orthogonal", rng, n)
                post = eblime.fit(question.masks[asked], question.scores[asked], weights)
                others = np.setdiff1d(np.arange(len(question.masks)), asked)
                scores = question.scores[others]
                missed = scores - post.intercept - question.masks[others] @ post.mean
                true, said = 1 - np.mean(missed**2) / scores.var(), float(post.r2_held_out or 0)
                row = {"calls": n, "held out": said, "on all others": true}
                rows.append({**row, "held out < .5": said < 0.5, "others < .5": true < 0.5})
    found: pd.DataFrame = pd.DataFrame(rows).groupby("calls").mean()
    return found


def shapley_summary(questions: list[Question], repeats: int) -> pd.DataFrame:
    """Error and coverage of Shapley values, of all sources and of the most important one."""
    rows = []
    for question in questions:
        truth, names = shapley_values(question), [f"<{j}>" for j in range(12)]
        top = int(np.abs(truth).argmax())

        def score(prompts: list[str], question: Question = question) -> FloatArray:
            masks = np.array([[f"<{j}>" in prompt for j in range(12)] for prompt in prompts], float)
            scores: FloatArray = question.scores[question.rows(masks)]
            return scores

        method = eblime.Quadrature(index="shapley")
        for n in CALLS[1:]:
            for repeat in range(repeats):
                for name in ("leverage", "adaptive", "importances"):
                    own: Any = {} if name == "importances" else {"method": method, "design": name}
                    explainer = eblime.PromptExplainer(score, names, "{sources}", **own)
                    e = explainer.explain(rng=repeat, n_masks=n - 2)
                    post = e.posterior if own else e.importances("shapley")
                    low, high = post.interval().T
                    inside, error = (low <= truth) & (truth <= high), post.mean - truth
                    row = {"calls": n, "by": name, "error": error.std() / truth.std()}
                    rows.append(row | {"coverage": inside.mean(), "of the top": inside[top]})
                error = kernel_shap(question, n, repeat) - truth
                rows.append({"calls": n, "by": "shapiq", "error": error.std() / truth.std()})
    found: pd.DataFrame = pd.DataFrame(rows).groupby(["calls", "by"], sort=False).mean()
    return found


def shapley_values(question: Question) -> FloatArray:
    """Exactly, from all masks: the mean change over all orders of the sources."""
    p, sizes = question.masks.shape[1], question.masks.sum(axis=1).astype(int)
    weights = np.array([1 / (p * comb(p - 1, size)) for size in range(p)])
    found = np.empty(p)
    for j in range(p):
        hidden = np.flatnonzero(question.masks[:, j] == 0)
        shown = question.masks[hidden].copy()
        shown[:, j] = 1
        change = question.scores[question.rows(shown)] - question.scores[hidden]
        found[j] = weights[sizes[hidden]] @ change
    return found


def kernel_shap(question: Question, n: int, seed: int) -> FloatArray:
    """KernelSHAP of shapiq with pairs; NaN where it is not installed."""
    try:
        from shapiq.approximator import KernelSHAP
    except ImportError:
        return np.full(question.masks.shape[1], np.nan)
    base = question.scores[0]
    game = lambda masks: question.scores[question.rows(np.asarray(masks, float))] - base  # noqa: E731
    found = KernelSHAP(n=12, pairing_trick=True, random_state=seed).approximate(budget=n, game=game)
    return np.array([found[(j,)] for j in range(12)])


def winner_row(p: int, level: int, seeds: int = 20) -> dict[str, float]:
    """Calls until the clear winner among p sources is certain."""
    noise = (0.0, 0.1, 0.3)[level]
    names, calls, right = [f"<{j}>" for j in range(p)], list[int](), 0
    for seed in range(seeds):
        rng = np.random.default_rng([p, seed])
        effects = np.concatenate([[1.2, 0.6], rng.normal(0, 0.05, p - 2)])
        left, other = rng.integers(2, p, size=(2, p))
        joint = rng.normal(0, noise, p)  # of two sources together

        def score(prompts: list[str]) -> FloatArray:
            masks = np.array([[name in prompt for name in names] for prompt in prompts], float)
            scatter = rng.normal(0, noise, len(masks))  # noqa: B023  called before the next seed
            found: FloatArray = masks @ effects + scatter  # noqa: B023
            found += (masks[:, left] * masks[:, other]) @ joint  # noqa: B023
            return found

        e = eblime.PromptExplainer(score, names, "{sources}").explain(
            until=eblime.TopK(1), rng=seed
        )
        calls.append(e.provenance["model_calls"])
        right += bool(e.provenance["reached"]) and int(e.posterior.order()[0]) == 0
    found = {"median calls": float(np.median(calls)), "most": max(calls), "right": right / seeds}
    return {"sources": p, "noise": noise, **found}


def own_time() -> float:
    """Milliseconds of CPU that the library itself takes."""
    names = [f"<{j}>" for j in range(20)]

    def score(prompts: list[str]) -> list[float]:
        return [-1.0 + ("<3>" in prompt) - 0.1 * len(prompt) ** 0.5 for prompt in prompts]

    explainer = eblime.PromptExplainer(score, names)
    explainer.explain("?")
    start = time.process_time()
    for seed in range(20):
        explainer.explain("?", rng=seed)
    return (time.process_time() - start) / 20 * 1000
