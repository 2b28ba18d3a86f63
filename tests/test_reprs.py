"""Explainers and runs as one readable line."""

import numpy as np
import pytest

import eblime


def score(rows):
    """A model."""
    return np.asarray(rows)[:, 0]


class Forest:
    """A model with a method."""

    def predict_proba(self, rows):
        """Two columns."""
        return np.stack([score(rows), 1 - score(rows)], axis=1)


BACKGROUND = np.random.default_rng(0).random((50, 4))


@pytest.mark.parametrize(
    ("explainer", "shown"),
    [
        (eblime.ImageExplainer(score), "ImageExplainer(model=score)"),
        (
            eblime.ImageExplainer(score, n_masks=50, segmentation=np.eye(3, dtype=int), hide=0),
            "ImageExplainer(model=score, segmentation=<ndarray 3 x 3>, hide=0, n_masks=50)",
        ),
        (
            eblime.ImageExplainer(score, labels=[f"class {k}" for k in range(1000)]),
            "ImageExplainer(model=score, labels=<list of 1000>)",
        ),
        (eblime.TextExplainer(score, bag=False), "TextExplainer(model=score, bag=False)"),
        (
            eblime.TabularExplainer(Forest(), BACKGROUND, method="lime"),
            "TabularExplainer(model=Forest, background=<ndarray 50 x 4>, method='lime')",
        ),
    ],
)
def test_explainers_show_what_differs_from_the_defaults(explainer, shown):
    """The model by name, the background by its shape."""
    assert repr(explainer) == shown


def test_runs_show_where_they_are(tmp_path):
    """The folder, which need not be read."""
    pytest.importorskip("pyarrow")
    explainer = eblime.TextExplainer(lambda texts: [len(text) for text in texts], n_masks=20)
    run = eblime.explain_many(explainer, ["a b c"], tmp_path / "run")
    folder = str(tmp_path / "run")

    assert repr(run) == f"Run(folder={folder!r})"
