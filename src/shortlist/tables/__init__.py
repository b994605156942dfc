"""Tables in files: fitting models to them, and flagging, selecting, evaluating and planning.

Needs the extra `cli` (pandas and pyarrow). The commands of the command line parse their options,
call one function of this package, and print the result.
"""

from ._calibrate_own import calibrate_own
from ._candidates import LEARNERS
from ._evaluate import (
    CurvePoint,
    Evaluation,
    check_has_both_classes,
    evaluate_table,
    evaluation_of,
    points_at,
    read_labelled,
    spread_capacities,
)
from ._fit import FitResult, fit_table
from ._flag import FlagSummary, flag_rows
from ._intervals import curve_of, interval_of_flags, interval_of_rule
from ._lists import open_list
from ._missed import MissedResult, missed_in_table
from ._model import ModelCard, RuleResult, TableModel
from ._money import (
    Money,
    MoneyPlan,
    MoneyPoint,
    MoneyRule,
    fill_in_order,
    measure_money,
    money_of,
    weighed_columns,
)
from ._out_of_fold import Candidate
from ._own import is_trained
from ._plan import ExpectedFlags, NextReviewer, Plan, plan_capacity
from ._reasons import Reason, reasons_for
from ._recalibrate import Recalibration, recalibrate_table
from ._rules import default_name, measure_list, measure_random, measure_rule
from ._select import select_rows
from ._selection import SelectedRow, Selection
from ._work import WorkColumns
from ._work_spent import SpentWork
from .check import check_table
from .model_file import load_model, save_model
from .options import ReadOptions

__all__ = [
    "LEARNERS",
    "Candidate",
    "CurvePoint",
    "Evaluation",
    "ExpectedFlags",
    "FitResult",
    "FlagSummary",
    "MissedResult",
    "ModelCard",
    "Money",
    "MoneyPlan",
    "MoneyPoint",
    "MoneyRule",
    "NextReviewer",
    "Plan",
    "ReadOptions",
    "Reason",
    "Recalibration",
    "RuleResult",
    "SelectedRow",
    "Selection",
    "SpentWork",
    "TableModel",
    "WorkColumns",
    "calibrate_own",
    "check_has_both_classes",
    "check_table",
    "curve_of",
    "default_name",
    "evaluate_table",
    "evaluation_of",
    "fill_in_order",
    "fit_table",
    "flag_rows",
    "interval_of_flags",
    "interval_of_rule",
    "is_trained",
    "load_model",
    "measure_list",
    "measure_money",
    "measure_random",
    "measure_rule",
    "missed_in_table",
    "money_of",
    "open_list",
    "plan_capacity",
    "points_at",
    "read_labelled",
    "reasons_for",
    "recalibrate_table",
    "save_model",
    "select_rows",
    "spread_capacities",
    "weighed_columns",
]
