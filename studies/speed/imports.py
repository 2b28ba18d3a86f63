"""Processor time of `import eblime` compared with lime, shap and captum, in new processes.

python -m studies speed-imports
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from importlib.util import find_spec

from studies.tables import head, row

STATEMENTS = {
    "eblime": "import eblime",
    "eblime, with fit and EBLIME": "import eblime; eblime.fit; eblime.EBLIME",
    "numpy": "import numpy",
    "lime": "import lime.lime_image, lime.lime_tabular, lime.lime_text",
    "shap": "import shap",
    "captum": "import captum.attr",
}


def seconds(statement: str) -> float:
    """Median processor time of the import in five processes, without the interpreter's start."""
    code = f"import time; s = time.process_time(); {statement}; print(time.process_time() - s)"
    runs = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        runs.append(float(done.stdout.split()[-1]))
    return statistics.median(runs)


def run(options: argparse.Namespace) -> None:
    """Print a line for each library that is installed."""
    installed = {name for name in STATEMENTS if find_spec(name.split(",")[0]) is not None}
    taken = {name: seconds(STATEMENTS[name]) for name in STATEMENTS if name in installed}
    print(head(["import", "processor seconds", "relative to eblime"], right=1))
    for name in STATEMENTS:
        if name in installed:
            print(row([name, f"{taken[name]:.3f}", f"{taken[name] / taken['eblime']:.0f}"]))
        else:
            print(row([name, "not installed", ""]))
