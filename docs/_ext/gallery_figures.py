"""Takes the figures of gallery scripts from their variables `ax`, `fig` and `figure`.

Plots of eblime open no window, so pyplot does not know their figures.
"""

from __future__ import annotations

from typing import Any

from sphinx_gallery.scrapers import figure_rst


def saved_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save each new figure of a script, and return the directives that show them."""
    scope, paths = block_vars["example_globals"], []
    drawn = scope.setdefault("_drawn_figures", [])
    for name in ("figure", "fig", "ax"):
        found = scope.get(name)
        figure = getattr(found, "figure", None) if name == "ax" else found
        if figure is None or any(figure is other for other in drawn):
            continue
        drawn.append(figure)
        path = next(block_vars["image_path_iterator"])
        figure.savefig(path, dpi=160)
        paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])
