"""Tables in files: fitting models to them, and flagging, selecting, evaluating and planning.

Needs the extra `cli` (pandas and pyarrow). The commands of the command line parse their options,
call one function of this package, and print the result.
"""

from ._calibrate_own import calibrate_own
from ._candidates import LEARNERS
from ._check import TableCheck, check_table
from ._columns import MISSING_CATEGORY
from ._drift import (
    chances_of_flags,
    compare_columns,
    compare_scores,
    count_columns,
    judge_shifts,
    stability_index,
    verdict_on,
)
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
from ._fingerprints import RowFingerprints, SeenRows
from ._fit import FitResult, fit_table
from ._flag import FlagSummary, flag_rows
from ._formats import files_of, open_source
from ._forms import Form, read_number, read_truth
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
from ._profile import ColumnProfile
from ._reading import Reading
from ._reasons import Reason, reasons_for
from ._recalibrate import Recalibration, recalibrate_table
from ._row_values import RowValues
from ._rules import (
    default_name,
    measure_list,
    measure_random,
    measure_rule,
)
from ._schema import Feature, TableRows, TableSchema
from ._select import select_rows
from ._selection import SelectedRow, Selection
from ._source import MISSING_TEXTS
from ._watch import Finding, Watch, date_text
from ._work import WorkColumns
from ._work_spent import SpentWork
from ._writers import open_writer, output_format

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
    "Finding",
    "FitResult",
    "FlagSummary",
    "Form",
    "MissedResult",
    "ModelCard",
    "Money",
    "MoneyPlan",
    "MoneyPoint",
    "MoneyRule",
    "NextReviewer",
    "Plan",
    "Reading",
    "Reason",
    "Recalibration",
    "RowFingerprints",
    "RowValues",
    "RuleResult",
    "SeenRows",
    "SelectedRow",
    "Selection",
    "SpentWork",
    "TableCheck",
    "TableModel",
    "TableRows",
    "TableSchema",
    "Watch",
    "WorkColumns",
    "calibrate_own",
    "chances_of_flags",
    "check_has_both_classes",
    "check_table",
    "compare_columns",
    "compare_scores",
    "count_columns",
    "curve_of",
    "date_text",
    "default_name",
    "evaluate_table",
    "evaluation_of",
    "files_of",
    "fill_in_order",
    "fit_table",
    "flag_rows",
    "interval_of_flags",
    "interval_of_rule",
    "is_trained",
    "judge_shifts",
    "measure_list",
    "measure_money",
    "measure_random",
    "measure_rule",
    "missed_in_table",
    "money_of",
    "open_list",
    "open_source",
    "open_writer",
    "output_format",
    "plan_capacity",
    "points_at",
    "read_labelled",
    "read_number",
    "read_truth",
    "reasons_for",
    "recalibrate_table",
    "select_rows",
    "spread_capacities",
    "stability_index",
    "verdict_on",
    "weighed_columns",
]
