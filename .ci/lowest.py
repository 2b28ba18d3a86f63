"""Print the lowest version that pyproject.toml allows of every dependency, as pip constraints.

`name>=1.2,<2` becomes `name==1.2`; a dependency that is pinned anywhere keeps its pin. Extras for
work on the project itself (style, documentation, benchmarks) are left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:  # pip has its own copy
    from pip._vendor import tomli as tomllib

LEFT_OUT = {"bench", "docs", "lint", "nuts"}


def lowest(project: dict[str, object]) -> list[str]:
    """One `name==version` for each dependency; of several lower bounds the highest counts."""
    extras = project["optional-dependencies"]
    listed = list(project["dependencies"])
    for name, requirements in extras.items():
        listed += [] if name in LEFT_OUT else requirements
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
    """Versions as numbers, so that 10 is more than 9."""
    return [int(part) for part in re.findall(r"\d+", version)]


if __name__ == "__main__":
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf8")
    print("\n".join(lowest(tomllib.loads(text)["project"])))
