"""Tables in files: reading them, fitting models to them, and asking these for decisions.

Needs the extra `cli` (pandas and pyarrow). Everything the commands do is done here; they only
parse, call and print.
"""

from ._candidates import LEARNERS
from ._card import ModelCard
from ._evaluate import CurvePoint, Evaluation, evaluate_table
from ._fit import Candidate, FitResult, fit_table
from ._flag import FlagSummary, flag_rows
from ._measure import RuleResult
from ._model import TableModel
from ._plan import ExpectedFlags, NextReviewer, Plan, plan_capacity
from ._profile import ColumnProfile
from ._read import open_source
from ._schema import Feature, TableSchema
from ._select import Reason, SelectedRow, select_rows
from ._write import open_writer, output_format

__all__ = [
    "LEARNERS",
    "Candidate",
    "ColumnProfile",
    "CurvePoint",
    "Evaluation",
    "ExpectedFlags",
    "Feature",
    "FitResult",
    "FlagSummary",
    "ModelCard",
    "NextReviewer",
    "Plan",
    "Reason",
    "RuleResult",
    "SelectedRow",
    "TableModel",
    "TableSchema",
    "evaluate_table",
    "fit_table",
    "flag_rows",
    "open_source",
    "open_writer",
    "output_format",
    "plan_capacity",
    "select_rows",
]
