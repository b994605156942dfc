"""Checks on what callers pass in; all of them run before anything changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats, Ints
from .._core.ids import check_id, check_ids
from .._core.validation import (
    check_count,
    check_number,
    check_positive,
    check_scores,
    to_seconds,
)
from .._core.work import check_efforts
from ..capacity import Capacity, check_prevalence, exact
from ..exceptions import CapacityError
from ._scale import FARTHEST_SCORE
from .periods import CalendarPeriod

Names = NDArray[np.object_]

_MOST_FLAGS = 1 << 40
#: Work is counted in millionths.
WORK_UNITS = 10**6
_MOST_WORK = 10**12
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Arrivals:
    """Checked scores, moments, work in whole units (1 if none is counted), and ids if any."""

    scores: Floats
    moments: Floats
    work: Ints
    ids: Names | None

    @property
    def size(self) -> int:
        """How many items there are."""
        return self.scores.size

    @property
    def first(self) -> tuple[float, float, int, Any]:
        """The score, the moment, the work and the id of the first item."""
        id = None if self.ids is None else self.ids[0]
        return float(self.scores[0]), float(self.moments[0]), int(self.work[0]), id

    def __getitem__(self, part: slice) -> Arrivals:
        """Return some of the items."""
        ids = None if self.ids is None else self.ids[part]
        return Arrivals(self.scores[part], self.moments[part], self.work[part], ids)


def check_score(score: Any) -> float:
    """Return one score as a finite float."""
    if type(score) is float and -_LARGEST <= score <= _LARGEST:  # the common case comes first
        return score
    return float(check_number("score", score))


def check_score_array(scores: ArrayLike) -> Floats:
    """Return scores as a contiguous array of finite floats."""
    values = np.ascontiguousarray(check_scores(scores), dtype=np.float64)
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"scores must be finite; got {values[bad]} in row {bad}. Nothing has been changed."
        )
    return values


def check_names(ids: ArrayLike | None, n: int) -> Names | None:
    """Return one id per item, each a plain text or whole number; None if there are none."""
    checked = None if ids is None else check_ids(ids, n)
    if checked is None:
        return None
    names = np.empty(n, dtype=object)
    names[:] = [check_id(id) for id in checked.tolist()]
    return names


def check_calibration_scores(scores: ArrayLike) -> Floats:
    """Return calibration scores as finite floats, at least one."""
    checked = check_scores(scores, name="calibration_scores").astype(np.float64)
    if checked.size == 0:
        raise ValueError("calibration_scores must hold at least one score; got none.")
    if not np.all(np.isfinite(checked)):
        raise ValueError("calibration_scores must be finite; leave out infinite scores.")
    return np.clip(checked, -FARTHEST_SCORE, FARTHEST_SCORE)


def check_period(period: Any) -> float | str:
    """Return the length of a period in seconds, or the text of a period of a calendar."""
    if isinstance(period, str):
        return CalendarPeriod(period).text
    length = check_positive("period", period)
    if not 1e-6 <= length <= 1e12:
        raise ValueError(f"period must be a number of seconds from 1e-6 to 1e12; got {period!r}.")
    return length


def _check_weight(name: str, weight: Any) -> float:
    if check_positive(name, weight) > 1:
        raise ValueError(f"{name} must be at most 1; got {weight!r}.")
    return float(weight)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("step", "expected_arrivals", "max_effort", "expected_effort"), check_positive),
    "alpha": _check_weight,
    "burst": partial(check_count, at_most=1 << 20),
    "period": lambda _, period: check_period(period),
    "prevalence": lambda _, prevalence: float(check_prevalence(prevalence)),
    "remember": partial(check_count, at_most=1 << 40),
    "starts_at": lambda name, moment: float(check_number(name, to_seconds(moment))),
    "window": partial(check_count, at_most=1 << 24),
}


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """Check the options of any controller; None stays None, and unknown ones are left as given."""
    return {
        name: _CHECKS[name](name, option) if name in _CHECKS and option is not None else option
        for name, option in options.items()
    }


def check_work(capacity: Capacity, efforts: Any, n_items: int, *, most: float | None) -> Ints:
    """Return the work of items in whole units, each at most `most`; 1 in a budget of flags."""
    if capacity.kind != "effort":
        if efforts is not None:
            raise CapacityError(
                f"effort was given, but {capacity!r} limits the number of flags. Use a "
                "BudgetController with Capacity.effort(...)."
            )
        return np.ones(n_items, np.int64)
    if efforts is None:
        raise CapacityError(
            f"{capacity!r} is a budget of work: every item needs its effort. Pass effort=... to "
            "decide, and efforts=... to decide_many."
        )
    work = count_work(efforts, n_items)
    if most is not None and np.any(work > count_work([most], 1)):
        raise ValueError(
            f"efforts must be at most max_effort={most:g}; got {np.max(efforts):g}. The bound "
            "would not hold. Nothing was changed."
        )
    return work


def count_work(efforts: Any, n_items: int) -> Ints:
    """Return efforts in millionths, rounded up: decimals of up to six digits exactly."""
    array = check_efforts(efforts, n_items)
    if array is None or (array.size and array.max() > _MOST_WORK):
        raise ValueError(f"efforts must be at most {_MOST_WORK:g} each; got {efforts!r}.")
    scaled = array * WORK_UNITS
    whole = np.rint(scaled)
    is_decimal = whole / WORK_UNITS == array
    return np.where(is_decimal, whole, np.ceil(scaled * (1 + 1e-15))).astype(np.int64)


def work_allowed(capacity: Capacity) -> int:
    """Return a budget of work in millionths, rounded down."""
    if capacity.value > _MOST_WORK:
        raise CapacityError(f"A budget of work can be at most {_MOST_WORK:g}; got {capacity!r}.")
    return int(exact(capacity.value) * WORK_UNITS)


def flags_allowed(capacity: Capacity) -> int:
    """Return a number of flags, unless it is too large for the arithmetic of a controller."""
    if capacity.value > _MOST_FLAGS:
        raise CapacityError(f"A number of flags can be at most {_MOST_FLAGS}; got {capacity!r}.")
    return int(capacity.value)
