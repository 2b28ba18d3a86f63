"""Sphinx settings."""

from importlib.metadata import version as installed

project = "eblime"
copyright = "2026, the eblime developers"
release = version = installed("eblime")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinxcontrib.bibtex",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
bibtex_bibfiles = ["references.bib"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_attr_annotations = False  # the text of a parameter states its type
exclude_patterns = ["**/*.in.md", "_build"]
html_theme = "furo"
html_title = "eblime"
