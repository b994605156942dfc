"""Labels and signed distances, from decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask
from ..thresholds import Decisions, Rule

__all__ = ["by_mean", "labels_of", "signed_margins"]

# The smallest number above 0: a flagged tie lies on the threshold, and still on its right side.
_JUST_ABOVE = np.nextafter(0.0, 1.0)


def labels_of(decisions: Decisions, classes: NDArray[Any], rare: int) -> NDArray[Any]:
    """Return the rare label where an item is flagged, and the likeliest other one elsewhere."""
    if decisions.by_class is None:
        return _two_labels(classes, rare, decisions.flagged)
    predicted = np.argmax(_without(rare, decisions.by_class), axis=1)
    predicted[decisions.flagged] = rare
    return classes[predicted]


def _two_labels(classes: NDArray[Any], rare: int, flagged: Mask) -> NDArray[Any]:
    if rare == 1 and classes.dtype.kind in "iu" and classes.tolist() == [0, 1]:
        return flagged.astype(classes.dtype)  # several times as quick as looking labels up
    labels = np.full(flagged.size, classes[1 - rare], dtype=classes.dtype)
    labels[flagged] = classes[rare]
    return labels


def signed_margins(decisions: Decisions, rare: int) -> NDArray[np.float64]:
    """Return score minus threshold, signed as the predicted labels; one column for each of many."""
    if decisions.by_class is None and rare == 0:
        return _margin(decisions.thresholds, decisions.scores, ~decisions.flagged)
    margin = _margin(decisions.scores, decisions.thresholds, decisions.flagged)
    if decisions.by_class is None:
        return margin
    # The best other class stands at 0 below a flag, and at 1 above everything else.
    others = _without(rare, decisions.by_class)
    columns = others - others.max(axis=1, keepdims=True) + ~decisions.flagged[:, np.newaxis]
    columns[:, rare] = margin
    return columns


def by_mean(flagged: Mask, scores: Floats, rule: Rule) -> Decisions:
    """Describe decisions of several models by their mean score and their median threshold."""
    values = np.array([each.value for each in rule.calibrations])
    finite = values[np.isfinite(values)]
    threshold = np.median(finite) if finite.size else rule.calibration_scores.max()
    return Decisions(flagged, scores, np.broadcast_to(np.float64(threshold), scores.shape))


def _margin(upper: Floats, lower: Floats, is_positive: Mask) -> NDArray[np.float64]:
    """Return the difference of two arrays: finite, and positive exactly where it should be."""
    with np.errstate(invalid="ignore", over="ignore"):
        margin = np.nan_to_num(upper.astype(np.float64) - lower, nan=0.0)
    # Ties with the threshold, and infinities that meet, have no sign of their own.
    unsettled = (margin > 0) != is_positive
    margin[unsettled] = np.where(is_positive[unsettled], _JUST_ABOVE, 0.0)
    return margin


def _without(rare: int, by_class: Floats) -> NDArray[np.float64]:
    others = np.array(by_class, dtype=np.float64)
    others[:, rare] = -np.inf
    return others
