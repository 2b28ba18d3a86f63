"""The demo, with only the packages that `pip install eblime` installs."""

import subprocess
import sys

import pytest

BARE = """
import sys

BLOCKED = {
    "arviz", "efficientnet_lite_pytorch", "fsspec", "joblib", "onnx", "onnxruntime", "pandas",
    "polars", "pyarrow", "ray", "shap", "skops", "sklearn", "torch",
}

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Wall())
from eblime.cli.app import main
main(["demo", "--out", sys.argv[1]])
"""


@pytest.mark.slow
def test_the_demo_needs_no_optional_package(tmp_path):
    """It locates the defect and writes the explanation, its numbers, the picture and the page."""
    run = subprocess.run(
        [sys.executable, "-c", BARE, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert "of the true defect is under" in run.stdout
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"scan.eblime", "scan.json", "scan.png", "scan.html"} <= made
