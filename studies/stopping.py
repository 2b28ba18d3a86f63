"""Calls until a stop rule is reached, and how often it is wrong.

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

    python -m studies stopping --items 10 --seeds 3    # two minutes
    EBLIME_DATA=... python -m studies stopping --cases german
    python -m studies stopping --rules top3 --design paired --seeds 20
    python -m studies stopping --method "EBLIME(noise='unequal')" --design paired
    python -m studies stopping --method "Quadrature()" --design adaptive --jobs 16
    python -m studies stopping --ties                  # 200 games for each gap, 3 minutes
    python -m studies stopping --ties --method "Quadrature()" --design adaptive
    python -m studies stopping --games --design paired --max-masks 1000  # 200 seeds, 10 minutes
    python -m studies stopping --games --method "Quadrature()" --design adaptive --max-masks 600

With `--ties`: random games of ten players with interactions of twos, whose third and fourth
importance are tied, or differ by half of the tolerance; `TopK(3)` with and without tolerance, at
most 800 masks. "wrong" is the share of games with a statement that leaves out a feature which is
ahead by more than the tolerance.

With `--games`: functions of 14 features that are hard for a rule: jumps in few masks, with and
without pairs of features that a line misses, parities, waves, cliffs, heavy tails, near ties; five
rules. "certified" is the share of games in which the rule is reached, "wrong" the share of wrong
statements among them, "not excepted" that of wrong statements that do not except the jump ("unless
an effect shows in fewer than 1 of 72 masks"), and "wrong runs" the share among all games.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import eblime
from eblime.answers import Answers
from eblime.designs.rounds import in_rounds
from eblime.games import PLAYERS, stored_game
from eblime.kernels import ExponentialKernel
from eblime.methods.regression import as_method
from eblime.posterior import Posterior
from eblime.protocols import Method
from eblime.stopping.rule import Rule, Verdict, is_due, look_penalty, next_total
from eblime.stopping.rules import WIDTH_PENALTY, Ranking, Sign, TopK, Width, parse_rule
from studies.pairs import design_named
from studies.populations import (
    Population,
    all_masks,
    best_fit,
    mask_numbers,
    pairs_together,
    population,
    run_cases,
)
from studies.runner import Row, add_run_options, positive, run_study
from studies.tables import frame_table

CASES = ("p13", "p40", "german")
TOLERANCE = 0.3  # of the games with ties, whose importances have a spread of 1
RULES = ("top1", "top3", "ranking3", "sign5", "width0.1", "width20%")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the study."""
    parser.add_argument("--cases", nargs="+", default=["p13", "p40"], choices=CASES)
    parser.add_argument("--rules", nargs="+", default=list(RULES), help="such as top3 or width10%%")
    parser.add_argument("--seeds", type=positive, default=3)
    parser.add_argument("--max-masks", type=positive, default=4000)
    parser.add_argument("--fixed-masks", type=int, help="most masks of the fixed N; --max-masks")
    parser.add_argument("--fixed-seeds", type=positive, default=12, help="draws for each fixed N")
    parser.add_argument("--method", default="eblime", help="a name, or such as EBLIME(local=False)")
    parser.add_argument("--design", default="bernoulli", help="name of a design")
    parser.add_argument("--baseline", default="EBLIME()", help="method of the fixed N")
    parser.add_argument("--ties", action="store_true", help="games with tied importances instead")
    parser.add_argument("--games", action="store_true", help="functions that are hard for rules")
    parser.add_argument("--same-rule", action="store_true", help="no allowance for the fixed N")
    add_run_options(parser, seed=False)


