"""Print pip constraints with the lowest version of each dependency that pyproject.toml allows.

`name>=1.2,<2` becomes `name==1.2`. A dependency that is pinned, there or in constraints.txt, keeps
its pin. Extras for development only (style, documentation, studies) are skipped.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:  # pip includes a copy
    from pip._vendor import tomli as tomllib

SKIPPED = {"docs", "fuzz", "lint", "nuts", "release", "studies"}


def lowest(project: dict[str, object]) -> list[str]:
    """One `name==version` per dependency; the highest of several lower bounds."""
    extras = project["optional-dependencies"]
    listed = list(project["dependencies"])
    for name, requirements in extras.items():
        listed += [] if name in SKIPPED else [r for r in requirements if "eblime[" not in r]
    pins, floors = {}, {}
    for requirement in listed:
        name = re.match(r"[\w.-]+", requirement)[0].lower()
        bound = re.search(r"(==|>=)\s*([\w.]+)", requirement)
        if bound is None:
            raise SystemExit(f"{requirement!r} must have a lower bound.")
        found = pins if bound[1] == "==" else floors
        found[name] = max(found.get(name, "0"), bound[2], key=_order)
    return [f"{name}=={version}" for name, version in sorted({**floors, **pins}.items())]


def _order(version: str) -> list[int]:
    """A version as numbers, so that 10 sorts after 9."""
    return [int(part) for part in re.findall(r"\d+", version)]


if __name__ == "__main__":
    root = Path(__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf8"))["project"]
    lines = (root / "constraints.txt").read_text(encoding="utf8").splitlines()
    project["dependencies"] += [line for line in lines if line and not line.startswith("#")]
    print("\n".join(lowest(project)))
