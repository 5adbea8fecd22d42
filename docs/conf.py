"""Settings of the site. `make docs` builds it, offline, from the pages of this folder, the examples and the docstrings.

What Sphinx does not do by itself is in `sitebuild/`: pages are plain Markdown, which GitHub shows too.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The sources beside this file are documented, whichever version is installed.
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples are small: on a busy machine threads wait for each other

from sitebuild import gallery  # noqa: E402

from fishergraph import __version__  # noqa: E402

project = "fishergraph"
author = "The fishergraph developers"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sitebuild",
]
root_doc = "index"
exclude_patterns = ["llms.md", "gallery/*.md5", "gallery/*.codeobj.json"]
nitpicky = True
highlight_language = "none"
default_role = "code"
smartquotes = False  # quotation marks in types and defaults are Python's
toc_object_entries_show_parents = "hide"
templates_path = []

# Pages: Markdown as GitHub reads it, with the anchors that GitHub gives to headings.
myst_enable_extensions = ["alert", "dollarmath", "tasklist"]
myst_heading_anchors = 4
myst_dmath_double_inline = False
html_math_renderer = "mathml"

# Reference: types are written in the docstrings.
autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autoclass_content = "class"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = gallery.settings()

html_theme = "pydata_sphinx_theme"
html_title = f"fishergraph {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = True
html_sourcelink_suffix = ""
html_show_sphinx = False
html_theme_options = {
    "github_url": "https://github.com/fishergraph/fishergraph",
    "navbar_align": "left",
    "show_prev_next": True,
    "show_nav_level": 1,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}

# An example may draw on a machine without a display; everything else that warns is a fault of the example.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive", category=UserWarning)
