"""`python -m studies NAME [options]`: run a study, or list all of them.

A study is a module with `run(options)` and, if it has options, `add_options(parser)`. Its docstring
is its help.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

STUDIES = {
    "The paper's studies": ("coverage", "figures", "localisation", "stability"),
    "Accuracy": (
        *(
            "coverage-by-rank",
            "coverage-texts",
            "designs",
            "faithfulness",
            "family",
            "held-out",
            "hiding",
            "indices",
            "inspection",
        ),
        *(
            "league",
            "overall",
            "pool",
            "prompts",
            "prompts-levels",
            "prompts-live",
            "quadrature",
            "row-background",
            "row-coverage",
            "row-shapley",
            "signals",
            "stopping",
        ),
        "unequal-noise",
    ),
    "Samplers as judges": ("samplers", "nuts"),
    "Speed": (
        *("speed-batch", "speed-batch-gpu", "speed-calls", "speed-fit", "speed-image"),
        *("speed-image-gpu", "speed-imports", "speed-print", "speed-releases"),
        *("speed-tabular", "speed-text"),
    ),
    "This repository": ("all", "architecture", "pages", "train-ultrasonic", "unchanged"),
}


def module_name(study: str) -> str:
    """The module of a study: `speed-text` is `studies.speed.text`."""
    group, _, name = study.partition("-")
    path = f"speed.{name}" if group == "speed" else study
    return f"studies.{path.replace('-', '_')}"


def summary(study: str) -> str:
    """The first line of a study's docstring, without importing what the study needs."""
    path = Path(__file__).parents[1].joinpath(*module_name(study).split("."))
    text = path.with_suffix(".py").read_text(encoding="utf8")
    return (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]


def overview() -> str:
    """All studies, one line each."""
    lines = ["usage: python -m studies NAME [options]", ""]
    for title, names in STUDIES.items():
        lines += [f"{title}:", *(f"  {name:18}{summary(name)}" for name in names), ""]
    return "\n".join([*lines, "`python -m studies NAME --help` has the options of a study."])


def parser_of(study: str) -> argparse.ArgumentParser:
    """The options of a study."""
    module = importlib.import_module(module_name(study))
    parser = argparse.ArgumentParser(
        prog=f"python -m studies {study}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if hasattr(module, "add_options"):
        module.add_options(parser)
    return parser


def main(words: Sequence[str] | None = None) -> None:
    """Run a study; an error in its options or data is one line and exit code 2."""
    words = sys.argv[1:] if words is None else words
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return
    study = words[0]
    if study not in (name for names in STUDIES.values() for name in names):
        sys.exit(f"{overview()}\n\nError: there is no study {study!r}.")
    try:
        options = parser_of(study).parse_args(words[1:])
        sys.modules[module_name(study)].run(options)
    except KeyboardInterrupt:
        sys.exit("Stopped. Finished items are saved: the same command resumes.")
    except ImportError as error:
        sys.exit(f"Error: {error}. The studies need: pip install -e '.[studies]'")
    except (ValueError, OSError) as error:
        message = re.sub(r"`(\w+)`", lambda found: f"--{found[1].replace('_', '-')}", str(error))
        print(f"Error: {message}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
