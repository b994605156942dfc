"""Detection against capacity, over every distinct cut of a ranking."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.utils.multiclass import check_classification_targets

from .._core.arrays import Floats
from .._core.intervals import Interval, clopper_pearson_lower, clopper_pearson_upper
from .._core.labels import EstimatedShare, find_rare, without_gaps
from .._core.ranking import check_scores, rank
from .._core.validation import check_confidence, check_number, check_same_length
from .._core.work import check_efforts, check_values
from ..capacity import Capacity, check_capacity, exact
from ..exceptions import CapacityError
from ._detection_region import DetectionRegion
from .detection import Items, ranked_by


@dataclass(frozen=True)
class NeededCapacity:
    """What it takes to find a share of the rare items; made by `CapacityCurve.needed_for`.

    Attributes
    ----------
    detection : float
        The share of the rare items to find. The others escape.
    n_flagged : int
        The fewest flags that find this share of the rare items of the sample.
    fraction, low, high : float
        The share of all items that must be followed up: in the sample, and both ends of its
        confidence interval in the population.
    threshold : float
        Kept from now on, at least this share of the rare items lies above it, with the same
        confidence; minus infinity if the sample has too few rare items to say so.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import capacity_curve
    >>> curve = capacity_curve(np.arange(1_000) < 40, -np.arange(1_000), rare_label=True)
    >>> needed = curve.needed_for(0.5)
    >>> needed.n_flagged, needed.low, needed.high
    (20, 0.013, 0.035)
    >>> needed.judge(0.05), needed.judge(0.02), needed.judge(0.01)
    (True, None, False)
    """

    detection: float
    n_flagged: int
    fraction: float
    low: float
    high: float
    threshold: float

    def judge(self, fraction: float) -> bool | None:
        """Whether a share of the items is enough, with confidence; None if that is not known."""
        return True if fraction >= self.high else False if fraction < self.low else None


@dataclass(frozen=True, slots=True)
class CapacityCurve:
    r"""The rare items found at each capacity; made by :func:`capacity_curve`.

    Every attribute but the last ones is an array with one entry per distinct cut, from no flags
    at all to everything flagged. With values and efforts, items are ranked by
    value * probability / effort.

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
        Confidence interval of the detection at this capacity: of the share of all rare items that
        are found when the highest `fraction` of the population is followed up. The threshold that
        achieves this is not known exactly, and the interval covers that, too. Each interval holds
        for its own capacity, not for all of them at once; see Notes.
    at_threshold_low, at_threshold_high : ndarray
        Confidence interval of the detection at this threshold, if the same threshold is used from
        now on (Clopper and Pearson). The share of flagged items may then differ from `fraction`.
        It is narrower, and wrong for a capacity: with a near-perfect model and a capacity below
        the prevalence, it covers the detection at the capacity little more than half the time.
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
        Level of both intervals.
    effort, value, value_share, price : ndarray or None
        With values or efforts: work of the flags, value of the rare items among them, their share
        of the value of all rare items, and the value found by one more unit of work, which never
        rises (as `marginal`). The intervals above are those of the number of rare items.

    Notes
    -----
    With :math:`r` rare and :math:`m` other items in the sample, the true threshold of the capacity
    :math:`c` has :math:`F \sim B(r, d)` rare and :math:`H \sim B(m, e)` other items above it,
    where :math:`\pi d + (1 - \pi) e = c` for the prevalence :math:`\pi`. Half of the allowed error
    goes into bounds of Clopper and Pearson for :math:`d`, a quarter each into those for :math:`e`
    and :math:`\pi`. A detection :math:`d` lies in the interval if some cut of the sample agrees
    with all three. The interval is conservative: it covers at least as often as it says, in any
    sample size. Ties are taken as broken without regard to the labels.
    """

    thresholds: Floats
    n_flagged: NDArray[np.intp]
    n_found: NDArray[np.intp]
    fraction: Floats
    multiple: Floats
    detection: Floats
    detection_low: Floats
    detection_high: Floats
    at_threshold_low: Floats
    at_threshold_high: Floats
    precision: Floats
    lift: Floats
    marginal: Floats
    n_items: int
    n_rare: int
    confidence: float
    _region: DetectionRegion = field(repr=False, compare=False)
    effort: Floats | None = None
    value: Floats | None = None
    value_share: Floats | None = None
    price: Floats | None = None

    def at(self, capacity: Capacity) -> dict[str, float]:
        """Return the row of the largest cut within `capacity`, as a dict.

        With ``Capacity.effort(...)`` it is the largest cut whose work is within the budget. A
        budget without `per` is one for all items of the curve.

        `detection_low` and `detection_high` are those of the capacity itself, as by
        :meth:`interval_at`: a multiple refers to the prevalence of the population, which is not
        known exactly. If a tied block does not fit, the row flags fewer items than the capacity
        allows; the interval then begins at the lower end for the row, and ends at the upper end
        for the capacity.

        Examples
        --------
        >>> from shortlist import Capacity, capacity_curve
        >>> curve = capacity_curve([1, 0, 1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
        >>> row = curve.at(Capacity.count(3))
        >>> row["n_found"], row["detection"]
        (2, 1.0)
        """
        if check_capacity(capacity).kind == "effort":
            if self.effort is None:
                raise CapacityError(
                    f"{capacity!r} is a budget of work. Make the curve with efforts=..., the work "
                    "that each item takes."
                )
            # Sums of decimals may differ in their last digits.
            budget = float(capacity.max_effort(self.n_items)) * (1 + 1e-12)
            return self._row(self.effort, budget)
        most = capacity.max_flags(self.n_items, EstimatedShare(self.n_rare, self.n_items))
        row = self._row(self.n_flagged, most)
        low, high = self.interval_at(capacity)
        if row["n_flagged"] < most:
            low = min(low, row["detection_low"])
        return {**row, "detection_low": low, "detection_high": high}

    def _row(self, within: NDArray[Any], most: float) -> dict[str, float]:
        """Return the row of the largest cut at which a column does not exceed a number."""
        place = int(np.searchsorted(within, most, side="right")) - 1
        return {name: column[place].item() for name, column in self.to_dict().items()}

    def interval_at(self, capacity: Capacity) -> Interval:
        """Return the confidence interval of the detection when a capacity is filled exactly.

        Parameters
        ----------
        capacity : Capacity
            A fraction, or a count of so many items: the share of the items that is followed up. A
            count without `per` refers to as many items as the curve was made from. A multiple
            refers to the prevalence of the population; the interval covers that it is estimated.

        Returns
        -------
        Interval
            Named tuple ``(low, high)``. Tied items are taken in an order that does not depend on
            their labels.

        Examples
        --------
        A hundred items, the ten rare ones on top. Ten flags would find all rare items of this
        sample; in the population, they may find fewer:

        >>> import numpy as np
        >>> from shortlist import Capacity, capacity_curve
        >>> curve = capacity_curve(np.arange(100) < 10, -np.arange(100), rare_label=True)
        >>> low, high = curve.interval_at(Capacity.fraction(0.1))
        >>> round(low, 2), high
        (0.28, 1.0)
        """
        if check_capacity(capacity).kind == "multiple":
            low, high = self._region.ends_at(float(capacity.value), is_multiple=True)
        else:
            of_these, n = capacity.kind == "count" and capacity.per is None, self.n_items
            fraction = capacity.max_flags(n) / n if of_these else float(capacity.as_ratio())
            low, high = self._region.ends_at(fraction)
        return Interval(float(low), float(high))

    def needed_for(self, detection: float) -> NeededCapacity:
        """Return what it takes to find a share of the rare items: the inverse of `interval_at`.

        Parameters
        ----------
        detection : float
            The share to find, above 0 and at most 1. One minus this is the escape rate of quality
            control: the share of the rare items that nobody looks at.

        Returns
        -------
        NeededCapacity
            With `n_flagged` in this sample, and the ends `low` and `high` of the share of all items
            that must be followed up in the population. At `high`, the detection is promised.

        Notes
        -----
        The capacity at which the detection is exactly as asked lies where the interval of
        :meth:`interval_at` contains that detection. Each interval holds for its own capacity, and
        so the set of all such capacities covers the true one with the confidence of the curve. The
        threshold is the score of a rare item whose rank among the rare ones is fixed in advance by
        the bound of Clopper and Pearson.

        Examples
        --------
        >>> import numpy as np
        >>> from shortlist import Capacity, capacity_curve
        >>> rng = np.random.default_rng(0)
        >>> is_rare = rng.random(20_000) < 0.02
        >>> curve = capacity_curve(is_rare, rng.normal(size=20_000) + 3 * is_rare)
        >>> needed = curve.needed_for(0.9)
        >>> round(needed.low, 3), round(needed.fraction, 3), round(needed.high, 3)
        (0.045, 0.068, 0.109)
        >>> Capacity.for_detection(0.9, curve).as_fraction() == needed.high
        True
        """
        wanted = exact(check_number("detection", detection))
        if not 0 < wanted <= 1:
            raise ValueError(f"detection must lie above 0 and be at most 1; got {detection!r}.")
        found = np.flatnonzero(self.n_found >= math.ceil(wanted * self.n_rare))
        unsure = np.flatnonzero(self.detection_low < detection)
        can = int(np.argmax(self.detection_high >= detection))
        kept = self.thresholds[self.at_threshold_low >= detection]
        return NeededCapacity(
            detection=float(detection),
            n_flagged=int(self.n_flagged[found[0]]),
            fraction=float(self.fraction[found[0]]),
            low=float(self.fraction[max(can - 1, 0)]),
            high=float(self.fraction[min(unsure[-1] + 1, self.fraction.size - 1)]),
            threshold=float(kept[0]) if kept.size else -np.inf,
        )

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, ready for ``pandas.DataFrame`` or ``polars.DataFrame``."""
        columns = {name: getattr(self, name) for name in (*_COLUMNS, *_WORK_COLUMNS)}
        return {name: column for name, column in columns.items() if column is not None}


_WORK_COLUMNS = ("effort", "value", "value_share", "price")
_COLUMNS = tuple(CapacityCurve.__annotations__)[: -4 - len(_WORK_COLUMNS)]


def capacity_curve(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    rare_label: Any = None,
    confidence: float = 0.95,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
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
    confidence : float, default=0.95
        Level of the intervals of the detection, for each single capacity.
    values, efforts : array-like of shape (n_items,), default=None
        What each item is worth if it is rare, and how much work it takes. Scores must then be
        probabilities. The curve gets `effort`, `value`, `value_share` and `price`.

    Returns
    -------
    CapacityCurve
        Arrays `fraction`, `multiple`, `detection`, `precision`, `lift`, `thresholds`, intervals
        and the `marginal` detections per extra flag, over every distinct cut.

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

    Value found against minutes spent, and the price of one more minute:

    >>> curve = capacity_curve(
    ...     [True, False, True],
    ...     [0.9, 0.8, 0.7],
    ...     rare_label=True,
    ...     values=[100, 100, 900],
    ...     efforts=[10, 20, 30],
    ... )
    >>> curve.effort.tolist(), curve.value.tolist(), curve.price.tolist()
    ([0.0, 30.0, 40.0, 60.0], [0.0, 900.0, 1000.0, 1000.0], [30.0, 10.0, 0.0, 0.0])
    """
    y_true, scores = without_gaps(y_true), check_scores(scores)
    check_same_length(y_true=y_true, scores=scores)
    value, effort = check_values(values, scores.size), check_efforts(efforts, scores.size)
    scores = ranked_by(scores, value, effort)
    confidence = check_confidence(confidence)
    check_classification_targets(y_true)
    is_rare, _ = find_rare(y_true, rare_label)
    order, n_flagged = rank(scores)
    n_found = np.concatenate([[0], np.cumsum(is_rare[order])])[n_flagged]
    # Flagging strictly above the next score flags exactly the items before the cut.
    thresholds = np.append(scores[order][n_flagged[:-1]].astype(np.float64), -np.inf)
    curve = curve_of_counts(thresholds, n_flagged, n_found, confidence=confidence)
    if value is None and effort is None:
        return curve
    spent, found = Items.of(is_rare, value, effort).down_to(order, n_flagged)
    share = found / found[-1] if found[-1] > 0 else np.zeros(found.size)
    return replace(
        curve, effort=spent, value=found, value_share=share, price=_marginal(spent, found)
    )


def curve_of_counts(
    thresholds: Floats,
    n_flagged: NDArray[np.intp],
    n_found: NDArray[np.intp],
    *,
    confidence: float = 0.95,
) -> CapacityCurve:
    """Make a capacity curve from counts at cuts, from no flags to everything flagged.

    Items between two cuts are treated as tied. If cuts are left out, the other rows stay as they
    are, except that the intervals of the detection may be wider, and the marginal coarser.
    """
    n_items, n_rare = int(n_flagged[-1]), int(n_found[-1])
    region = DetectionRegion.of_path(n_flagged, n_found, error=1 - confidence)
    precision = np.full(n_flagged.size, np.nan)
    np.divide(n_found, n_flagged, out=precision, where=n_flagged > 0)
    fixed = {"trials": n_rare, "error": (1 - confidence) / 2}
    found, place = np.unique(n_found, return_inverse=True)
    low, high = region.ends_at(n_flagged / n_items)
    return CapacityCurve(
        thresholds=thresholds,
        n_flagged=n_flagged,
        n_found=n_found,
        fraction=n_flagged / n_items,
        multiple=n_flagged / n_rare,
        detection=n_found / n_rare,
        detection_low=low,
        detection_high=high,
        at_threshold_low=clopper_pearson_lower(found, **fixed)[place],
        at_threshold_high=clopper_pearson_upper(found, **fixed)[place],
        precision=precision,
        lift=precision / (n_rare / n_items),
        marginal=_marginal(n_flagged, n_found),
        n_items=n_items,
        n_rare=n_rare,
        confidence=confidence,
        _region=region,
    )


def _marginal(n_flagged: NDArray[Any], n_found: NDArray[Any]) -> Floats:
    """Return, for each cut, the fitted precision of the block of items that comes next."""
    sizes = np.diff(n_flagged).astype(np.float64)
    slopes = isotonic_regression(np.diff(n_found) / sizes, sample_weight=sizes, increasing=False)
    # One division for each block: the same number, however many cuts lie in it.
    ends = np.append(np.flatnonzero(slopes[1:] != slopes[:-1]) + 1, slopes.size)
    starts = np.append(0, ends[:-1])
    slopes = (n_found[ends] - n_found[starts]) / (n_flagged[ends] - n_flagged[starts])
    return np.append(np.repeat(slopes, ends - starts), 0.0)
