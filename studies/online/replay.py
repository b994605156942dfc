"""Replay a recorded stream: what a controller would have done, period by period, and a picture."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist import Capacity
from shortlist._core.arrays import Floats, Mask, Rows
from shortlist._core.labels import find_rare
from shortlist._core.ranking import check_scores, flag_exactly
from shortlist._core.validation import check_same_length
from shortlist._core.work import check_efforts, check_values
from shortlist.capacity import check_capacity
from shortlist.exceptions import CapacityError
from shortlist.online import Controller
from shortlist.online.decisions import PROBE, check_moments, is_flag, to_seconds
from shortlist.online.periods import check_period, read_period
from shortlist.worth import expected_worth

_MOST_PERIODS = 10**7


@dataclass(frozen=True)
class Replay:
    """The result of :func:`replay`, one entry per period.

    Attributes
    ----------
    periods : ndarray of int
        Numbers of the periods.
    n_items, n_rare, capacity, flags, detections : ndarrays of int
        Items and rare items that arrived, flags allowed and used, and rare items among the flags.
        With ``Capacity.effort(...)``, `capacity` is the work allowed.
    score : ndarray of float
        The adjusted detection rate M of each period; NaN without rare items.
    oracle_detections : ndarray of int
        Rare items among the highest scores of the period, as many as allowed: the choice with
        hindsight.
    fixed_flags, fixed_detections : ndarrays of int
        The same for `fixed_threshold`.
    flagged : ndarray of bool
        The decision about each item.
    probes : ndarray of int or None
        Flags that went to probes; None if the controller has none.
    effort, value, oracle_value, fixed_effort, fixed_value : ndarray of float or None
        With values or efforts: work of the flags, value of the rare items among them, and the same
        for the oracle and the fixed threshold. The oracle knows each period's probabilities,
        values and efforts beforehand, not its labels.
    """

    periods: NDArray[np.int64]
    n_items: NDArray[np.int64]
    n_rare: NDArray[np.int64]
    capacity: NDArray[np.int64]
    flags: NDArray[np.int64]
    detections: NDArray[np.int64]
    score: Floats
    oracle_detections: NDArray[np.int64]
    fixed_flags: NDArray[np.int64]
    fixed_detections: NDArray[np.int64]
    flagged: Mask
    probes: NDArray[np.int64] | None = None
    effort: Floats | None = None
    value: Floats | None = None
    oracle_value: Floats | None = None
    fixed_effort: Floats | None = None
    fixed_value: Floats | None = None

    @property
    def relative_value(self) -> float:
        """Value found relative to the oracle's, over all periods; NaN without values or efforts.

        Where the flags of a period take more than the budget, its value counts in part.
        """
        if self.value is None or self.oracle_value is None or not self.oracle_value.any():
            return float("nan")
        kept = _followed_up_share(self._used, self.capacity)
        return float((self.value * kept).sum() / self.oracle_value.sum())

    @property
    def adjusted_detections(self) -> Floats:
        """Detections per period, after paying for overruns."""
        return self.detections * _followed_up_share(self._used, self.capacity)

    @property
    def fixed_adjusted_detections(self) -> Floats:
        """The same for the fixed threshold."""
        used = self._flags_or_work(self.fixed_flags, self.fixed_effort)
        return self.fixed_detections * _followed_up_share(used, self.capacity)

    @property
    def _used(self) -> NDArray[Any]:
        """Flags, or their work if the capacity is one of work."""
        return self._flags_or_work(self.flags, self.effort)

    def _flags_or_work(self, flags: NDArray[Any], work: Floats | None) -> NDArray[Any]:
        return flags if work is None or self.capacity.dtype.kind != "f" else work

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
        """Share of periods with more flags, or work, than allowed."""
        return float(np.mean(self._used > self.capacity * (1 + 1e-12)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the table by column, as plain lists; NaN is None, and `flagged` is left out."""
        columns = [name for name in self.__dataclass_fields__ if name != "flagged"]
        found = {name: getattr(self, name) for name in columns}
        table = {name: column.tolist() for name, column in found.items() if column is not None}
        table["score"] = [None if np.isnan(score) else score for score in table["score"]]
        return table


