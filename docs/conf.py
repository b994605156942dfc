"""How the site is built: `make docs`. Every warning is an error, and nothing needs the network."""

from __future__ import annotations

import importlib
import os

import matplotlib as mpl

# The gallery looks up every name in the examples; this one is hidden until it is imported.
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sphinx.util import logging
from sphinx_gallery.sorting import FileNameSortKey

import shortlist

mpl.use("Agg")
# One thread: the examples are small, and other work may run on the same machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "shortlist"
author = "The shortlist developers"
copyright = "the shortlist developers"
version = release = shortlist.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
templates_path = ["_templates"]
default_role = "code"  # `names` in docstrings look like names
toc_object_entries_show_parents = "hide"
nitpicky = True
# Documented elsewhere. Their inventories are not fetched: the build needs no network.
nitpick_ignore_regex = [
    (r"py:.*", r"(sklearn|numpy|scipy|pandas|matplotlib|lightgbm|fractions)\..*")
]
# The gallery is configured with a class, which cannot be cached; that is harmless.
suppress_warnings = ["config.cache"]

# --- pages ----------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# --- the reference: what `__all__` lists, and nothing else ----------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
# Names in `shortlist` itself are described there, and not again in their home module.
autosummary_context = {"described_at_the_top": shortlist.__all__}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

# --- the gallery ----------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",  # every example is executed
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": False,  # all failures are shown at the end; any fails the build
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 10,
    "remove_config_comments": True,
    "show_signature": False,
}

# --- how it looks ---------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"shortlist {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "shortlist"},
    "show_nav_level": 1,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "start": []}

# --- what is public is documented -----------------------------------------------------------------


def _warn_about_missing_names(app, env):
    """Warn about public names that no page of the reference describes."""
    described = set(env.get_domain("py").objects)
    for module in _modules_on_the_page():
        for name in importlib.import_module(module).__all__:
            if not {f"{module}.{name}", f"shortlist.{name}"} & described:
                message = "%s.%s is public, but no page of the reference describes it"
                logging.getLogger(__name__).warning(message, module, name)


def _modules_on_the_page():
    """Return the modules that api.md lists, one to a line."""
    with open(os.path.join(os.path.dirname(__file__), "api.md"), encoding="utf-8") as page:
        return [line.strip() for line in page if line.strip().split(".")[0] == "shortlist"]


def setup(app):
    """Look for missing names once all pages have been read."""
    app.connect("env-check-consistency", _warn_about_missing_names)
