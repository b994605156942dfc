"""The only file that touches scikit-learn's private corners, and turns any model into scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._metadata_requests import _MetadataRequester as MetadataRequester
from sklearn.utils._metadata_requests import _raise_for_params as raise_for_params
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils.validation import _check_method_params as slice_fit_params
from sklearn.utils.validation import _num_samples as n_rows

__all__ = [
    "RESPONSE_METHODS",
    "MetadataRequester",
    "class_column",
    "class_index",
    "n_rows",
    "raise_for_params",
    "rare_scores",
    "response",
    "response_method_of",
    "routing_enabled",
    "slice_fit_params",
    "take_rows",
]

RESPONSE_METHODS = ("predict_proba", "decision_function")


def rare_scores(
    model: Any, X: Any, *, rare_label: Any, response_method: str = "auto"
) -> NDArray[np.floating]:
    """Score the rows of `X` by a fitted classifier: higher is more suspicious.

    Parameters
    ----------
    model : classifier
        Fitted, with `classes_` and one of `predict_proba` and `decision_function`; or a
        classifier of this package, whose own `score_samples` is already what is wanted.
    X : any input the model takes
        It is handed on as it is.
    rare_label : label
        One of `model.classes_`.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        "auto" takes the first that the model has.
    """
    if getattr(_innermost(model), "rare_label_", None) == rare_label:
        return model.score_samples(X)
    method = response_method_of(model, response_method)
    return class_column(response(model, X, method), class_index(model, rare_label))


def response_method_of(model: Any, response_method: str) -> str:
    """Return the name of the method that gives the scores, or say what the model lacks."""
    wanted = RESPONSE_METHODS if response_method == "auto" else (response_method,)
    for method in wanted:
        if hasattr(model, method):
            return method
    raise ValueError(
        f"{type(model).__name__} has no {' or '.join(wanted)}, so it cannot rank items. "
        "Use a classifier that gives scores."
    )


def response(
    model: Any, X: Any, method: str, classes: NDArray[Any] | None = None
) -> NDArray[np.floating]:
    """Return the model's output as an array: one column, or one per class.

    With `classes` given, columns are put in that order; a class that the model has not seen
    gets the lowest score there is.
    """
    output = np.asarray(getattr(model, method)(X))
    if classes is None or np.array_equal(model.classes_, classes):
        return output
    lowest = 0.0 if method == "predict_proba" else -np.inf
    aligned = np.full((len(output), len(classes)), lowest)
    columns = np.column_stack([-output, output]) if output.ndim == 1 else output
    aligned[:, np.searchsorted(classes, model.classes_)] = columns
    return aligned


def class_column(output: NDArray[np.floating], index: int) -> NDArray[np.floating]:
    """Return the scores of one class from a model's output."""
    if output.ndim == 2:
        return output[:, index]
    # A one-dimensional decision function speaks for the second class.
    return output if index == 1 else -output


def class_index(model: Any, label: Any) -> int:
    """Return the position of `label` among the classes the model has learned."""
    index = np.flatnonzero(np.asarray(model.classes_) == label)
    if index.size != 1:
        raise ValueError(
            f"The model has not learned the label {label!r}; its classes are "
            f"{np.asarray(model.classes_).tolist()}. A fold without that class is a common cause: "
            "use a stratified split, or more data."
        )
    return int(index[0])


def _innermost(model: Any) -> Any:
    """Look through searches and pipelines at the estimator that answers."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            model = model.steps[-1][1]
        else:
            return model
