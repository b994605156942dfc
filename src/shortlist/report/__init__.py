"""A report about a model and its results: a summary as a dict, and a page or a PDF made from it.

Needs the extra `cli` (pandas, pyarrow and jinja2). A PDF needs a browser.
"""

from ._page import render_report
from ._summary import make_report
from .pdf import print_report

__all__ = ["make_report", "print_report", "render_report"]
