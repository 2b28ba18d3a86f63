"""Problems to fit, made from a generator."""

import numpy as np


def problem(rng, n, p):
    """Random masks with the original first, scores that are not linear in them, random weights."""
    masks = rng.integers(0, 2, size=(n, p)).astype(float)
    masks[0] = 1
    drive = masks @ rng.normal(size=p) + masks[:, 0] * masks[:, -1]
    scores = 1 / (1 + np.exp(-drive)) + 0.05 * rng.normal(size=n)
    return masks, scores, rng.uniform(0.2, 1.0, size=n)
