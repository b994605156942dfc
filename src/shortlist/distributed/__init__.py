"""Exact answers about tables that do not fit into memory, or that lie on many machines."""

from ._cut import CutSearch, Totals
from ._engine import Engine, RowKernel, as_columns, blocks_of
from ._local import LocalEngine, calibrate, ranked, select
from ._operations import TIE_KEY, ListedRows, find_list, find_threshold

__all__ = [
    "TIE_KEY",
    "CutSearch",
    "Engine",
    "ListedRows",
    "LocalEngine",
    "RowKernel",
    "Totals",
    "as_columns",
    "blocks_of",
    "calibrate",
    "find_list",
    "find_threshold",
    "ranked",
    "select",
]
