"""What a controller would have done: a table per period, beside an oracle and a fixed threshold."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.labels import find_rare
from .._core.ranking import flag_exactly
from .._core.validation import check_same_length, check_scores
from ..capacity import Capacity, check_capacity
from ._base import Controller
from ._input import check_period
from ._time import check_times, periods_of, seconds

__all__ = ["Replay", "replay"]

_MOST_PERIODS = 10**7


@dataclass(frozen=True)
class Replay:
    """What :func:`replay` found, one entry per period.

    Attributes
    ----------
    periods : ndarray of int
        Numbers of the periods.
    n_items, n_rare, capacity, flags, detections : ndarrays of int
        Items and rare items that came, flags allowed and made, and rare items among them.
    score : ndarray of float
        The adjusted detection rate M of each period; NaN without rare items.
    oracle_detections : ndarray of int
        Rare items among the highest scores of the period, as many as allowed: the choice of one
        who sees the whole period beforehand.
    fixed_flags, fixed_detections : ndarrays of int
        What `fixed_threshold` would have done.
    flagged : ndarray of bool
        The decision about each item.
    """

    periods: NDArray[np.int64]
    n_items: NDArray[np.int64]
    n_rare: NDArray[np.int64]
    capacity: NDArray[np.int64]
    flags: NDArray[np.int64]
    detections: NDArray[np.int64]
    score: NDArray[np.float64]
    oracle_detections: NDArray[np.int64]
    fixed_flags: NDArray[np.int64]
    fixed_detections: NDArray[np.int64]
    flagged: NDArray[np.bool_]

    @property
    def adjusted_detections(self) -> NDArray[np.float64]:
        """Detections per period, once overruns have been paid for."""
        return self.detections * _processed(self.flags, self.capacity)

    @property
    def fixed_adjusted_detections(self) -> NDArray[np.float64]:
        """The same for the fixed threshold."""
        return self.fixed_detections * _processed(self.fixed_flags, self.capacity)

    @property
    def relative_detection(self) -> float:
        """Adjusted detections relative to the oracle's, over all periods."""
        return float(self.adjusted_detections.sum() / max(self.oracle_detections.sum(), 1))

    @property
    def fixed_relative_detection(self) -> float:
        """The same for the fixed threshold."""
        return float(self.fixed_adjusted_detections.sum() / max(self.oracle_detections.sum(), 1))

    @property
    def overrun_share(self) -> float:
        """Share of periods with more flags than allowed."""
        return float(np.mean(self.flags > self.capacity))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the table by column, as plain lists; NaN is None, and `flagged` is left out."""
        columns = [name for name in self.__dataclass_fields__ if name != "flagged"]
        table = {name: getattr(self, name).tolist() for name in columns}
        table["score"] = [None if np.isnan(score) else score for score in table["score"]]
        return table


def replay(
    scores: ArrayLike,
    y: ArrayLike,
    times: ArrayLike,
    controller: Controller,
    *,
    period: float = 86_400.0,
    starts_at: Any = 0.0,
    capacity: Capacity | Sequence[Capacity] | None = None,
    rare_label: Any = None,
    fixed_threshold: float | None = None,
) -> Replay:
    """Run a controller over a recorded stream, and compare it with hindsight.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        Scores in order of arrival.
    y : array-like of shape (n_items,)
        True labels.
    times : array-like of shape (n_items,)
        Moments in seconds, or datetimes.
    controller : Controller
        A copy of it runs; it stays as it is.
    period : float, default=86400
        Seconds of a period.
    starts_at : float or datetime, default=0
        A moment at which a period starts.
    capacity : Capacity or sequence of Capacity, default=None
        What can be followed up in a period, as flags and oracle are judged: one for all, or one for
        each period from the first item's to the last one's. `None` takes what the controller had in
        force at the period's end. The controller itself is not told: announce changes to it
        beforehand, with ``set_capacity(..., at=...)``.
    rare_label : label, default=None
        The label that is looked for; `None` takes the rarest in `y`.
    fixed_threshold : float, default=None
        A threshold to compare with; `None` takes the controller's first.

    Returns
    -------
    Replay
        A table with one entry per period, `relative_detection` and `overrun_share`.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.online import BudgetController, replay, simulate_stream
    >>> stream = simulate_stream("drift", days=10)
    >>> budget = BudgetController(
    ...     Capacity.count(50),
    ...     period=stream.period,
    ...     expected_arrivals=5_000,
    ...     calibration_scores=stream.calibration_scores,
    ... )
    >>> table = replay(stream.scores, stream.y, stream.times, budget)
    >>> table.flags.tolist()
    [50, 50, 50, 50, 50, 50, 50, 50, 50, 50]
    >>> table.overrun_share
    0.0
    """
    values = check_scores(scores).astype(np.float64)
    moments = check_times(times, values.size)
    check_same_length(scores=values, y=np.asarray(y))
    if values.size == 0:
        raise ValueError("replay needs at least one item; got none.")
    if np.any(np.diff(moments) < 0):
        raise ValueError("times must not fall: sort the items by their times before replaying.")
    is_rare = find_rare(y, rare_label)[0]
    index = periods_of(moments, seconds(starts_at), check_period(period))
    if index[-1] - index[0] >= _MOST_PERIODS:
        raise ValueError(
            f"times span {index[-1] - index[0] + 1} periods of {period} seconds, and the table has "
            f"a row for each: at most {_MOST_PERIODS}. Pass a longer period=..., or fewer items."
        )
    periods = np.arange(index[0], index[-1] + 1)
    starts = np.searchsorted(index, periods)
    stops = np.searchsorted(index, periods, side="right")
    flagged, first, in_force = _run(copy.deepcopy(controller), values, moments, starts)
    fixed = values > (first if fixed_threshold is None else fixed_threshold)
    capacities = in_force if capacity is None else _capacities(capacity, periods.size)
    prevalence = controller._options.get("prevalence")
    allowed = np.array(
        [
            each.max_flags(n, prevalence)
            for each, n in zip(capacities, (stops - starts).tolist(), strict=True)
        ]
    )
    best = np.zeros(values.size, dtype=bool)
    for k, start, stop in zip(allowed, starts, stops, strict=True):
        best[start:stop] = flag_exactly(values[start:stop], int(k), _by_arrival)

    def count(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(index[mask] - index[0], minlength=periods.size).astype(np.int64)

    flags, detections, n_rare = count(flagged), count(flagged & is_rare), count(is_rare)
    with np.errstate(invalid="ignore"):
        score = detections * _processed(flags, allowed) / n_rare
    return Replay(
        periods=periods,
        n_items=stops - starts,
        n_rare=n_rare,
        capacity=allowed,
        flags=flags,
        detections=detections,
        score=score,
        oracle_detections=count(best & is_rare),
        fixed_flags=count(fixed),
        fixed_detections=count(fixed & is_rare),
        flagged=flagged,
    )


def _capacities(capacity: Any, n_periods: int) -> list[Capacity]:
    if isinstance(capacity, Capacity):
        return [capacity] * n_periods
    listed = [check_capacity(each) for each in capacity]
    if len(listed) != n_periods:
        raise ValueError(
            f"capacity must hold one Capacity for each of the {n_periods} periods from the first "
            f"item to the last; got {len(listed)}."
        )
    return listed


def _run(
    controller: Controller,
    scores: NDArray[np.float64],
    moments: NDArray[np.float64],
    starts: NDArray[np.intp],
) -> tuple[NDArray[np.bool_], float, list[Capacity]]:
    """Return the flags, the first threshold, and the capacity in force after each period."""
    bounds = [*starts.tolist(), scores.size]
    flagged, in_force = np.zeros(scores.size, dtype=bool), []
    first = np.inf
    for i in range(starts.size):
        part = slice(bounds[i], bounds[i + 1])
        batch = controller.decide_many(scores[part], at=moments[part])
        flagged[part] = batch.flagged
        first = float(batch.thresholds[0]) if i == 0 else first
        in_force.append(controller.capacity)
    return flagged, first, in_force


def _by_arrival(tied: NDArray[np.intp]) -> NDArray[np.float64]:
    return tied.astype(np.float64)


def _processed(flags: NDArray[np.int64], capacity: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of flags that can be followed up."""
    return np.minimum(1.0, capacity / np.maximum(flags, 1))
