"""The paper's figures: a frozen config, `run(config)` to a table, `draw(table)` to a picture.

`shortlist reproduce` is the command; `docs/reproduce.md` describes it.
"""

from typing import Any

from . import ellipses, knn_gain, normal_cauchy, smote_scheme, summary
from .credit_figures import aware_svm, credit, credit_smote20
from .drawing import write_page
from .runner import with_settings
from .tables import write_table

__all__ = ["FIGURES", "with_settings", "write_page", "write_table"]

#: The figures of the paper by name, in its order. Each has a `Config` for the full study, a `QUICK`
#: config, `run`, `draw`, and `digest`, which shortens the table for reading. The first line of
#: the docstring is the title.
FIGURES: dict[str, Any] = {
    "normal-cauchy": normal_cauchy,
    "ellipses": ellipses,
    "credit": credit,
    "smote-scheme": smote_scheme,
    "credit-smote20": credit_smote20,
    "knn-gain": knn_gain,
    "aware-svm": aware_svm,
    "summary": summary,
}
