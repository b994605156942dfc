"""Exact answers about tables that do not fit into memory, or that lie on many machines."""

from ._cut import CutSearch, Totals

__all__ = ["CutSearch", "Totals"]
