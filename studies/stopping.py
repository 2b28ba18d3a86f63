"""Calls until a stop rule is sure, and how often it is wrong.

For every rule: how many masks it takes in growing rounds, how often it is reached, and how often
what it certifies is wrong. Beside it the smallest fixed N at which the default, `EBLIME()` with
masks by coin tosses, certifies the same thing from one look for half of `--fixed-seeds` draws; with
few of them a lucky draw is enough. The truth is the weighted linear fit, intercept free, to the
whole population.

- p13: photos with 11 to 13 superpixels, whose answers are known for all 2^p masks;
- p40: photos with 28 to 45 superpixels, whose answers are known for 5,000 masks and their
  complements, which are the population;
- german: rows of German credit with 20,000 perturbed rows around each, drawn with replacement.

"calls" and "fixed N" are medians over the photos where both reach the rule within `--max-masks`,
for each photo the median over seeds; "ratio" is that of these medians. `--fixed-masks` is another
limit for the fixed N, if the rule is to be followed for fewer masks. With `--same-rule` the fixed
N must reach the very same rule, whose level allows for looking repeatedly.

    python -m studies stopping --photos 10 --seeds 3          # two minutes
    EBLIME_DATA=... python -m studies stopping --cases german
    python -m studies stopping --rules top3 --design paired --seeds 20
    python -m studies stopping --method "EBLIME(noise='unequal')" --design paired
    python -m studies stopping --method "Quadrature()" --design adaptive --jobs 16
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime.answers import Answers
from eblime.methods.regression import as_method
from eblime.posterior import Posterior
from eblime.stopping.rule import is_due, look_penalty
from eblime.stopping.rules import WIDTH_PENALTY, Ranking, Sign, TopK, Width, parse_rule
from studies.stopping_inputs import CASES, Population, rounds

RULES = ("top1", "top3", "ranking3", "sign5", "width0.1", "width20%")


def is_wrong(rule: object, post: Posterior, truth: np.ndarray) -> bool:
    """Whether what a rule certifies is not true."""
    mean = post.mean
    order, right = np.argsort(-np.abs(mean)), np.argsort(-np.abs(truth))
    if isinstance(rule, TopK):
        return set(order[: rule.k]) != set(right[: rule.k])
    if isinstance(rule, Ranking):
        return list(order[: rule.k]) != list(right[: rule.k])
    if isinstance(rule, Sign):
        chosen = order[: rule.top]
        return bool((np.sign(mean[chosen]) != np.sign(truth[chosen])).any())
    assert isinstance(rule, Width)
    unit = np.abs(mean).max() if rule.relative else 1.0
    chosen = order[: rule.top]
    return bool((np.abs(mean - truth)[chosen] > rule.width * unit / 2).any())


def sequential(
    population: Population, rules: list, options: argparse.Namespace, seed: list[int]
) -> Iterator[dict]:
    """One run per rule; they share the masks, of which each uses the first."""
    rng = np.random.default_rng(seed)
    method, last, open_rules = as_method(options.fitted), 0, dict.fromkeys(map(repr, rules))
    left = {repr(rule): rule for rule in rules}
    for answers in rounds(population, options.design, method, options.max_masks, rng):
        n = answers.n_masks
        everything = population.all_masks and n == len(population.masks)
        if not (is_due(n, last) or n == options.max_masks or everything):
            continue
        last = n
        post = None if everything else method.fit(rng, answers)
        for name, rule in list(left.items()):
            if everything or rule(post, answers):
                wrong = not everything and is_wrong(rule, post, population.truth)
                open_rules[name] = {"calls": n, "wrong": wrong}
                del left[name]
        if not left:
            break
    for name, found in open_rules.items():
        yield {"rule": name, **(found or {"calls": np.inf, "wrong": False})}


def fixed(
    population: Population, rules: list, options: argparse.Namespace, number: int
) -> dict[str, float]:
    """The smallest N of a grid at which the default certifies the same for half of the draws.

    Each is one look, without the penalty for looking repeatedly unless `--same-rule` is given.
    """
    left, found = {repr(rule): rule for rule in rules}, {}
    for n in np.geomspace(64, options.fixed_masks, 30).astype(int):
        if not left:
            break
        counts = dict.fromkeys(left, 0)
        for seed in range(options.fixed_seeds):
            rng = np.random.default_rng([number, seed, n])
            some = rng.integers(len(population.masks), size=n)
            parts = population.masks[some], population.scores[some], population.weights[some]
            answers = Answers(masks=parts[0], scores=parts[1], weights=parts[2])
            post = options.baseline.fit(rng, answers)
            for name, rule in left.items():
                share = 1.0 if options.same_rule else one_look(rule, n)
                counts[name] += rule.judge(post, answers, share).reached
        for name, count in counts.items():
            if 2 * count >= options.fixed_seeds:
                found[name] = float(n)
                del left[name]
    return {repr(rule): found.get(repr(rule), np.inf) for rule in rules}


def one_look(rule: Any, n_masks: int) -> float:
    """The share of the error rate that makes up for the penalty for looking repeatedly."""
    alpha = 1 - rule.prob
    if isinstance(rule, Width):
        return WIDTH_PENALTY
    share = 1.0
    for _ in range(30):  # converges: the penalty grows with the logarithm of the level
        share = look_penalty(alpha * share, n_masks)
    return share


def study(options: argparse.Namespace) -> pd.DataFrame:
    """One row for each table, photo, seed and rule."""
    found = []
    for table in options.cases:
        inputs = list(islice(CASES[table](table), options.photos))
        with ProcessPoolExecutor(options.jobs) as pool:
            for rows in pool.map(partial(of_photo, options, table), range(len(inputs)), inputs):
                found += rows
                print(f"{table}: photo {rows[0]['photo']} done", flush=True)
    return pd.DataFrame(found)


def of_photo(
    options: argparse.Namespace, table: str, number: int, population: Population
) -> list[dict]:
    """One row for each seed and rule of a photo."""
    rules = [parse_rule(text) for text in options.rules]
    needed = fixed(population, rules, options, number)
    return [
        {"table": table, "photo": number, "fixed": needed[row["rule"]], "seed": seed, **row}
        for seed in range(options.seeds)
        for row in sequential(population, rules, options, [number, seed])
    ]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One line for each table and rule."""
    lines = []
    for (table, rule), part in rows.groupby(["table", "rule"], sort=False):
        reached = np.isfinite(part["calls"])
        medians = part.groupby("photo")[["calls", "fixed"]].median()
        both = medians[np.isfinite(medians).all(axis=1)]
        ratio = both["calls"].median() / both["fixed"].median() if len(both) else np.nan
        lines.append(
            {
                "table": table,
                "rule": rule,
                "reached": reached.mean(),
                "wrong": part["wrong"].sum() / max(1, reached.sum()),
                "fixed N reached": np.isfinite(part["fixed"]).mean(),
                "both": len(both),
                "calls": both["calls"].median(),
                "fixed N": both["fixed"].median(),
                "ratio": ratio,
                "median ratio": (both["calls"] / both["fixed"]).median(),
            }
        )
    return pd.DataFrame(lines)


