"""The models that `fit` can choose from, each behind the same preparation of columns."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .. import aware
from .._core.validation import check_option
from ..capacity import Capacity
from ..learners import FAMILIES, make_learner
from ._schema import TableSchema

__all__ = ["AWARE", "LEARNERS", "TRIED_BY_AUTO", "candidate_models", "prepare_columns"]

_MOST_CATEGORIES = 32
_FEWEST_ROWS_OF_A_CATEGORY = 5

# Learners that know the capacity: the class in `shortlist.aware`, and its settings here. Each keeps
# rows aside for a threshold of its own; ours comes from other rows, so that these can be few.
_AWARE_CLASSES: dict[str, tuple[str, dict[str, Any]]] = {
    "aware-linear": ("CapacityAwareLinearClassifier", {"cv": 0.1}),
    "aware-svm": ("CapacityAwareSVC", {}),
    "aware-forest": ("CapacityAwareForestClassifier", {}),
    "aware-boosting": ("CapacityAwareBoostingClassifier", {}),
    "aware-network": ("CapacityAwareNetworkClassifier", {}),
}
#: Those that this version has.
AWARE = tuple(name for name, (cls, _) in _AWARE_CLASSES.items() if hasattr(aware, cls))
#: What `--learner auto` tries: good on most tables, and quick on long ones.
TRIED_BY_AUTO = ("logistic", "aware-linear", "forest", "boosting")
#: What `--learner` takes.
LEARNERS = ("auto", *FAMILIES, *AWARE)


def candidate_models(
    learner: str, schema: TableSchema, *, capacity: Capacity, random_state: int = 0
) -> dict[str, Pipeline]:
    """Return the pipelines to choose from: several for "auto", or else the one named."""
    check_option("learner", learner, LEARNERS)
    return {
        name: Pipeline(
            [("columns", prepare_columns(schema)), ("learner", _make(name, capacity, random_state))]
        )
        for name in (TRIED_BY_AUTO if learner == "auto" else (learner,))
    }


def _make(name: str, capacity: Capacity, random_state: int) -> Any:
    if name in AWARE:
        cls, settings = _AWARE_CLASSES[name]
        options = {"rare_label": True, "random_state": random_state, **settings}
        return getattr(aware, cls)(capacity, **options)
    learner = make_learner(name, random_state=random_state)
    # Its trees are so small that threads wait for each other, on a busy machine a hundredfold.
    return learner.set_params(n_jobs=1) if name == "boosting" else learner


def prepare_columns(schema: TableSchema) -> ColumnTransformer:
    """Fill gaps with medians, remember where they were, scale; and spread out categories.

    Everything is learned from the rows that the model is fitted on. Categories that are rare or
    were never seen share one column, so that a new one is no reason to stop.
    """
    numbers = [f.name for f in schema.features if f.kind != "categorical"]
    categories = [f.name for f in schema.features if f.kind == "categorical"]
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    spread = OneHotEncoder(
        min_frequency=_FEWEST_ROWS_OF_A_CATEGORY,
        max_categories=_MOST_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(fill, StandardScaler()), numbers),
            ("categories", spread, categories),
        ],
        verbose_feature_names_out=False,
    )
