"""Inputs and models that the tests of the lime replacement share."""

import numpy as np

TEXT = "It was not bad, it was good; the end of the story: a good, good dog. Not bad."


def rows(n=300, seed=0):
    """Numbers of four columns and one column of three categories, the last."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal([0, 5, -2, 100], [1, 2, 0.5, 30], size=(n, 4))
    return np.column_stack([numbers, rng.integers(0, 3, n)])


def classify(x):
    """Probabilities of three classes of rows."""
    x = np.asarray(x)
    raw = np.stack([x[:, 0] + x[:, 4], x[:, 1] / 4, np.sin(x[:, 2]) + x[:, 3] / 80], axis=1)
    grown = np.exp(raw - raw.max(axis=1, keepdims=True))
    return grown / grown.sum(axis=1, keepdims=True)


def predict(x):
    """A regression of rows."""
    return 3 * x[:, 0] - x[:, 1] * (x[:, 4] == 2) + x[:, 3] / 50


def judge(texts):
    """Probabilities of two classes of texts."""
    good = np.array(
        [
            0.1 + 0.3 * ("good" in t) + 0.2 * ("not" in t and "bad" in t) + 0.001 * len(t)
            for t in texts
        ]
    )
    return np.stack([1 - good, good], axis=1)


def photo(dtype=np.uint8):
    """A colour image of 24 x 32 pixels with smooth regions."""
    y, x = np.mgrid[:24, :32]
    channels = [np.sin(x / 5) + 1, np.cos(y / 4) + 1, (x + y) / 28]
    pixels = np.stack(channels, axis=-1) / 2
    return (255 * pixels).astype(np.uint8) if dtype == np.uint8 else pixels.astype(dtype)


def look(batch):
    """Probabilities of four classes of images."""
    batch = np.asarray(batch, dtype=float)
    size = 255.0 if batch.max() > 1.5 else 1.0
    raw = np.stack(
        [
            batch[:, 4:14, 6:18, 0].mean(axis=(1, 2)),
            batch[:, 10:, 10:, 1].mean(axis=(1, 2)),
            batch[:, :, :8, 2].mean(axis=(1, 2)),
            batch[:, ::5, ::5].mean(axis=(1, 2, 3)),
        ],
        axis=1,
    )
    grown = np.exp(3 * raw / size)
    return grown / grown.sum(axis=1, keepdims=True)


def squares(image):
    """Twelve superpixels of 8 x 8 pixels, numbered from 0."""
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    return (y // 8) * 4 + x // 8
