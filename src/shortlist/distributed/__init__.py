"""Exact answers about tables that do not fit into memory, or that lie on many machines."""

from ._cut import CutSearch, Totals
from ._engine import Engine, RowKernel, as_columns, blocks_of
from ._local import LocalEngine, select
from ._operations import ListedRows, find_list

__all__ = [
    "CutSearch",
    "Engine",
    "ListedRows",
    "LocalEngine",
    "RowKernel",
    "Totals",
    "as_columns",
    "blocks_of",
    "find_list",
    "select",
]
