"""The only file that imports scikit-learn's private names, and turns any model into scores.

Signs are flipped here and nowhere else: whatever a model says, and whichever label is the rare one,
the scores that leave this file rise with suspicion.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils._metadata_requests import _MetadataRequester, _routing_enabled
from sklearn.utils.validation import _check_method_params, _num_samples

Floats = NDArray[np.floating]

MetadataRequester, routing_enabled = _MetadataRequester, _routing_enabled
slice_fit_params, n_rows = _check_method_params, _num_samples

RESPONSE_METHODS = ("predict_proba", "decision_function")


class Scores(NamedTuple):
    """Scores of the rare label, and with more than two classes a column for every class."""

    rare: Floats
    by_class: Floats | None = None


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array, a data frame, a sparse matrix or a list."""
    # Of a plain array, `take` copies whole rows at a time, two to three times as quick as indexing.
    return X.take(rows, axis=0) if type(X) is np.ndarray else _safe_indexing(X, rows)


def rare_scores(model: Any, X: Any, *, rare_label: Any, response_method: str = "auto") -> Floats:
    """Score the rows of `X` by a fitted classifier: higher is more suspicious.

    Parameters
    ----------
    model : classifier
        Fitted, with `classes_` and one of `predict_proba` and `decision_function`; or a
        classifier of this package, alone or at the end of a pipeline or search.
    X : any input the model takes
        It is handed on as it is.
    rare_label : label
        One of `model.classes_`.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        "auto" takes the model's own `score_samples` for its own rare label, or else the first
        method that the model has.
    """
    if response_method == "auto" and rare_label_of(model) == rare_label:
        return model.score_samples(X)
    method = response_method_of(response_method, model)
    return score_classes(model, X, method=method, rare_label=rare_label).rare


def score_classes(
    model: Any, X: Any, *, method: str, rare_label: Any, classes: NDArray[Any] | None = None
) -> Scores:
    """Score the rows of `X` for the rare label, and for all of `classes` if they are more than two.

    A class that the model has not seen gets the lowest score there is.
    """
    known = np.asarray(model.classes_)
    classes = known if classes is None else classes
    rare = _position(rare_label, known)
    if method == "decision_function" and known.size == 2 and rare_label_of(model) is not None:
        # Ours is positive for the rare label, and ranks nothing where nothing can be flagged.
        scores = model.score_samples(X)
        output = scores if rare_label_of(model) == known[1] else -scores
    else:
        output = np.asarray(getattr(model, method)(X))
    _check_columns(model, output, known, method)
    if output.ndim == 1:
        # A one-dimensional decision function is positive for the second class.
        output = output if classes.size == 2 and rare == 1 else np.column_stack([-output, output])
    if output.ndim == 1:
        return Scores(output)
    # A column of its own is read quicker later on than every second number of a table.
    scores = np.ascontiguousarray(output[:, rare])
    if classes.size == 2:
        return Scores(scores)
    return Scores(scores, _aligned(output, known, classes, method))


