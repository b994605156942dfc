"""The usual remedy for comparison: the same learner, trained on more of the rare cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._core.smote import oversample

__all__ = ["FACTOR", "knows_capacity", "smote_twin"]

#: Rare rows after oversampling, per rare row before: the factor of the paper.
FACTOR = 4


def smote_twin(
    pipeline: Pipeline, X: Any, is_rare: NDArray[np.bool_], *, random_state: int = 0
) -> Pipeline | None:
    """Return a fitted pipeline with the same learner, trained on SMOTE's rows.

    The rare rows are made four times as many (as far as there are fewer of them than of the
    others), by interpolation between prepared rows: scaled numbers and spread-out categories.
    None without the extra `smote`, and for learners that know the capacity: these have no default
    threshold that more rare rows would move.
    """
    if knows_capacity(pipeline):
        return None
    n_rare, n_common = int(is_rare.sum()), int((~is_rare).sum())
    wanted = min(FACTOR * n_rare, n_common)
    columns, learner = pipeline.named_steps["columns"], pipeline.named_steps["learner"]
    prepared, labels = columns.transform(X), is_rare
    if wanted > n_rare > 1:
        try:
            prepared, labels = oversample(
                prepared, is_rare, rare_label=True, wanted=wanted, seed=random_state
            )
        except ImportError:
            return None
    twin = clone(learner).fit(prepared, labels)
    return Pipeline([("columns", columns), ("learner", twin)])


def knows_capacity(pipeline: Pipeline) -> bool:
    """Tell whether the learner inside was trained for a capacity."""
    return hasattr(pipeline.named_steps["learner"], "capacity")
