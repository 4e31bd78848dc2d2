"""The documentation site: `make docs` builds it, offline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pmt

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from public_names import public_names

project = "pmt"
author = "the pmt authors"
version = release = pmt.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_argparse_cli",
    "sphinx_copybutton",
    "colab",
    "mathml",
    "outside_docs",
]
exclude_patterns = ["_ext", "_templates"]
templates_path = ["_templates"]
nitpicky = True
highlight_language = "none"

# Pages. Notebooks are shown with the outputs that they were committed with.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "dollarmath"]
html_math_renderer = "mathml"
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"

# The Python reference, from docstrings; types stand there, so signatures do without.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
autosummary_context = {"public_names": public_names}
# Docstrings also name internal functions and the standard library, which have no page here.
nitpick_ignore_regex = [
    ("py:class", r"collections\.abc\..*"),
    ("py:.*", r"pmt\._core\..*"),
    ("py:.*", r"pmt\.(datasets|firmware|protocol|profiling|sheets)\.[a-z_.]+\.[A-Za-z_]+"),
    ("py:.*", r"pmt\.baselines\.[a-z_.]+\.[A-Za-z_]+"),
    ("py:.*", r"pmt\.train\.(costs|prepare|choose|run)\..*"),
]
# The context of the templates holds a function, which cannot be cached.
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "pmt"
html_static_path = ["_static"]
html_css_files = ["pmt.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_nav_level": 1,
    "show_prev_next": False,
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
}


def setup(app: Any) -> None:
    """Leave out members inherited from scikit-learn: their docstrings refer to its own pages."""
    app.connect("autodoc-skip-member", _skip_foreign)


def _skip_foreign(
    app: Any, kind: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None
