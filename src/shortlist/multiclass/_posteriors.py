"""Labels, and posteriors of items that the model has not seen."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Rows
from .._core.folds import (
    Groups,
    TrainedModels,
    check_classes,
    check_labels,
    check_trained,
    fit_on_folds,
    hold_out,
    holds_out,
    is_prefit,
    route,
    take_trained,
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
) -> TrainedModels:
    """Fit the model; return it, and posteriors of items that it has not seen."""
    estimator, score = classifier.estimator, partial(probabilities, classes=classifier.classes_)
    if is_prefit(estimator, classifier.cv):
        return take_trained(estimator, X, params, score)
    routed = route(classifier, y, params, groups.given)
    return fit_on_folds(
        estimator,
        X,
        y,
        _folds(classifier, X, y, routed.splitter.split, seed, groups.numbers),
        fit_params=routed.estimator.fit,
        score=score,
        refit=not holds_out(classifier.cv),
        n_jobs=None,
    )


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
