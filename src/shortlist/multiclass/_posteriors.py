"""Labels, and posteriors of items that the model has not seen."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Rows
from .._core.folds import (
    Groups,
    check_classes,
    check_labels,
    check_trained,
    fit_on_folds,
    hold_out,
    holds_out,
    is_prefit,
    route,
    unseen_once,
)
from .._core.scoring import probabilities


def learn_labels(classifier: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any], dict[Any, int]]:
    """Return the labels as an array, the classes, and how often each class occurs."""
    if y is None:
        raise ValueError(
            f"{type(classifier).__name__} requires y to be passed, but the target y is None."
        )
    y = check_labels(y)
    if is_prefit(classifier.estimator, classifier.cv):
        check_trained(classifier.estimator)
        classes = np.asarray(classifier.estimator.classes_)
    else:
        classes = np.unique(y)
    check_classes(classifier, classes)
    codes = _codes(y, classes)
    if np.any(classes[codes] != y):
        unknown = np.setdiff1d(y, classes).tolist()
        raise ValueError(
            f"y holds labels that the trained model does not know: {unknown[:5]}; it knows "
            f"{classes.tolist()}."
        )
    counts = np.bincount(codes, minlength=classes.size)
    return y, classes, dict(zip(classes.tolist(), counts.tolist(), strict=True))


def unseen_posteriors(
    classifier: Any,
    X: Any,
    y: NDArray[Any],
    params: dict[str, Any],
    *,
    seed: int | None,
    groups: Groups,
) -> tuple[Any, Floats, Rows]:
    """Fit the model; return it, posteriors of items it has not seen, and their positions."""
    estimator, classes = classifier.estimator, classifier.classes_
    if is_prefit(estimator, classifier.cv):
        if params:
            raise ValueError(
                f"A trained model is not fitted again; {sorted(params)} would go unused."
            )
        return estimator, probabilities(estimator, X, classes), np.arange(len(y))
    routed = route(classifier, params, groups.given)
    weights = routed.estimator.fit.get("sample_weight")
    if weights is not None:
        check_classes(classifier, np.unique(y[np.asarray(weights) != 0]))
    fitted = fit_on_folds(
        estimator,
        X,
        y,
        _folds(classifier, X, y, routed.splitter.split, seed, groups.numbers),
        fit_params=routed.estimator.fit,
        score=partial(probabilities, classes=classes),
        refit=not holds_out(classifier.cv),
        n_jobs=None,
    )
    (model,), (unseen,) = fitted
    return model, unseen.scores, unseen.rows


def _folds(
    classifier: Any,
    X: Any,
    y: NDArray[Any],
    split_params: dict[str, Any],
    seed: int | None,
    groups: Rows | None,
) -> list[tuple[Any, Any]]:
    if not holds_out(classifier.cv):
        return unseen_once(classifier.cv, X, y, split_params, groups=groups)
    codes = _codes(y, classifier.classes_)
    counts = np.bincount(codes)
    if counts.min() < 2:
        lonely = classifier.classes_[counts.argmin()].item()
        raise ValueError(
            f"The class {lonely!r} has {counts.min()} item; fitting on one part of the data and "
            "calibrating on the other takes two. Use cv='prefit', or add items."
        )
    return [hold_out(codes, classifier.cv, np.random.default_rng(seed), groups)]


def _codes(y: NDArray[Any], classes: NDArray[Any]) -> Rows:
    """Return the number of each label's class."""
    return np.searchsorted(classes, y).clip(0, classes.size - 1)
