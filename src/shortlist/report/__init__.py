"""A report about a model and its results: a summary as a dict, and a page or a PDF made from it.

Needs the extra `cli` (pandas, pyarrow and jinja2). A PDF needs a browser.
"""

from ._page import render_report
from ._pdf import find_browser, print_report
from ._summary import make_report

__all__ = ["find_browser", "make_report", "print_report", "render_report"]
