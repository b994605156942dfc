"""The paper's figures by name, in its order.

Each has a frozen `Config` for the full study, a `QUICK` one, `run` (to a table), `draw` (to a
picture) and `digest`, which shortens the table for reading. The first line of its docstring is
the title.
"""

from __future__ import annotations

from typing import Any

from . import ellipses, knn_gain, normal_cauchy, smote_scheme, summary
from .credit_figures import aware_svm, credit, credit_smote20

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
