"""Tables in files: fit a model to one, then flag, select, evaluate and recalibrate with it.

Needs the extra `cli` (pandas and pyarrow). Each command of the command line parses its options,
calls one function of this package, and prints the result.
"""

from .._core.files import DatabaseTable
from ._source import ReadOptions
from .drift import check_table
from .fit import fit_table
from .flag import flag_rows
from .measure import evaluate_table
from .model import ModelCard, TableModel
from .model_file import load_model, save_model
from .recalibrate import recalibrate_table
from .schema import WorkColumns
from .select import select_rows

__all__ = [
    "DatabaseTable",
    "ModelCard",
    "ReadOptions",
    "TableModel",
    "WorkColumns",
    "check_table",
    "evaluate_table",
    "fit_table",
    "flag_rows",
    "load_model",
    "recalibrate_table",
    "save_model",
    "select_rows",
]
