"""The learners of `fit`, and the preparation of columns that single learners share."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .. import aware
from .._core.validation import check_option
from ..capacity import Capacity
from ..learners import FAMILIES, CapacityEnsembleClassifier, make_learner
from .schema import TableSchema

__all__ = ["LEARNERS", "knows_capacity", "make_estimator", "prepare_columns"]

_MOST_CATEGORIES = 32
_FEWEST_ROWS_OF_A_CATEGORY = 5

# Learners that know the capacity, and their settings here. Each of them holds out rows for its own
# threshold. They can be few, because the threshold of the model comes from other rows.
_AWARE: dict[str, tuple[Any, dict[str, Any]]] = {
    "aware-linear": (aware.CapacityAwareLinearClassifier, {"cv": 0.1}),
    "aware-svm": (aware.CapacityAwareSVC, {}),
    "aware-forest": (aware.CapacityAwareForestClassifier, {}),
    "aware-boosting": (aware.CapacityAwareBoostingClassifier, {}),
    "aware-network": (aware.CapacityAwareNetworkClassifier, {}),
}
#: The values of `learner` in :func:`fit_table` and of the option `--learner`.
LEARNERS = ("auto", *FAMILIES, *_AWARE)


def make_estimator(
    learner: str, schema: TableSchema, *, capacity: Capacity, random_state: int = 0, **options: Any
) -> Any:
    """Return the unfitted model: an ensemble for "auto", otherwise a pipeline with one learner.

    `options` are for the ensemble; they do not concern a single learner.
    """
    check_option("learner", learner, LEARNERS)
    if learner == "auto":
        return CapacityEnsembleClassifier(
            capacity, rare_label=True, random_state=random_state, **options
        )
    return Pipeline(
        [("columns", prepare_columns(schema)), ("learner", _make(learner, capacity, random_state))]
    )


def _make(name: str, capacity: Capacity, random_state: int) -> Any:
    if name in _AWARE:
        cls, settings = _AWARE[name]
        return cls(capacity, rare_label=True, random_state=random_state, **settings)
    learner = make_learner(name, random_state=random_state)
    # Its trees are so small that threads wait for each other, on a busy machine 100 times as long.
    return learner.set_params(n_jobs=1) if name == "boosting" else learner


def prepare_columns(schema: TableSchema) -> ColumnTransformer:
    """Impute numbers by their medians, mark where, and scale them; one-hot encode categories.

    Everything is learned from the training rows. Rare categories share one column, and unknown
    ones use it as well; an unknown category therefore raises no error.
    """
    numbers = [f.name for f in schema.features if f.kind != "categorical"]
    categories = [f.name for f in schema.features if f.kind == "categorical"]
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encode = OneHotEncoder(
        min_frequency=_FEWEST_ROWS_OF_A_CATEGORY,
        max_categories=_MOST_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(fill, StandardScaler()), numbers),
            ("categories", encode, categories),
        ],
        verbose_feature_names_out=False,
    )


def knows_capacity(estimator: Any) -> bool:
    """Return whether the learner in a model is trained for a capacity."""
    return isinstance(estimator, Pipeline) and hasattr(estimator.named_steps["learner"], "capacity")
