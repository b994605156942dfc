"""Detection against capacity, over every distinct cut of a ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.utils.multiclass import check_classification_targets

from .._core.arrays import Floats
from .._core.binomial import clopper_pearson_lower, clopper_pearson_upper
from .._core.labels import EstimatedShare, find_rare
from .._core.ranking import rank
from .._core.validation import check_confidence, check_number, check_same_length, check_scores
from ..capacity import Capacity, check_capacity

__all__ = ["CapacityCurve", "capacity_curve"]


@dataclass(frozen=True, slots=True)
class CapacityCurve:
    """The rare items found at each capacity; made by :func:`capacity_curve`.

    Every attribute but the last three is an array with one entry per distinct cut, from no flags
    at all to everything flagged (or `max_fraction`).

    Attributes
    ----------
    thresholds : ndarray
        Items with a score strictly above are flagged.
    n_flagged, n_found : ndarray of int
        Flags, and rare items among them.
    fraction : ndarray
        Flags as a share of all items.
    multiple : ndarray
        Flags per rare item: the b of the paper.
    detection : ndarray
        Share of the rare items that are found.
    detection_low, detection_high : ndarray
        Confidence band of the detection, exact for each single cut (Clopper and Pearson).
    precision : ndarray
        Share of the flags that are rare; NaN where nothing is flagged.
    lift : ndarray
        Precision divided by the prevalence; NaN where nothing is flagged.
    marginal : ndarray
        Rare items found by one more flag: the slope of the smallest concave curve above the
        ranking (isotonic regression), which never rises.
    n_items, n_rare : int
        Size of the sample and of its rare class.
    confidence : float
        Level of the band.
    """

    thresholds: Floats
    n_flagged: NDArray[np.intp]
    n_found: NDArray[np.intp]
    fraction: Floats
    multiple: Floats
    detection: Floats
    detection_low: Floats
    detection_high: Floats
    precision: Floats
    lift: Floats
    marginal: Floats
    n_items: int
    n_rare: int
    confidence: float

    def at(self, capacity: Capacity) -> dict[str, float]:
        """Return the row of the largest cut within `capacity`, as a dict.

        Examples
        --------
        >>> from shortlist import Capacity, capacity_curve
        >>> curve = capacity_curve([1, 0, 1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
        >>> row = curve.at(Capacity.count(3))
        >>> row["n_found"], row["detection"]
        (2, 1.0)
        """
        prevalence = EstimatedShare(self.n_rare, self.n_items)
        max_flags = check_capacity(capacity).max_flags(self.n_items, prevalence)
        if max_flags > self.n_flagged[-1] and self.fraction[-1] < 1:
            raise ValueError(
                f"{capacity!r} allows {max_flags} flags, but the curve ends at "
                f"{self.n_flagged[-1]}. Make it with a larger max_fraction."
            )
        row = int(np.searchsorted(self.n_flagged, max_flags, side="right")) - 1
        return {name: column[row].item() for name, column in self.to_dict().items()}

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, ready for ``pandas.DataFrame`` or ``polars.DataFrame``."""
        return {name: getattr(self, name) for name in _COLUMNS}


_COLUMNS = tuple(CapacityCurve.__annotations__)[:-3]


def capacity_curve(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    rare_label: Any = None,
    max_fraction: float | None = None,
    confidence: float = 0.95,
) -> CapacityCurve:
    """Measure how many rare items every capacity would find.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True labels.
    scores : array-like of shape (n_items,)
        Higher is more suspicious. NaN is an error.
    rare_label : label, default=None
        The rare label; `None` uses the rarest in `y_true`.
    max_fraction : float, default=None
        Omit cuts that flag more than this share of the items.
    confidence : float, default=0.95
        Level of the band around the detection, for each single cut.

    Returns
    -------
    CapacityCurve
        Arrays `fraction`, `multiple`, `detection`, `precision`, `lift`, `thresholds`, the band and
        the `marginal` detections per extra flag, over every distinct cut.

    See Also
    --------
    CapacityCurveDisplay : Draws it.

    Examples
    --------
    >>> from shortlist import capacity_curve
    >>> curve = capacity_curve([1, 0, 1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    >>> curve.n_flagged.tolist()
    [0, 1, 2, 3, 4, 5, 6]
    >>> curve.detection.tolist()
    [0.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]

    The first flag finds a rare item; the next two find one between them:

    >>> curve.marginal.tolist()
    [1.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    """
    y_true, scores = np.asarray(y_true), check_scores(scores)
    check_same_length(y_true=y_true, scores=scores)
    confidence = check_confidence(confidence)
    check_classification_targets(y_true)
    is_rare, _ = find_rare(y_true, rare_label)
    order, n_flagged = rank(scores)
    n_found = np.concatenate([[0], np.cumsum(is_rare[order])])[n_flagged]
    n_items, n_rare = scores.size, int(n_found[-1])
    # Flagging strictly above the next score flags exactly the items before the cut.
    thresholds = np.append(scores[order][n_flagged[:-1]].astype(np.float64), -np.inf)
    marginal = _marginal(n_flagged, n_found)

    kept = slice(None, _n_kept(n_flagged, n_items, max_fraction))
    n_flagged, n_found = n_flagged[kept], n_found[kept]
    precision = np.full(n_flagged.size, np.nan)
    np.divide(n_found, n_flagged, out=precision, where=n_flagged > 0)
    tail = (1 - confidence) / 2
    return CapacityCurve(
        thresholds=thresholds[kept],
        n_flagged=n_flagged,
        n_found=n_found,
        fraction=n_flagged / n_items,
        multiple=n_flagged / n_rare,
        detection=n_found / n_rare,
        detection_low=clopper_pearson_lower(n_found, n_rare, error=tail),
        detection_high=clopper_pearson_upper(n_found, n_rare, error=tail),
        precision=precision,
        lift=precision / (n_rare / n_items),
        marginal=marginal[kept],
        n_items=n_items,
        n_rare=n_rare,
        confidence=confidence,
    )


def _n_kept(n_flagged: NDArray[np.intp], n_items: int, max_fraction: float | None) -> int:
    if max_fraction is None:
        return n_flagged.size
    if not 0 < float(check_number("max_fraction", max_fraction)) <= 1:
        raise ValueError(f"max_fraction must lie in (0, 1]; got {max_fraction!r}.")
    max_flags = Capacity.fraction(max_fraction).max_flags(n_items)
    return int(np.searchsorted(n_flagged, max_flags, side="right"))


def _marginal(n_flagged: NDArray[np.intp], n_found: NDArray[np.intp]) -> Floats:
    """Return, for each cut, the fitted precision of the block of items that comes next."""
    sizes = np.diff(n_flagged).astype(np.float64)
    slopes = isotonic_regression(np.diff(n_found) / sizes, sample_weight=sizes, increasing=False)
    return np.append(slopes, 0.0)