def replay(
    scores: ArrayLike,
    y: ArrayLike,
    times: ArrayLike,
    controller: Controller,
    *,
    period: float | str = 86_400.0,
    starts_at: Any = 0.0,
    capacity: Capacity | Sequence[Capacity] | None = None,
    rare_label: Any = None,
    fixed_threshold: float | None = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
) -> Replay:
    """Run a controller over a recorded stream, and compare it with hindsight.

    Besides the controller, the table shows an oracle that sees each period beforehand, and a
    threshold that never changes.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        Scores in order of arrival.
    y : array-like of shape (n_items,)
        True labels.
    times : array-like of shape (n_items,)
        Moments in seconds, or datetimes.
    controller : Controller
        A copy of it runs; the controller itself does not change. Probes are drawn by the numbers of
        the items.
    period : float or str, default=86400
        Length of a period in seconds, or a period of a calendar as in :class:`CalendarPeriod`.
    starts_at : float or datetime, default=0
        A moment at which a period starts.
    capacity : Capacity or sequence of Capacity, default=None
        What can be followed up in a period, for judging the flags and for the oracle: one for all
        periods, or one for each period from that of the first item to that of the last. `None`
        takes the controller's capacity at the end of each period. This does not change the
        controller: announce changes to it beforehand, with ``set_capacity(..., at=...)``.
    rare_label : label, default=None
        The label to look for; `None` takes the rarest in `y`.
    fixed_threshold : float, default=None
        A threshold to compare with; `None` takes the first threshold of the controller.
    values, efforts : array-like of shape (n_items,), default=None
        What each item is worth if it is rare, and how much work it takes. Scores must then be
        probabilities; the controller gets value * probability / effort, and must have been made
        with such calibration scores.

    Returns
    -------
    Replay
        A table with one entry per period, `relative_detection` and `overrun_share`.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> from shortlist.online import BudgetController
    >>> from studies.online.replay import replay
    >>> from studies.online.streams import simulate_stream
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
    recording = _check_recording(scores, y, times, period, starts_at, rare_label)
    recording = _weighed(recording, values, efforts)
    if controller.counts_work and efforts is None:
        raise CapacityError(
            f"{controller.capacity!r} is a budget of work. Pass efforts=..., the work of each item."
        )
    codes, first_threshold, in_force = _run(copy.deepcopy(controller), recording)
    capacities = in_force if capacity is None else _one_per_period(capacity, recording)
    allowed = _allowed_flags(capacities, recording, controller.options.get("prevalence"))
    fixed = recording.scores > (first_threshold if fixed_threshold is None else fixed_threshold)
    return _make_table(
        recording,
        allowed=allowed,
        flagged=is_flag(codes),
        fixed=fixed,
        oracle=_oracle_flags(recording, allowed),
        probes=codes == PROBE if controller.has_probes else None,
    )


@dataclass(frozen=True)
class _Recording:
    """A checked stream, and its periods: numbers, and where the items of each start and stop."""

    scores: Floats
    moments: Floats
    is_rare: Mask
    period_of_item: NDArray[np.int64]
    periods: NDArray[np.int64]
    starts: Rows
    stops: Rows
    gains: Floats | None = None
    efforts: Floats | None = None
    is_weighed: bool = False

    def total(self, mask: Mask, numbers: Floats | None) -> Floats:
        """Add up numbers over a mask in each period; each item counts 1 without numbers."""
        rows = self.period_of_item[mask] - self.periods[0]
        weights = None if numbers is None else numbers[mask]
        return np.bincount(rows, weights, minlength=self.periods.size).astype(np.float64)

    def count(self, mask: Mask) -> NDArray[np.int64]:
        """Count the items of a mask in each period."""
        rows = self.period_of_item[mask] - self.periods[0]
        return np.bincount(rows, minlength=self.periods.size).astype(np.int64)


def _check_recording(
    scores: Any, y: Any, times: Any, period: float | str, starts_at: Any, rare_label: Any
) -> _Recording:
    values = check_scores(scores).astype(np.float64)
    moments = check_moments(times, values.size)
    check_same_length(scores=values, y=np.asarray(y))
    if values.size == 0:
        raise ValueError("replay needs at least one item; got none.")
    if np.any(np.diff(moments) < 0):
        raise ValueError("times must not fall: sort the items by time before you replay them.")
    is_rare = find_rare(y, rare_label)[0]
    described = read_period(check_period(period), starts_at=to_seconds(starts_at))
    numbers = np.array([described.number(each) for each in moments.tolist()])
    if numbers[-1] - numbers[0] >= _MOST_PERIODS:
        raise ValueError(
            f"times span {numbers[-1] - numbers[0] + 1} periods of {period} seconds, but the table "
            f"can have at most {_MOST_PERIODS} rows. Pass a longer period=..., or fewer items."
        )
    periods = np.arange(numbers[0], numbers[-1] + 1)
    starts = np.searchsorted(numbers, periods)
    stops = np.searchsorted(numbers, periods, side="right")
    return _Recording(values, moments, is_rare, numbers, periods, starts, stops)


def _weighed(recording: _Recording, values: Any, efforts: Any) -> _Recording:
    """Replace probabilities by what the items are worth, if there are values or efforts."""
    if values is None and efforts is None:
        return recording
    n = recording.scores.size
    return replace(
        recording,
        scores=expected_worth(recording.scores, values=values, efforts=efforts),
        gains=check_values(values, n),
        efforts=check_efforts(efforts, n),
        is_weighed=True,
    )


def _run(
    controller: Controller, recording: _Recording
) -> tuple[NDArray[np.int8], float, list[Capacity]]:
    """Return the reasons, the first threshold, and the capacity in force after each period."""
    codes, in_force = np.zeros(recording.scores.size, dtype=np.int8), []
    first_threshold = np.inf
    for start, stop in zip(recording.starts, recording.stops, strict=True):
        part = slice(start, stop)
        efforts = recording.efforts if controller.counts_work else None
        work = None if efforts is None else efforts[part]
        batch = controller.decide_many(
            recording.scores[part], at=recording.moments[part], efforts=work
        )
        codes[part] = batch.codes
        if start == 0:
            first_threshold = float(batch.thresholds[0])
        in_force.append(controller.capacity)
    return codes, first_threshold, in_force


def _one_per_period(capacity: Any, recording: _Recording) -> list[Capacity]:
    n_periods = recording.periods.size
    if isinstance(capacity, Capacity):
        return [capacity] * n_periods
    capacities = [check_capacity(each) for each in capacity]
    if len(capacities) != n_periods:
        raise ValueError(
            f"capacity must hold one Capacity for each of the {n_periods} periods from the first "
            f"item to the last; got {len(capacities)}."
        )
    return capacities


def _allowed_flags(
    capacities: list[Capacity], recording: _Recording, prevalence: float | None
) -> NDArray[np.int64]:
    """Return how many flags, or how much work, each period allows."""
    sizes = (recording.stops - recording.starts).tolist()
    return np.array(
        [
            float(capacity.max_effort(n))
            if capacity.kind == "effort"
            else capacity.max_flags(n, prevalence)
            for capacity, n in zip(capacities, sizes, strict=True)
        ]
    )


def _oracle_flags(recording: _Recording, allowed: NDArray[np.int64]) -> Mask:
    """Flag the highest scores of each period, as many as it allows; ties go to the first."""
    flagged = np.zeros(recording.scores.size, dtype=bool)
    for k, start, stop in zip(allowed, recording.starts, recording.stops, strict=True):
        if allowed.dtype.kind == "f" and recording.efforts is not None:
            order = np.argsort(-recording.scores[start:stop], kind="stable")
            spent = np.cumsum(recording.efforts[start:stop][order])
            flagged[start + order[spent <= k]] = True
            continue
        flagged[start:stop] = flag_exactly(recording.scores[start:stop], int(k), _by_arrival)
    return flagged


def _by_arrival(tied: Rows) -> NDArray[np.float64]:
    return tied.astype(np.float64)


def _make_table(
    recording: _Recording,
    *,
    allowed: NDArray[np.int64],
    flagged: Mask,
    fixed: Mask,
    oracle: Mask,
    probes: Mask | None,
) -> Replay:
    count, is_rare = recording.count, recording.is_rare
    flags, detections, n_rare = count(flagged), count(flagged & is_rare), count(is_rare)
    effort = recording.total(flagged, recording.efforts)
    used = effort if allowed.dtype.kind == "f" else flags
    with np.errstate(invalid="ignore"):
        score = detections * _followed_up_share(used, allowed) / n_rare
    rare = {"value": flagged, "oracle_value": oracle, "fixed_value": fixed}
    weighed = {"effort": effort, "fixed_effort": recording.total(fixed, recording.efforts)}
    weighed |= {
        name: recording.total(mask & is_rare, recording.gains) for name, mask in rare.items()
    }
    return Replay(
        periods=recording.periods,
        n_items=recording.stops - recording.starts,
        n_rare=n_rare,
        capacity=allowed,
        flags=flags,
        detections=detections,
        score=score,
        oracle_detections=count(oracle & is_rare),
        fixed_flags=count(fixed),
        fixed_detections=count(fixed & is_rare),
        flagged=flagged,
        probes=None if probes is None else count(probes),
        **(weighed if recording.is_weighed else {}),
    )


def _followed_up_share(used: NDArray[Any], capacity: NDArray[Any]) -> Floats:
    """Return the share of flags, or of their work, that can be followed up."""
    return np.minimum(1.0, capacity / np.maximum(used, 1 if used.dtype.kind == "i" else 1e-300))


class ReplayDisplay:
    """Draw flags beside the capacity, and detections beside those of the oracle, over time.

    Parameters
    ----------
    table : Replay
        The result of :func:`replay`.
    name : str, default="controller"
        Name for the legend.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_flags_, ax_detections_ : matplotlib Axes
        Its two panels.

    """

    def __init__(self, table: Replay, *, name: str = "controller") -> None:
        self.table = table
        self.name = name

    def plot(self, *, axes: Any = None) -> Self:
        """Draw, on a new figure or on the axes for flags and detections."""
        if axes is None:
            _, axes = plt.subplots(2, sharex=True, figsize=(8, 5), layout="constrained")
        self.ax_flags_, self.ax_detections_ = axes
        self.figure_ = self.ax_flags_.figure
        self._draw_flags()
        self._draw_detections()
        return self

    def _draw_flags(self) -> None:
        table, ax = self.table, self.ax_flags_
        ax.step(table.periods, table.capacity, where="mid", color="black", label="capacity")
        ax.plot(table.periods, table.fixed_flags, ":", color="gray", label="fixed threshold")
        ax.plot(table.periods, table.flags, "o-", markersize=3, label=self.name)
        # A fixed threshold may flag ten times as much, and would flatten everything else.
        ax.set_ylim(0, 1.1 * max(3 * int(table.capacity.max()), int(table.flags.max()), 1))
        ax.set_ylabel("Flags")
        ax.legend(frameon=False, ncols=3)

    def _draw_detections(self) -> None:
        table, ax = self.table, self.ax_detections_
        oracle = table.oracle_detections
        ax.step(table.periods, oracle, where="mid", color="black", label="oracle")
        fixed = table.fixed_adjusted_detections
        ax.plot(table.periods, fixed, ":", color="gray", label="fixed threshold")
        ax.plot(table.periods, table.adjusted_detections, "o-", markersize=3, label=self.name)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("Period")
        ax.set_ylabel("Found within capacity")
        ax.legend(frameon=False, ncols=3)
