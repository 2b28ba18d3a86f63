"""Public names and parameters of the last release still exist.

`python tests/test_public_names.py` stores those of the present code, for each release.
"""

import inspect
import json
from pathlib import Path

import eblime

STORED = Path(__file__).parent / "data" / "public-names.json"


def parameters(found):
    """The names of the parameters of a class or function, without `self`."""
    try:
        return [name for name in inspect.signature(found).parameters if name != "self"]
    except (TypeError, ValueError):  # no signature
        return []


def public_names():
    """Each public name of `eblime`, and each of its public members, with its parameters."""
    found = {}
    for name in sorted(set(eblime.__all__) - {"__version__"}):
        value = getattr(eblime, name)
        found[name] = parameters(value)
        for member in members(value) if isinstance(value, type) else ():
            inside = getattr(value, member)
            found[f"{name}.{member}"] = parameters(inside) if callable(inside) else []
    return found


def members(kind):
    """The public members that a class has from eblime's own code."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("eblime")]
    return sorted({name for base in ours for name in vars(base) if not name.startswith("_")})


def removed(before, now):
    """The names and parameters that are in the first dictionary only."""
    gone = [name for name in before if name not in now]
    for name in before.keys() & now.keys():
        gone += [f"{name}({each}=)" for each in before[name] if each not in now[name]]
    return sorted(gone)


def test_names_and_parameters_of_the_last_release_exist():
    """One that goes away gives a `DeprecationWarning` for at least one minor release first."""
    stored = json.loads(STORED.read_text(encoding="utf8"))

    assert len(stored["names"]) > 100
    assert removed(stored["names"], public_names()) == []


def test_a_removed_name_or_parameter_is_found():
    """The comparison of the test above fails if something is missing."""
    now = public_names()
    fewer = {name: each for name, each in now.items() if name != "fit"}
    fewer["EBLIME"] = [each for each in now["EBLIME"] if each != "local"]

    assert removed(now, fewer) == ["EBLIME(local=)", "fit"]


if __name__ == "__main__":
    content = {"version": eblime.__version__, "names": public_names()}
    STORED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf8")