def run(options: argparse.Namespace) -> None:
    """Run the study and print the table."""
    study = {"out": options.out, "jobs": options.jobs, "progress": options.progress}
    if options.games:
        settings = {name: getattr(options, name) for name in ("method", "design", "max_masks")}
        rows = run_study(games_rows, settings, range(options.items or 200), **study)
        print(frame_table(games_summary(rows)))
        return
    if options.ties:
        settings = {"method": options.method, "design": options.design, "tolerance": TOLERANCE}
        rows = run_study(ties_rows, settings, range(options.items or 200), **study)
        print(
            frame_table(
                rows.groupby(["rule", "gap"], sort=False).agg(
                    games=("reached", "size"),
                    reached=("reached", "mean"),
                    wrong=("wrong", "mean"),
                    masks=("masks", "median"),
                )
            )
        )
        return
    names = ("rules", "seeds", "max_masks", "fixed_seeds", "method", "design", "baseline")
    settings = {name: getattr(options, name) for name in names}
    settings |= {"fixed_masks": options.fixed_masks or options.max_masks}
    settings |= {"same_rule": options.same_rule}
    rows = run_cases(stopping_rows, settings, options.cases, options)
    print(f"\n{options.method}, {options.design}, at most {options.max_masks} masks\n")
    print(frame_table(summary(rows)))


def ties_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One game for each gap between the third and the fourth importance, with both rules."""
    found = []
    for gap in (0.0, 0.5):
        scores, truth = tied_game(np.random.default_rng([number, int(10 * gap)]), gap * TOLERANCE)
        played = stored_game(scores)
        explainer = eblime.Explainer(
            played, PLAYERS, method=method_of(settings["method"]), design=settings["design"]
        )
        for rule in (TopK(3), TopK(3, tolerance=TOLERANCE)):
            e = explainer.explain(played, rng=number, until=rule, max_masks=800)
            size, first = np.abs(truth), e.posterior.order()[:3]
            ahead = np.delete(size, first).max() - size[first].min()
            reached = bool(e.provenance["reached"])
            found.append(
                {
                    "rule": repr(rule),
                    "gap": gap,
                    "reached": reached,
                    "wrong": reached and bool(ahead > rule.tolerance + 1e-9),
                    "masks": len(e.masks),
                }
            )
    return found


def tied_game(rng: np.random.Generator, gap: float, p: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Scores of all masks, and LIME's importances: the third leads the fourth by the gap."""
    masks = all_masks(np.empty(2**p))
    weights = ExponentialKernel()(masks)
    pairs = np.triu(rng.normal(scale=0.4, size=(p, p)), 1)
    scores = masks @ rng.normal(size=p) + np.einsum("ni,ij,nj->n", masks, pairs, masks)
    truth = best_fit(masks, scores, weights)
    third, fourth = np.argsort(-np.abs(truth))[2:4]
    wanted = np.sign(truth[fourth]) * max(0.0, abs(truth[third]) - gap)
    scores = scores + (wanted - truth[fourth]) * masks[:, fourth]
    return scores, best_fit(masks, scores, weights)


P = 14  # features of the hard games
HARD_RULES = ("top1", "top3", "ranking2", "sign3", "width20%")
Function = Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray | float]]


