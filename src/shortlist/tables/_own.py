"""Classifiers of the user's own: their names, whether they are trained, and their columns."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._candidates import prepare_columns
from .schema import TableSchema

__all__ = ["is_trained", "own_name", "own_pipeline"]


def is_trained(estimator: Any) -> bool:
    """Return whether a classifier has been fitted.

    Parameters
    ----------
    estimator : classifier
        Of scikit-learn, or with its methods.

    Returns
    -------
    bool
    """
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
