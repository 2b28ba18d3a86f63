"""The fields of dataclasses and protocols on their pages: types, and the comments beside them.

Where a class says of some parameters only to see its base class, its page has their text.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SECTIONS = ("Examples", "Notes")  # what follows the fields on a page


def fields_of(found: type) -> list[str]:
    """A section of fields in the style of numpydoc; empty if no field has a comment."""
    source = textwrap.dedent(inspect.getsource(found))
    rows = source.splitlines()
    lines, commented = [], False
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if not isinstance(node, ast.AnnAssign) or ast.unparse(node.target).startswith("_"):
            continue
        comment = rows[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
        text = comment.partition("#")[2].strip()
        lines += [f"{ast.unparse(node.target)} : {ast.unparse(node.annotation)}", f"    {text}"]
        commented = commented or bool(text)
    return ["Fields", "------", *lines, ""] if commented else []


def with_shared(found: type, lines: list[str]) -> list[str]:
    """The lines of a docstring with the parameters that it leaves to a base class."""
    bases = {f"    See `{base.__module__}.{base.__name__}`.": base for base in found.__mro__[1:]}
    made: list[str] = []
    for line in lines:
        if line not in bases:
            made.append(line)
            continue
        shared = inspect.getdoc(bases[line]) or ""
        for name in made.pop().split(", "):
            made += re.findall(rf"^{name}\n(?:    .*\n?)+", shared, re.M)[0].splitlines()
    return made


def insert(app: Sphinx, what: str, name: str, obj: Any, options: object, lines: list[str]) -> None:
    """Add the fields of a dataclass or a protocol, unless its docstring lists parameters."""
    if what == "class":
        lines[:] = with_shared(obj, lines)
    known = dataclasses.is_dataclass(obj) or getattr(obj, "_is_protocol", False)
    if what != "class" or not known or "Parameters" in lines:
        return
    after = [number for number, line in enumerate(lines) if line in SECTIONS]
    place = min(after, default=len(lines))
    lines[place:place] = fields_of(obj)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the section before napoleon reads the docstring."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", insert, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
