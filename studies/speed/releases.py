"""Ten paths through this version beside another one: processor time, in turns.

The other version is a tag or commit of this repository, installed in an environment of its own,
which is kept in the cache folder for the next time. Medians of nine turns.

    python -m studies speed-releases --ref v0.2.0
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from studies.data.files import cache_folder
from studies.tables import table

ROOT = Path(__file__).parents[2]
PATHS = Path(__file__).with_name("paths.py")


def environment(ref: str) -> Path:
    """The Python of an environment with that version, made if it is not there."""
    git = ["git", "-C", str(ROOT)]
    name = [*git, "rev-parse", "--short=12", f"{ref}^{{commit}}"]
    found = subprocess.run(name, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"--ref must be a tag or commit of this repository; got {ref!r}.")
    home = cache_folder() / "releases" / found.stdout.strip()
    python = home / "venv" / "bin" / "python"
    if not python.exists():
        source = home / "source"
        source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run([*git, "archive", ref], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
        subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", f"{source}[batch,sklearn]"]
        subprocess.run(install, check=True)
    return python


def start(python: str | Path, source: Path | None) -> subprocess.Popen[str]:
    """A process that times paths on demand, with one thread."""
    path = "" if source is None else str(source)
    own = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
    return subprocess.Popen(
        [str(python), str(PATHS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **own},
    )


def ask(process: subprocess.Popen[str], name: str) -> Any:
    """Seconds of one turn, or the error in words."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(name) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the benchmark."""
    parser.add_argument("--ref", default="v0.2.0", help="the other version: a tag or a commit")
    parser.add_argument("--rounds", type=int, default=9, help="how often to measure")


def run(options: argparse.Namespace) -> None:
    """Measure and print ratios: below 1 is faster than the other version."""
    both = start(environment(options.ref), None), start(sys.executable, ROOT / "src")
    try:
        names = [json.loads(process.stdout.readline()) for process in both if process.stdout][1]
        rows = []
        for name in names:
            turns = [[ask(process, name) for process in both] for _ in range(options.rounds + 1)]
            errors = [turn for pair in turns for turn in pair if isinstance(turn, str)]
            if errors:
                rows.append([name, errors[0][:60], "", ""])
                continue
            before, now = np.median(np.array(turns[1:]), axis=0)
            shown = [f"{before * 1e3:.2f}", f"{now * 1e3:.2f}", f"{now / before:.2f}"]
            rows.append([name, *shown])
    finally:
        for process in both:
            process.kill()
    print(table(["path", f"{options.ref}, ms", "now, ms", "ratio"], rows))