def probabilities(model: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Return the model's probabilities with a column for each of `classes`."""
    output = np.asarray(model.predict_proba(X))
    return _aligned(output, np.asarray(model.classes_), classes, "predict_proba")


def mean_scores(several: list[Scores]) -> Scores:
    """Average the scores of several models."""
    by_class = [scores.by_class for scores in several if scores.by_class is not None]
    return Scores(
        mean_of([scores.rare for scores in several]),
        mean_of(by_class) if by_class else None,
    )


def mean_of(several: list[Floats]) -> Floats:
    """Average arrays, added up in their order; one alone stays as it is.

    `numpy.mean` adds up in another order if the arrays have one number each; then the last digit of
    a row's score would depend on whether other rows come along.
    """
    return several[0] if len(several) == 1 else functools.reduce(np.add, several) / len(several)


def response_method_of(response_method: str, *models: Any) -> str:
    """Return the name of the method that gives the scores, or say what the models lack."""
    wanted = RESPONSE_METHODS if response_method == "auto" else (response_method,)
    for method in wanted:
        if all(hasattr(model, method) for model in models):
            return method
    lacking = [model for model in models if not any(hasattr(model, each) for each in wanted)]
    if not lacking:
        raise ValueError(
            f"{' and '.join(type(model).__name__ for model in models)} must score alike, both with "
            f"{' or both with '.join(wanted)}. Use classifiers that share one of them."
        )
    raise ValueError(
        f"{type(lacking[0]).__name__} has no {' or '.join(wanted)}, so it cannot rank items. "
        "Use a classifier that gives scores."
    )


def rare_label_of(model: Any) -> Any:
    """Return the rare label of a classifier of this package, through wrappers; or None."""
    return getattr(_innermost(model), "rare_label_", None)


def _innermost(model: Any) -> Any:
    """Look through searches and pipelines at the estimator that answers."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            model = model.steps[-1][1]
        else:
            return model


def with_out_of_bag(model: Any) -> Any:
    """Ask a forest or bagging, alone or at the end of a pipeline, to score items out of bag."""
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    if f"{prefix}oob_score" not in model.get_params():
        raise ValueError(
            f"cv='oob' needs a model that is fitted on bootstrap samples and has the parameter "
            f"oob_score, such as RandomForestClassifier; got {type(_innermost(model)).__name__}. "
            "Use cv=5 instead."
        )
    return model.set_params(**{f"{prefix}oob_score": True})


def informed(model: Any, **known: Any) -> Any:
    """Return a model whose parameters of these names, at any depth, are known ones if unset."""
    names = {path: path.rpartition("__")[2] for path in model.get_params()}
    unset = {
        path: known[names[path]]
        for path, value in model.get_params().items()
        if value is None and names[path] in known
    }
    return clone(model).set_params(**unset) if unset else model


def out_of_bag_scores(model: Any, *, rare_label: Any) -> Floats:
    """Return the score of each training item by the trees that have not seen it, else NaN."""
    model = _innermost(model)
    if hasattr(model, "oob_scores_"):  # a model of this package, for its own rare label
        return model.oob_scores_
    # An item that every tree has seen gets zeros or NaN for all classes.
    output = np.asarray(model.oob_decision_function_, dtype=np.float64)
    seen_by_all = ~(np.nan_to_num(output).sum(axis=1) > 0)
    scores = output[:, _position(rare_label, np.asarray(model.classes_))].copy()
    scores[seen_by_all] = np.nan
    return scores


def _position(label: Any, classes: NDArray[Any]) -> int:
    known = classes.tolist()  # a short list is searched faster than an array
    if known.count(label) != 1:
        raise ValueError(
            f"The model has not learned the label {label!r}; its classes are {known}. "
            "A fold without that class is a common cause: use a stratified split, or more data."
        )
    return known.index(label)


def _check_columns(model: Any, output: Floats, known: NDArray[Any], method: str) -> None:
    """Refuse columns for pairs of classes, of which three classes have as many as columns."""
    if output.ndim == 1:
        return
    is_pairwise = (
        method == "decision_function"
        and known.size > 2
        and getattr(_innermost(model), "decision_function_shape", "ovr") == "ovo"
    )
    if output.shape[1] != known.size or is_pairwise:
        raise ValueError(
            f"{type(model).__name__}.{method} does not give one column for each of the "
            f"{known.size} classes. With an SVC, use decision_function_shape='ovr'."
        )


def _aligned(output: Floats, known: NDArray[Any], classes: NDArray[Any], method: str) -> Floats:
    if np.array_equal(known, classes):
        return output
    lowest = 0.0 if method == "predict_proba" else -np.inf
    aligned = np.full((len(output), classes.size), lowest)
    aligned[:, np.searchsorted(classes, known)] = output
    return aligned
