"""Studies: a frozen config, `run(config)` to a tidy table, `draw(table)` to a figure."""

from types import ModuleType

from . import (
    aware_svm,
    credit,
    credit_smote20,
    ellipses,
    knn_gain,
    normal_cauchy,
    smote_scheme,
    summary,
)
from ._page import write_page
from ._settings import with_settings
from ._table import write_table

__all__ = ["FIGURES", "with_settings", "write_page", "write_table"]

#: The figures of the paper by name, in its order. Each module has a `Config` for the full study, a
#: `QUICK` one, `run`, `draw`, and `digest`, a table that is short enough to read.
FIGURES: dict[str, ModuleType] = {
    "normal-cauchy": normal_cauchy,
    "ellipses": ellipses,
    "credit": credit,
    "smote-scheme": smote_scheme,
    "credit-smote20": credit_smote20,
    "knn-gain": knn_gain,
    "aware-svm": aware_svm,
    "summary": summary,
}