def method_of(text: str) -> object:
    """A method from its name or from an expression such as `EBLIME(local=False)`."""
    if "(" not in text:
        return as_method(text)
    return eval(
        text, {name: getattr(eblime, name) for name in ("EBLIME", "BayesLIME", "Quadrature")}
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="*", default=["p13", "p40"], choices=list(CASES))
    parser.add_argument("--rules", nargs="*", default=list(RULES), help="such as top3 or width10%%")
    parser.add_argument("--photos", type=int, default=1000, help="photos of each table, at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-masks", type=int, default=4000)
    parser.add_argument("--fixed-masks", type=int, help="most masks of the fixed N; --max-masks")
    parser.add_argument("--fixed-seeds", type=int, default=12, help="draws for each fixed N")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--rows", type=Path, help="write one row for each photo, seed and rule")
    parser.add_argument("--method", default="eblime", help="a name, or such as EBLIME(local=False)")
    parser.add_argument("--design", default="bernoulli", help="name of a design")
    parser.add_argument("--baseline", default="EBLIME()", help="method of the fixed N")
    parser.add_argument("--same-rule", action="store_true", help="no allowance for the fixed N")


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    options.fitted, options.baseline = method_of(options.method), method_of(options.baseline)
    options.fixed_masks = options.fixed_masks or options.max_masks
    rows = study(options)
    if options.rows:
        rows.to_csv(options.rows, index=False)
    found = summary(rows)
    print(f"\n{options.method}, {options.design}, at most {options.max_masks} masks")
    print(found.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
