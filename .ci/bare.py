"""Explain an image, a table row and a text, and run the demo, in an environment with eblime alone.

python .ci/bare.py
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import eblime

EXTRAS = ("sklearn", "pandas", "pyarrow", "torch", "onnxruntime", "ray", "shap", "arviz", "pooch")


def image() -> eblime.Explanation:
    """A photo that scikit-image includes, and a model that measures how blue it is."""
    from skimage import data

    explainer = eblime.ImageExplainer(lambda batch: batch[..., 2].mean(axis=(1, 2)), n_masks=100)
    return explainer.explain(data.astronaut()[::4, ::4], rng=0)


def row() -> eblime.Explanation:
    """A row of numbers."""
    table = np.random.default_rng(0).normal(size=(200, 4))
    return eblime.TabularExplainer(lambda rows: rows[:, 0] - rows[:, 2], table).explain(table[0])


def text() -> eblime.Explanation:
    """A sentence, and a model that looks for a word."""
    explainer = eblime.TextExplainer(lambda texts: [float("witty" in text) for text in texts])
    return explainer.explain("A witty film, never dull.")


def main() -> None:
    """Explain, draw, save, load and write a page for each kind of input."""
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    print(f"eblime {eblime.__version__}, Python {sys.version.split()[0]}, extras: {present}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for explain in (image, row, text):
            explanation = explain()
            print(explanation)
            explanation.plot().figure.savefig(folder / "picture.png")
            explanation.to_html(folder / "page.html")
            explanation.save(folder / "saved.eblime")
            loaded = eblime.load(folder / "saved.eblime")
            means = loaded.posterior.mean, explanation.posterior.mean
            np.testing.assert_allclose(*means, atol=1e-12)
        command = [sys.executable, "-m", "eblime", "demo", "--out", str(folder / "demo")]
        subprocess.run(command, check=True)
        assert (folder / "demo" / "scan.html").stat().st_size > 0


if __name__ == "__main__":
    main()
