"""The learners that `fit` can choose from, with the preparation of columns that all share."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .. import aware
from .._core.arrays import Mask
from .._core.smote import oversample
from .._core.validation import check_option
from ..capacity import Capacity
from ..learners import FAMILIES, make_learner
from ._schema import TableSchema

__all__ = ["LEARNERS", "candidate_models", "knows_capacity", "smote_twin"]

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
#: The learners that "auto" compares: good on most tables, and fast on long ones.
TRIED_BY_AUTO = ("logistic", "aware-linear", "forest", "boosting")
#: The values of `learner` in :func:`fit_table` and of the option `--learner`.
LEARNERS = ("auto", *FAMILIES, *_AWARE)
#: Rare rows after oversampling per rare row before: the factor of the paper.
_SMOTE_FACTOR = 4


def candidate_models(
    learner: str, schema: TableSchema, *, capacity: Capacity, random_state: int = 0
) -> dict[str, Pipeline]:
    """Return the pipelines to choose from: several for "auto", otherwise one."""
    check_option("learner", learner, LEARNERS)
    return {
        name: Pipeline(
            [("columns", prepare_columns(schema)), ("learner", _make(name, capacity, random_state))]
        )
        for name in (TRIED_BY_AUTO if learner == "auto" else (learner,))
    }


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


def smote_twin(
    pipeline: Pipeline, X: Any, is_rare: Mask, *, random_state: int = 0
) -> Pipeline | None:
    """Return a fitted pipeline with the same learner, trained after SMOTE, for comparison.

    SMOTE interpolates between prepared rows (scaled numbers and encoded categories) until there are
    four times as many rare rows, but at most as many as other rows. Returns None without the extra
    `smote`, and for learners that know the capacity: they have no default threshold that more rare
    rows would move.
    """
    if knows_capacity(pipeline):
        return None
    n_rare, n_common = int(is_rare.sum()), int((~is_rare).sum())
    wanted = min(_SMOTE_FACTOR * n_rare, n_common)
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
