"""Signatures with the types as the sources write them: `FloatArray`, not its definition."""

from __future__ import annotations

import inspect
from typing import Any

from sphinx.application import Sphinx


class Written:
    """Text that a signature prints as it is."""

    def __init__(self, text: object) -> None:
        self.text = getattr(text, "__name__", str(text))

    def __repr__(self) -> str:
        """Return the text."""
        return self.text


def parameter(given: inspect.Parameter) -> inspect.Parameter:
    """The parameter with its written type and a default that can be read."""
    if given.annotation is not inspect.Parameter.empty:
        given = given.replace(annotation=Written(given.annotation))
    if repr(given.default).startswith("<") and given.default is not inspect.Parameter.empty:
        given = given.replace(default=Written("..."))
    return given


def written(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: object,
    shown: str | None,
    back: str | None,
) -> tuple[str, str | None] | None:
    """The signature of an object; protocols are not created, and have none."""
    if getattr(obj, "_is_protocol", False) and what == "class":
        return "", None
    try:
        signature = inspect.signature(obj)
    except (TypeError, ValueError):
        return None
    found = [parameter(each) for each in signature.parameters.values()]
    if what == "method" and found and found[0].name in ("self", "cls"):
        found = found[1:]
    result = signature.return_annotation
    empty = inspect.Signature.empty
    returned = None if what == "class" or result is empty else str(Written(result))
    return str(signature.replace(parameters=found, return_annotation=empty)), returned


def without_type(
    app: Sphinx, what: str, name: str, obj: Any, options: object, lines: list[str]
) -> None:
    """Keep the first line of a property whole: napoleon reads what is before a colon as a type."""
    if what in ("attribute", "property") and lines and ":" in lines[0]:
        lines[0] = f": {lines[0]}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace the signatures that autodoc makes, and keep first lines whole."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", written)
    app.connect("autodoc-process-docstring", without_type, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