def line(rng: np.random.Generator, masks: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """A linear function."""
    return masks @ rng.normal(scale=scale, size=P)


def pairs(rng: np.random.Generator, masks: np.ndarray, scale: float) -> np.ndarray:
    """Products of any two features, which a line misses."""
    return ((masks @ np.triu(rng.normal(scale=scale, size=(P, P)), 1)) * masks).sum(axis=1)


def jump(k: int, misfit: float) -> Function:
    """A jump in 1 of 2^k masks, as large as moves k importances by about 2."""

    def scores(rng: np.random.Generator, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen, shown = rng.choice(P, k, replace=False), rng.integers(0, 2, k)
        rare = 2.0**k * (masks[:, chosen] == shown).all(axis=1)
        return line(rng, masks) + pairs(rng, masks, misfit) + rare, rare

    return scores


def triples(rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    """Products of 40 sets of three features."""
    sets = [rng.choice(P, 3, replace=False) for _ in range(40)]
    return sum(2 * rng.normal() * masks[:, chosen].prod(axis=1) for chosen in sets)


def parity(rng: np.random.Generator, masks: np.ndarray, k: int) -> np.ndarray:
    """Whether the number of k features that are shown is odd."""
    return masks[:, rng.choice(P, k, replace=False)].sum(axis=1) % 2


def near_tie(rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    """The two largest importances differ by about 1 %."""
    beta = np.abs(rng.normal(scale=0.3, size=P))
    beta[rng.choice(P, 2, replace=False)] = 2.0, 2.02
    return masks @ beta + pairs(rng, masks - 0.5, 0.3)


def step(rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    """Whether most of a positive sum is shown."""
    total = masks @ rng.random(P)
    return (total > 0.8 * total.max()).astype(float)


def saturated(rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    """A steep sigmoid."""
    total = line(rng, masks, 3.0)
    return 1 / (1 + np.exp(total.mean() - total))


def needle(rng: np.random.Generator, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A jump with everything shown."""
    rare = 50 * masks.all(axis=1)
    return line(rng, masks, 0.05) + rare, rare


def cliff(rng: np.random.Generator, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A fall where at most three features are shown, one of which is certain."""
    rare = -30.0 * ((masks.sum(axis=1) <= 3) & (masks[:, rng.integers(P)] == 1))
    return line(rng, masks) + rare, rare


# functions of a generator and all masks: scores, and what in them is rare
HARD: dict[str, Function] = {
    "linear": lambda rng, z: (line(rng, z), 0.0),
    "pairs": lambda rng, z: (line(rng, z) + pairs(rng, z, 0.35), 0.0),
    "triples": lambda rng, z: (line(rng, z, 0.5) + triples(rng, z), 0.0),
    **{f"jump in 1 of {2**k}": jump(k, 0.0) for k in (6, 7, 8)},
    **{f"jump in 1 of {2**k}, misfit": jump(k, 0.3) for k in (6, 7, 8, 9, 10)},
    "xor": lambda rng, z: (line(rng, z, 0.15) + 3 * parity(rng, z, 2), 0.0),
    "parity of 8": lambda rng, z: (line(rng, z, 0.2) + 2 * parity(rng, z, 8), 0.0),
    "parity of all": lambda rng, z: (line(rng, z, 0.2) + 2 * parity(rng, z, P), 0.0),
    "needle": needle,
    "wave of the count": lambda rng, z: (
        line(rng, z, 0.3) + 2 * np.sin(2 * np.pi * z.sum(axis=1) / 3 + 6 * rng.random()),
        0.0,
    ),
    "wave of the number": lambda rng, z: (
        line(rng, z, 0.3) + 2 * np.sin(0.37 * (z @ rng.permutation(2.0 ** np.arange(P)))),
        0.0,
    ),
    "near tie": lambda rng, z: (near_tie(rng, z), 0.0),
    "heavy tail": lambda rng, z: (np.exp(line(rng, z, 0.9)), 0.0),
    "saturated": lambda rng, z: (saturated(rng, z), 0.0),
    "step": lambda rng, z: (step(rng, z), 0.0),
    "majority of 5": lambda rng, z: (
        line(rng, z, 0.01) + (z[:, rng.choice(P, 5, replace=False)].sum(axis=1) >= 3),
        0.0,
    ),
    "cliff": cliff,
}


@dataclass(frozen=True, slots=True, repr=False)
class FirstVerdicts(Rule):
    """Several rules at once: the first verdict of each that is reached, by its text."""

    rules: tuple[str, ...]
    found: dict[str, tuple[Posterior, Answers, str]] = field(default_factory=dict)

    def judge(self, posterior: Posterior, answers: Answers, share: float = 1.0) -> Verdict:
        """Ends when all rules are reached."""
        for name in set(self.rules) - set(self.found):
            verdict = parse_rule(name).judge(posterior, answers)
            if verdict.reached:
                self.found[name] = (posterior, answers, verdict.text)
        return Verdict(reached=len(self.found) == len(self.rules), text="", factor=2.0)


def games_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """Every hard game once, with all rules."""
    rows, masks = [], all_masks(np.empty(2**P))
    for name, function in HARD.items():
        scores, rare = function(np.random.default_rng([number, 1]), masks)
        truth, played = best_fit(masks, scores, ExponentialKernel()(masks)), stored_game(scores)
        rule = FirstVerdicts(HARD_RULES)
        eblime.Explainer(
            played, PLAYERS, method=method_of(settings["method"]), design=settings["design"]
        ).explain(played, rng=number, until=rule, max_masks=settings["max_masks"])
        for text in HARD_RULES:
            row = {"game": name, "rule": text, "certified": text in rule.found}
            row |= {"wrong": False, "rest": False, "masks": np.nan}
            if text in rule.found:
                posterior, answers, words = rule.found[text]
                wrong = is_wrong(parse_rule(text), posterior, truth)
                rest = wrong and not is_excepted(words, rare, answers.scores)
                row |= {"wrong": wrong, "rest": rest, "masks": answers.n_masks}
            rows.append(row)
    return rows


def is_excepted(words: str, rare: np.ndarray | float, scores: np.ndarray) -> bool:
    """Whether a statement names the jump of a game as what could make it wrong."""
    found = re.search(r"unless an effect shows in fewer than 1 of (\d+) masks(.*)", words)
    if found is None or not 0 < np.mean(rare != 0) < 1 / int(found[1]):
        return False
    return not found[2] or bool(np.ptp(rare) > np.ptp(scores))


def games_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One line for each game and rule."""
    lines = []
    for (game, rule), part in rows.groupby(["game", "rule"], sort=False):
        met = part[part["certified"]]
        lines.append(
            {
                "game": game,
                "rule": rule,
                "games": len(part),
                "certified": part["certified"].mean(),
                "wrong": met["wrong"].mean(),
                "not excepted": met["rest"].mean(),
                "wrong runs": part["wrong"].mean(),
                "masks": met["masks"].median(),
            }
        )
    return pd.DataFrame(lines)


@dataclass(frozen=True)
class Whole:
    """All known answers of an input, and the truth in them."""

    known: Population
    truth: np.ndarray
    all_masks: bool
    paired: bool  # whether each mask is followed by its complement


def stopping_rows(settings: Mapping[str, Any], number: int) -> list[Row]:
    """One row for each seed and rule of an input."""
    case = settings["case"]
    known = population(case, number)
    known = pairs_together(case, known) if case == "p40" else known
    whole = Whole(known, best_fit(*known), case == "p13", case == "p40")
    rules = [parse_rule(text) for text in settings["rules"]]
    needed = fixed_totals(whole, rules, settings, number)
    return [
        {"table": case, "photo": number, "fixed": needed[row["rule"]], "seed": seed, **row}
        for seed in range(settings["seeds"])
        for row in sequential(whole, rules, settings, [number, seed])
    ]


def method_of(text: str) -> Any:
    """A method from its name or from an expression such as `EBLIME(local=False)`."""
    if "(" not in text:
        return as_method(text)
    return eval(
        text, {name: getattr(eblime, name) for name in ("EBLIME", "BayesLIME", "Quadrature")}
    )


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
    whole: Whole, rules: list, settings: Mapping[str, Any], seed: list[int]
) -> Iterator[dict]:
    """One run per rule; they share the masks, of which each uses the first."""
    rng = np.random.default_rng(seed)
    method, last, open_rules = method_of(settings["method"]), 0, dict.fromkeys(map(repr, rules))
    left = {repr(rule): rule for rule in rules}
    for answers in rounds(whole, settings["design"], method, settings["max_masks"], rng):
        n = answers.n_masks
        everything = whole.all_masks and n == len(whole.known.masks)
        if not (is_due(n, last) or n == settings["max_masks"] or everything):
            continue
        last = n
        post = None if everything else method.fit(rng, answers)
        for name, rule in list(left.items()):
            if everything or rule(post, answers):
                wrong = not everything and is_wrong(rule, post, whole.truth)
                open_rules[name] = {"calls": n, "wrong": wrong}
                del left[name]
        if not left:
            break
    for name, found in open_rules.items():
        yield {"rule": name, **(found or {"calls": np.inf, "wrong": False})}


def fixed_totals(
    whole: Whole, rules: list, settings: Mapping[str, Any], number: int
) -> dict[str, float]:
    """The smallest N of a grid at which the default certifies the same for half of the draws.

    Each is one look, without the penalty for looking repeatedly unless `--same-rule` is given.
    """
    left, found = {repr(rule): rule for rule in rules}, {}
    baseline = method_of(settings["baseline"])
    for n in np.geomspace(64, settings["fixed_masks"], 30).astype(int):
        if not left:
            break
        counts = dict.fromkeys(left, 0)
        for seed in range(settings["fixed_seeds"]):
            rng = np.random.default_rng([number, seed, n])
            some = rng.integers(len(whole.known.masks), size=n)
            answers = Answers(**whole.known.take(some)._asdict())
            post = baseline.fit(rng, answers)
            for name, rule in left.items():
                share = 1.0 if settings["same_rule"] else one_look(rule, n)
                counts[name] += rule.judge(post, answers, share).reached
        for name, count in counts.items():
            if 2 * count >= settings["fixed_seeds"]:
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


def rounds(
    whole: Whole, design: str, method: Method, max_masks: int, rng: np.random.Generator
) -> Iterator[Answers]:
    """The answers after each round, as the loop has them.

    Where not all masks are known, the design is to take pairs of the population without
    replacement ("paired"), or single masks with replacement (any other).
    """
    p = whole.known.masks.shape[1]
    known = Answers.none([str(j) for j in range(p)])
    if whole.all_masks:
        settings = {"exact": True, "method": method}
        asked: Any = in_rounds(rng, design_named(design), max_masks, p, **settings)
    else:
        asked = FromPopulation(whole, design == "paired" and whole.paired, max_masks)
    while (wanted := asked.next(rng, known)) is not None:
        room = max_masks - known.n_masks
        masks = getattr(wanted, "masks", wanted)[:room]
        if not len(masks):
            return
        if whole.all_masks:
            scores, weights = whole.known.scores[mask_numbers(masks)], ExponentialKernel()(masks)
        else:
            scores, weights = asked.answers(len(masks))
        more = {}
        if hasattr(wanted, "sampling_weights"):
            more = {"sampling": wanted.sampling_weights[:room]}
            weights = weights * more["sampling"]
        known = known.append(masks, scores, weights, **more)
        yield known


class FromPopulation:
    """A design that takes masks of a population whose other masks have no answer."""

    def __init__(self, whole: Whole, pairs: bool, max_masks: int) -> None:
        self.known, self.pairs, self.n_masks = whole.known, pairs, max_masks
        self.rows: np.ndarray | None = None

    def next(self, rng: np.random.Generator, answers: Answers) -> np.ndarray | None:
        """Masks of the next round."""
        count = len(self.known.masks)
        if self.rows is None:
            half = rng.permutation(count // 2)
            pairs = np.stack([2 * half, 2 * half + 1], axis=1).ravel()
            self.rows = pairs if self.pairs else rng.integers(count, size=self.n_masks)
        p, known = answers.n_features, answers.n_masks
        total = min(self.n_masks, count, next_total(known, 3 * p))
        if known >= total:
            return None
        self.asked = self.rows[known:total]
        return self.known.masks[self.asked]

    def answers(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The scores and weights of the first masks of this round."""
        rows = self.asked[:count]
        return self.known.scores[rows], self.known.weights[rows]


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
