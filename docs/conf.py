"""Sphinx settings."""

import sys
from pathlib import Path

from eblime import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "eblime"
copyright = "2026, the eblime developers"
release = version = __version__
extensions = [
    "fields",
    "mathml",
    "myst_parser",
    "pages",
    "plain_types",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
bibtex_bibfiles = ["references.bib"]
html_math_renderer = "mathml"

# The reference: public names under their public paths, and types as they are written.
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("BoolArray", "FloatArray", "IntArray", "RNGLike")}
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_ignore_module_all = False
ASK = ("explain", "explain_targets", "explain_many", "aexplain")
EXPLAINERS = ("Image", "Tabular", "Text", "Prompt", "Signal", "Volume", "")
GROUPS = {  # members by what they are for; those that are not named follow under the last title
    "eblime.Explanation": [
        ("Draw, share and save", ("plot", "to_html", "save")),
        ("Read", ("table", "as_list", "to_frame", "reasons", "estimand", "headline")),
        ("What if", ("predict", "asked", "refit", "importances", "interactions", "more")),
        ("Features", ("features", "details", "mask", "heatmap", "segments")),
        ("What was asked", ("masks", "scores", "weights", "unit", "grounded")),
        ("Other programs", ("to_json", "to_arviz", "to_shap", "to_shapiq")),
    ],
    **{f"eblime.{name}Explainer": [("Explain", ASK), ("Its parts", ())] for name in EXPLAINERS},
    "eblime.PromptExplainer": [("Explain", (*ASK, "cite", "acite")), ("Its parts", ())],
}
autosummary_context = {"groups": GROUPS}
default_role = "py:obj"  # a name in backticks links to its page, if it has one
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_custom_sections = [("Fields", "params_style")]
napoleon_attr_annotations = False  # the text of a parameter states its type

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "_gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "image_scrapers": ("gallery_figures.saved_figures",),
    "capture_repr": (),  # a script shows what it prints
    "download_all_examples": False,
    "notebook_extensions": set(),
    "show_memory": False,
    "write_computation_times": False,  # its page loads scripts from the network
    "min_reported_time": 10,
    "thumbnail_size": (400, 280),
    "remove_config_comments": True,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
}
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True

templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "gallery", "_gallery/*.ipynb"]
suppress_warnings = [
    "config.cache",  # the settings of the gallery cannot be compared
    "ref.python",  # `Explanation` is also a name of the replacement of lime
]
html_theme = "furo"
html_domain_indices = False
html_title = "eblime"
html_static_path = ["_static"]
html_css_files = ["eblime.css"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/links.html",
        "sidebar/scroll-end.html",
    ]
}
REPOSITORY = "https://github.com/eblime/eblime/"
BRANCHES = (  # two lines of work that meet, as an icon
    '<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5">'
    '<circle cx="4" cy="3" r="1.8"/><circle cx="4" cy="13" r="1.8"/>'
    '<circle cx="12" cy="5" r="1.8"/>'
    '<path d="M4 5v6M12 7c0 3-8 1-8 4"/></svg>'
)
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
    "top_of_page_buttons": ["edit"],
    "footer_icons": [{"name": "Repository", "url": REPOSITORY, "html": BRANCHES, "class": ""}],
    "light_css_variables": {"color-brand-primary": "#006c4f", "color-brand-content": "#00694d"},
    "dark_css_variables": {"color-brand-primary": "#4cc9a0", "color-brand-content": "#4cc9a0"},
}
