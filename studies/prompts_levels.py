"""Documents and their chunks: how often the chunk is found that an answer was copied from.

Real texts and a synthetic model: documents are the source files of installed packages, chunks are
the first 20 paragraphs of their docstrings, and the model knows nothing but the prompt. It mixes
how often three, two and one words of the answer follow each other in the prompt, which makes the
answer probable where its words are, less so the longer the prompt is, and gives copies the same
credit. A normal number, which depends on the prompt alone, is added to the log probabilities.

Each answer has the first 25 words of a chunk that the corpus has once, of which a share is replaced
by words of others. 200 documents are drawn for each. The true top chunk is that of the scores of
4,000 random sets of all 4,000 chunks, without the noise; it is clear if no other chunk has 4/5 of
its importance, as one does that says the same. The truth of an interval is the fit to 4,000 random
sets of the features of its explanation.

    python -m studies prompts-levels    # twenty minutes
"""

from __future__ import annotations

import argparse
import ast
import re
import zlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime._types import FloatArray
from studies.runner import positive
from studies.tables import frame_table

PACKAGES = ("matplotlib", "numpy", "pandas", "scipy", "sklearn")
DOCUMENTS, CHUNKS, WORDS = 200, 20, 25
SETTINGS = ((0.3, 0.1), (0.5, 0.1), (0.3, 0.3))  # share of replaced words, noise
FRESH, CLEAR = 4_000, 0.8


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--answers", type=positive, default=40, help="of each kind (default: 40)")
    parser.add_argument(
        "--calls", type=positive, nargs="+", default=[128, 256], help="(default: 128 256)"
    )


def run(options: argparse.Namespace) -> None:
    """Run the study and print its table."""
    corpus = read_corpus()
    print(f"{len(corpus)} documents of {CHUNKS} chunks")
    rows = [
        answer_row(corpus, number, replaced, noise, calls)
        for replaced, noise in SETTINGS
        for calls in options.calls
        for number in range(options.answers)
    ]
    frame = pd.DataFrame(rows).groupby(["replaced", "noise", "calls"], sort=False).mean()
    print(frame_table(frame, "{:.3f}"))


def read_corpus() -> dict[str, list[str]]:
    """Paragraphs of 20 to 120 words in the docstrings of a file, of files with enough of them."""
    found = {}
    for package in PACKAGES:
        spec = find_spec(package)
        root = Path(str(spec.origin)).parent if spec else Path("nowhere")
        for path in sorted(root.rglob("*.py")):
            if "test" in path.as_posix():
                continue
            chunks: dict[str, None] = {}
            for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    for part in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                        if 20 <= len(part.split()) <= 120:
                            chunks[" ".join(part.split())] = None
            if len(chunks) >= CHUNKS:
                found[path.relative_to(root.parent).as_posix()] = list(chunks)[:CHUNKS]
    return found


def split_words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return re.findall(r"\w+", text.lower())


