"""Small games whose answer is known for every mask."""

import numpy as np

import eblime
from eblime.answers import Answers
from eblime.designs.masks import exhaustive
from eblime.kernels import ExponentialKernel
from eblime.stopping.rule import is_due, next_total

P = 10
EVERY = exhaustive(np.random.default_rng(0), 2**P, P)
WEIGHTS = ExponentialKernel()(EVERY)


def game(rng, gap=0.1):
    """Scores of all masks, main effects and interactions of twos; two features are nearly equal."""
    main = rng.normal(size=P)
    main[1] = main[0] * (1 + gap * rng.normal())
    pairs = np.triu(rng.normal(scale=0.6, size=(P, P)), 1)
    return EVERY @ main + np.einsum("ni,ij,nj->n", EVERY, pairs, EVERY)


def truth_of(scores):
    """The weighted linear fit to all masks."""
    root = np.sqrt(WEIGHTS)[:, None]
    columns = np.column_stack([np.ones(len(EVERY)), EVERY])
    return np.linalg.lstsq(root * columns, root[:, 0] * scores, rcond=None)[0][1:]


def runs(scores, rng, method=None):
    """Posterior and answers at every look, masks drawn with replacement."""
    method = method or eblime.EBLIME(local=False)
    rows = rng.integers(len(EVERY), size=4096)
    n = 0
    while n < len(rows):
        last, n = n, next_total(n)
        some = rows[:n]
        answers = Answers(masks=EVERY[some], scores=scores[some], weights=WEIGHTS[some])
        assert is_due(n, last)
        yield method.fit(rng, answers), answers
