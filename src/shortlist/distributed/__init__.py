"""Exact answers about tables that do not fit into memory, or that lie on many machines."""

from ._cut import CutSearch, Located, SearchColumns, Totals, locate, refuse_nan
from ._engine import (
    FEW,
    Engine,
    OnArrays,
    RowKernel,
    as_columns,
    blocks_of,
    table_schema,
)
from ._evaluate import Drift, LargeEvaluation, measure_model
from ._frames import FrameEngine, FrameFunctions
from ._functions import assign, calibrate, evaluate, flag, sample, score, select
from ._joint import LargeAssignment, find_assignment
from ._kernels import Inside
from ._local import LocalEngine, ranked
from ._models import DecidedRows, ModelRows, plan_rows
from ._operations import TIE_KEY, ListedRows, find_list, find_threshold
from ._sampling import WEIGHT, SampledRows, plan_sample
from ._versions import check_same, versions_here

__all__ = [
    "FEW",
    "TIE_KEY",
    "WEIGHT",
    "CutSearch",
    "DecidedRows",
    "Drift",
    "Engine",
    "FrameEngine",
    "FrameFunctions",
    "Inside",
    "LargeAssignment",
    "LargeEvaluation",
    "ListedRows",
    "LocalEngine",
    "Located",
    "ModelRows",
    "OnArrays",
    "RowKernel",
    "SampledRows",
    "SearchColumns",
    "Totals",
    "as_columns",
    "assign",
    "blocks_of",
    "calibrate",
    "check_same",
    "evaluate",
    "find_assignment",
    "find_list",
    "find_threshold",
    "flag",
    "locate",
    "measure_model",
    "plan_rows",
    "plan_sample",
    "ranked",
    "refuse_nan",
    "sample",
    "score",
    "select",
    "table_schema",
    "versions_here",
]
