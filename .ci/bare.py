"""Explain an image, a table row and a text, and run the demo, in an environment with eblime alone.

python -m pip install dist/*.whl
python .ci/bare.py
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
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


def check_environment() -> None:
    """Stop if eblime is not the installed one, or an optional package could hide a failure."""
    where = Path(eblime.__file__).parent
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    print(f"eblime {eblime.__version__} in {where}, Python {sys.version.split()[0]}")
    if "site-packages" not in where.parts:
        raise SystemExit(f"Install the wheel first: eblime is imported from {where}.")
    if present:
        raise SystemExit(f"Use an environment without optional packages; it has {present}.")


def use(explanation: eblime.Explanation, folder: Path) -> None:
    """Print, draw, save and load an explanation, and write its page."""
    print(explanation)
    explanation.plot().figure.savefig(folder / "picture.png")
    explanation.to_html(folder / "page.html")
    explanation.save(folder / "saved.eblime")
    loaded = eblime.load(folder / "saved.eblime")
    np.testing.assert_allclose(loaded.posterior.mean, explanation.posterior.mean, atol=1e-12)


def command(*arguments: str, folder: Path) -> str:
    """Run the installed command `eblime` in a folder; returns what it prints."""
    program = shutil.which("eblime", path=sysconfig.get_path("scripts"))
    if program is None:
        raise SystemExit("The command `eblime` is not installed.")
    ended = subprocess.run([program, *arguments], cwd=folder, check=True, stdout=subprocess.PIPE)
    return ended.stdout.decode("utf8", errors="replace")  # Windows may use another encoding


def main() -> None:
    """Explain each kind of input, and run the command."""
    check_environment()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for explain in (image, row, text):
            use(explain(), folder)
        assert command("--version", folder=folder).split()[-1] == eblime.__version__
        print(command("demo", folder=folder))
        assert (folder / "demo" / "scan.html").stat().st_size > 0


if __name__ == "__main__":
    main()