class Copier:
    """A language model that copies from the prompt; see above."""

    def __init__(self, chunks: Sequence[str], answer: str, noise: float) -> None:
        words, self.noise = split_words(answer), noise
        runs = {
            tuple(words[max(0, i - k) : i]) for i in range(1, len(words) + 1) for k in (1, 2, 3)
        }
        place = {run: number for number, run in enumerate(sorted(runs), start=1)}
        self.number = {chunk: number for number, chunk in enumerate(chunks)}  # all different
        self.counts = np.zeros((len(chunks), len(place) + 1))  # of all words, and of each run
        for row, chunk in zip(self.counts, chunks, strict=True):
            found = split_words(chunk)
            row[0] = len(found)
            for k in (1, 2, 3):
                for i in range(k, len(found) + 1):
                    row[place.get(tuple(found[i - k : i]), 0)] += tuple(found[i - k : i]) in place
            row[0] = len(found)
        at = [
            [place[tuple(words[max(0, i - k) : i])] for i in range(1, len(words) + 1)]
            for k in (1, 2, 3)
        ]
        self.one, self.two, self.three = map(np.array, at)

    def log_probs(self, counts: FloatArray) -> FloatArray:
        """The log probability of each word, (n, words), given what prompts have, (n, runs)."""
        one, two, three = (counts[:, at] for at in (self.one, self.two, self.three))
        after_one = two[:, 1:] / (one[:, :-1] + 1)
        after_two = three[:, 2:] / (two[:, 1:-1] + 1)
        found = 0.05 / 20_000 + 0.15 * one / (counts[:, :1] + 100)
        found[:, 1:] += 0.3 * after_one
        found[:, 2:] += 0.5 * after_two
        return np.asarray(np.log(found))

    def members(self, text: str) -> FloatArray:
        """How often each chunk is in a text."""
        known = [self.number[part] for part in text.split("\n\n") if part in self.number]
        return np.bincount(known, minlength=len(self.number)).astype(float)

    def token_spans(self, answer: str) -> list[tuple[int, int]]:
        """Where the words are."""
        return [match.span() for match in re.finditer(r"\w+", answer)]

    def token_log_probs(self, prompts: Sequence[str], answer: str) -> list[FloatArray]:
        """For each prompt, those of `log_probs` and the noise."""
        shown = np.array([self.members(prompt) for prompt in prompts])
        noise = [np.random.default_rng(zlib.crc32(p.encode())).standard_normal() for p in prompts]
        added = self.noise * np.clip(noise, -3, 3)[:, None] - 1  # so that no sum is above zero
        return list(self.log_probs(shown @ self.counts) + added)


def answer_row(
    corpus: Mapping[str, Sequence[str]], number: int, replaced: float, noise: float, calls: int
) -> dict[str, Any]:
    """What is found about one answer."""
    rng = np.random.default_rng([number, round(100 * replaced)])
    names = rng.choice(sorted(corpus), DOCUMENTS, replace=False).tolist()
    documents = {name: list(corpus[name]) for name in names}
    chunks = [chunk for name in names for chunk in documents[name]]
    once = [k for k, chunk in enumerate(chunks) if chunks.count(chunk) == 1]
    words = split_words(chunks[rng.choice(once)])[:WORDS]
    others = split_words(" ".join(rng.choice(chunks, WORDS)))
    swapped = rng.random(len(words)) < replaced
    answer = " ".join(np.where(swapped, rng.choice(others, len(words)), words))
    model = Copier(list(dict.fromkeys(chunks)), answer, noise)
    every = fit_truth(rng, model, np.eye(len(model.number)))
    second, largest = np.sort(every)[-2:]
    top = list(model.number)[every.argmax()]
    limit = eblime.Calls(max_calls=calls)
    explainer = eblime.PromptExplainer(model, documents, levels=2, n_masks=calls, calls=limit)
    e = explainer.explain("What does it say?", answer=answer, rng=number)
    texts = e.details()["text"]
    truth = fit_truth(rng, model, np.array([model.members(text) for text in texts]))
    low, high = e.posterior.interval().T
    inside = (low <= truth) & (truth <= high)
    first = int(e.posterior.mean.argmax())
    return {
        **{"replaced": replaced, "noise": noise, "calls": calls},
        "document opened": top in texts,
        "top right": texts[first] == top,
        "right if clear": texts[first] == top if second < CLEAR * largest else np.nan,
        "first covered": inside[first],
        "true first covered": inside[truth.argmax()],
        "all covered": inside.mean(),
        "features": len(texts),
        "asked": e.provenance["model_calls"],
    }


def fit_truth(rng: np.random.Generator, model: Copier, members: FloatArray) -> FloatArray:
    """The importances of features, which are sets of chunks, without the noise."""
    masks = (rng.random((FRESH // 2, len(members))) < 0.5).astype(float)
    masks = np.concatenate([masks, 1 - masks])
    scores = model.log_probs(masks @ (members @ model.counts)).mean(axis=1)
    if len(members) > 1_000:  # the difference of means is enough to find the largest
        return np.asarray((2 * masks - 1).T @ scores * 2 / len(masks))
    return np.asarray(np.linalg.lstsq(masks - 0.5, scores - scores.mean(), rcond=None)[0])
