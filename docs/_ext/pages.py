"""Outputs of plain sentences wrap on a phone, and pages of the repository can be edited."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

GENERATED = ("_gallery/", "reference/api/")  # folders that the build writes


def mark_sentences(app: Sphinx, doctree: nodes.document) -> None:
    """Give outputs without columns the class "sentences"; on a phone their long lines wrap."""
    for block in doctree.findall(nodes.literal_block):
        aligned = re.search(r"\S {2,}\S", block.astext())
        if block.get("language") == "text" and not aligned:
            block["classes"].append("sentences")


def hide_edit_link(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """A page that the build writes has no file to edit."""
    if page.startswith(GENERATED):
        context["page_source_suffix"] = ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both to the build."""
    app.connect("doctree-read", mark_sentences)
    app.connect("html-page-context", hide_edit_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
