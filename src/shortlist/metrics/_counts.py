"""What a set of flags found: the counts that every metric here is made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.labels import rarest_label
from .._core.validation import check_same_length, check_sample_weight

__all__ = ["Counts", "count_flags"]


class Counts(NamedTuple):
    """Numbers (or weights) of items, rare items, flags, and rare items among the flags."""

    items: float
    rare: float
    flagged: float
    found: float


def count_flags(
    y_true: ArrayLike, y_pred: ArrayLike, *, rare_label: Any, sample_weight: ArrayLike | None = None
) -> Counts:
    """Count the items predicted `rare_label`, and how many of them truly are."""
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    check_same_length(y_true=y_true, y_pred=y_pred, sample_weight=sample_weight)
    if y_true.ndim != 1 or y_pred.ndim != 1:
        raise ValueError(
            f"Labels must be one-dimensional; got shapes {y_true.shape} and {y_pred.shape}."
        )
    if y_true.size == 0:
        raise ValueError("At least one item is needed; got none.")
    if rare_label is None:
        rare_label = _rarest_of(y_true, y_pred)
    flagged = _as_flags(y_true, y_pred, rare_label)
    weight = np.ones(y_true.size) if sample_weight is None else check_sample_weight(sample_weight)
    is_rare = y_true == rare_label
    return Counts(
        items=float(weight.sum()),
        rare=float(weight[is_rare].sum()),
        flagged=float(weight[flagged].sum()),
        found=float(weight[is_rare & flagged].sum()),
    )


def _as_flags(y_true: Any, y_pred: Any, rare_label: Any) -> NDArray[np.bool_]:
    """Read predictions as flags: labels that equal the rare one, or a mask outright."""
    if y_pred.dtype == bool and y_true.dtype != bool:
        return y_pred
    if y_pred.dtype.kind == "f" and np.any(y_pred != np.floor(y_pred)):
        raise ValueError(
            "y_pred must hold predicted labels or flags; got fractions, as scores are. Cut them "
            "first with select or a CapacityClassifier, or draw them with capacity_curve."
        )
    if (y_pred.dtype.kind in "biuf") != (y_true.dtype.kind in "biuf"):
        raise ValueError(
            f"y_pred has dtype {y_pred.dtype} and y_true {y_true.dtype}, so that no prediction can "
            "equal a true label. Pass labels of the same kind, or a boolean mask."
        )
    return y_pred == rare_label


def _rarest_of(y_true: Any, y_pred: Any) -> Any:
    """Take the rarest true label; when all true labels agree, the one that was only predicted."""
    if np.unique(y_true).size > 1:
        return rarest_label(y_true)
    only_predicted = np.setdiff1d(y_pred, y_true)
    return only_predicted[0] if only_predicted.size == 1 else rarest_label(y_true)
