"""The learners of `fit`, classifiers of the user's own, and the preparation of columns."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._core.arrays import Mask
from ..capacity import Capacity
from ..exceptions import TableError
from ..learners import CapacityEnsembleClassifier, make_learner
from ..learners.columns import frame_view
from ..learners.members import MEMBERS, SIZES, watching_members
from ..learners.recipes import FAMILIES
from ..learners.trained import TrainedModel
from .columns import MISSING_CATEGORY
from .schema import TableSchema

#: Rows that a fit is timed with.
_PIECE = 4_000
# Learners that know the capacity.
_AWARE = {
    "aware-linear": "CapacityAwareLinearClassifier",
    "aware-svm": "CapacityAwareSVC",
    "aware-forest": "CapacityAwareForestClassifier",
    "aware-boosting": "CapacityAwareBoostingClassifier",
    "aware-network": "CapacityAwareNetworkClassifier",
}
#: The values of `learner` in :func:`fit_table`.
LEARNERS = ("auto", *FAMILIES, *_AWARE)


def make_estimator(
    learner: str, schema: TableSchema, *, capacity: Capacity, random_state: int = 0, **options: Any
) -> Any:
    """Return the unfitted model: an ensemble for "auto", otherwise a pipeline with one learner.

    `options` are for the ensemble; they do not concern a single learner.
    """
    if learner == "auto":
        return CapacityEnsembleClassifier(
            capacity, rare_label=True, random_state=random_state, **options
        )
    made = _make(learner, capacity, random_state)
    return Pipeline([("columns", prepare_columns(schema)), ("learner", made)])


def _make(name: str, capacity: Capacity, random_state: int) -> Any:
    if name in _AWARE:
        made = getattr(import_module("shortlist.aware"), _AWARE[name])
        return made(capacity, rare_label=True, random_state=random_state)
    return make_learner(name, random_state=random_state)


def prepare_columns(schema: TableSchema) -> ColumnTransformer:
    """Impute numbers by their medians, mark where, and scale them; one-hot encode categories."""
    numbers = [f.name for f in schema.features if f.kind != "categorical"]
    categories = [f.name for f in schema.features if f.kind == "categorical"]
    return frame_view("scaled", numbers, categories)


def work_of(estimator: Any, n_rows: int) -> dict[str, float]:
    """Return the work to expect of each member of an ensemble; nothing for anything else."""
    work: dict[str, float] = {}
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if isinstance(last, CapacityEnsembleClassifier):
        size = SIZES[last.size]
        for name in last.members:
            member, n_more = MEMBERS[name], size.rounds - 1
            again = member.expected_work(size, n_rows, is_first=False)
            work[name] = member.expected_work(size, n_rows) + n_more * member.is_random * again
    return work


def seconds_of_work(estimator: Any, X: Any, is_rare: Mask, seed: int) -> dict[str, float]:
    """Time the members of a small ensemble on a piece of the rows; return seconds by work."""
    order = np.random.default_rng(seed).permutation(is_rare.size)
    rare, common = order[is_rare[order]], order[~is_rare[order]]
    piece = np.concatenate([rare[: _PIECE // 4], common[: _PIECE - min(rare.size, _PIECE // 4)]])
    begun: list[tuple[str, float, float]] = []
    small = clone(estimator).set_params(size="quick", memory=None)
    with watching_members(lambda name, work: begun.append((name, work, time.perf_counter()))):
        small.fit(X.iloc[piece], is_rare[piece])
    ends = [*(at for *_, at in begun[1:]), time.perf_counter()]
    return {name: (end - at) / work for (name, work, at), end in zip(begun, ends, strict=True)}


def is_trained(estimator: Any) -> bool:
    """Return whether a classifier has been fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return hasattr(estimator, "classes_")


def own_pipeline(estimator: Any, schema: TableSchema) -> Pipeline:
    """Return an untrained classifier with the preparation of columns that it needs.

    A pipeline gets the columns of the table as they are: numbers, days since 1970 for dates, and
    texts. Any other classifier gets scaled numbers and encoded categories.
    """
    columns = "passthrough" if isinstance(estimator, Pipeline) else prepare_columns(schema)
    return Pipeline([("columns", columns), ("learner", estimator)])


def own_name(estimator: Any) -> str:
    """Return the name of a classifier for the model card."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return f"{type(last).__name__} (own)"


def columns_of_trained(
    estimator: Any, schema: TableSchema, name: str
) -> tuple[TableSchema, list[str]]:
    """Return the schema with the columns that a trained model knows, and notes on its use."""
    notes = [
        f"The model is trained, so the rows of {name} calibrate it. None of them may have trained "
        "it."
    ]
    known = getattr(estimator, "feature_names_in_", None)
    have = {feature.name: feature for feature in schema.features}
    if known is None:
        raise TableError(
            f"The model was trained without names of columns, and the columns of {name} cannot be "
            "told apart. Train it on a data frame."
        )
    missing = [str(column) for column in known if column not in have]
    if missing:
        shown = ", ".join(repr(column) for column in missing[:5])
        raise TableError(f"{name} has no column {shown}, which the model was trained on.")
    return replace(schema, features=tuple(have[str(column)] for column in known)), notes


def adapted(estimator: Any, schema: TableSchema) -> TrainedModel:
    """Return a trained classifier that takes the columns of a table."""
    columns = [feature.name for feature in schema.features]
    return TrainedModel(
        estimator, _own_label(estimator, schema), columns=columns, missing=MISSING_CATEGORY
    )


def _own_label(estimator: Any, schema: TableSchema) -> Any:
    """Return the class of the model that is written as the rare label in the table."""
    wanted = schema.rare_label.casefold()
    for label in np.asarray(estimator.classes_).tolist():
        whole = isinstance(label, float) and label.is_integer()
        if str(int(label) if whole else label).strip().casefold() == wanted:
            return label
    shown = ", ".join(repr(label) for label in np.asarray(estimator.classes_).tolist()[:8])
    raise TableError(
        f"The model was trained to tell {shown} apart, and the rare label of {schema.target!r} is "
        f"{schema.rare_label!r}. Name one of the model's labels with rare=..."
    )
