"""Time of `import eblime` compared with lime, shap and captum, each in new processes.

python benchmarks/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from importlib.util import find_spec

from md_table import head, row

STATEMENTS = {
    "eblime": "import eblime",
    "eblime, with fit and EBLIME": "import eblime; eblime.fit; eblime.EBLIME",
    "numpy": "import numpy",
    "lime": "import lime.lime_image, lime.lime_tabular, lime.lime_text",
    "shap": "import shap",
    "captum": "import captum.attr",
}


def seconds(statement: str) -> float:
    """Median import time of five processes, without the start of the interpreter."""
    code = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
    runs = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        runs.append(float(done.stdout.split()[-1]))
    return statistics.median(runs)


def main() -> None:
    """Print a line for each library that is installed."""
    ours = seconds(STATEMENTS["eblime"])
    print(head(["import", "seconds", "relative to eblime"], right=1))
    for name, statement in STATEMENTS.items():
        if find_spec(name.split(",")[0]) is None:
            print(row([name, "not installed", ""]))
            continue
        taken = seconds(statement)
        print(row([name, f"{taken:.3f}", f"{taken / ours:.0f}"]))


if __name__ == "__main__":
    main()
