"""A model trained after SMOTE, beside which reports put the model of a table."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._core.smote import oversample
from ..learners import make_learner
from ._candidates import prepare_columns
from ._evaluate import labels_of
from ._model import TableModel
from .schema import TableRows

__all__ = ["smote_twin"]

#: Rare rows after oversampling per rare row before: the factor of the paper.
_SMOTE_FACTOR = 4
#: The single learner that stands for an ensemble.
_INSTEAD = "forest"


def smote_twin(model: TableModel, rows: TableRows, *, random_state: int = 0) -> Pipeline | None:
    """Return a fitted pipeline with the same learner, trained after SMOTE, for comparison.

    A forest stands for an ensemble. SMOTE interpolates between prepared rows (scaled numbers and
    encoded categories) until there are four times as many rare rows, but at most as many as other
    rows. Returns None without the extra `smote`, and for learners that know the capacity: they have
    no default threshold that more rare rows would move.
    """
    if model.knows_capacity:
        return None
    is_rare = labels_of(rows)
    n_rare, n_common = int(is_rare.sum()), int((~is_rare).sum())
    wanted = min(_SMOTE_FACTOR * n_rare, n_common)
    columns = prepare_columns(model.schema).fit(rows.X)
    prepared, labels = columns.transform(rows.X), is_rare
    if wanted > n_rare > 1:
        try:
            prepared, labels = oversample(
                prepared, is_rare, rare_label=True, wanted=wanted, seed=random_state
            )
        except ImportError:
            return None
    learner = _learner_of(model, random_state).fit(prepared, labels)
    return Pipeline([("columns", columns), ("learner", learner)])


def _learner_of(model: TableModel, random_state: int) -> Any:
    estimator = model.classifier.estimators_[0]
    if isinstance(estimator, Pipeline):
        return clone(estimator.named_steps["learner"])
    return make_learner(_INSTEAD, random_state=random_state)
