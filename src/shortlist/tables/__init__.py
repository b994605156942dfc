"""Tables in files: fitting models to them, and flagging, selecting, evaluating and planning.

Needs the extra `cli` (pandas and pyarrow). The commands of the command line parse their options,
call one function of this package, and print the result.
"""

from ._candidates import LEARNERS
from ._columns import MISSING_CATEGORY
from ._evaluate import (
    CurvePoint,
    Evaluation,
    evaluate_table,
    measure_list,
    measure_random,
    measure_rule,
    read_labelled,
)
from ._fit import Candidate, FitResult, fit_table
from ._flag import FlagSummary, flag_rows
from ._formats import MISSING_TEXTS, open_source, open_writer, output_format
from ._missed import MissedResult, missed_in_table
from ._model import ModelCard, RuleResult, TableModel
from ._plan import ExpectedFlags, NextReviewer, Plan, plan_capacity
from ._profile import ColumnProfile
from ._reading import Reading
from ._schema import Feature, TableRows, TableSchema
from ._select import Reason, SelectedRow, explain_rows, select_rows

__all__ = [
    "LEARNERS",
    "MISSING_CATEGORY",
    "MISSING_TEXTS",
    "Candidate",
    "ColumnProfile",
    "CurvePoint",
    "Evaluation",
    "ExpectedFlags",
    "Feature",
    "FitResult",
    "FlagSummary",
    "MissedResult",
    "ModelCard",
    "NextReviewer",
    "Plan",
    "Reading",
    "Reason",
    "RuleResult",
    "SelectedRow",
    "TableModel",
    "TableRows",
    "TableSchema",
    "evaluate_table",
    "explain_rows",
    "fit_table",
    "flag_rows",
    "measure_list",
    "measure_random",
    "measure_rule",
    "missed_in_table",
    "open_source",
    "open_writer",
    "output_format",
    "plan_capacity",
    "read_labelled",
    "select_rows",
]
