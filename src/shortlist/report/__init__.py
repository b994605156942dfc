"""A report about a model and its results: a summary as a dict, and a page made from it.

Needs the extra `cli` (pandas, pyarrow and jinja2).
"""

from ._page import render_report
from ._summary import make_report

__all__ = ["make_report", "render_report"]
