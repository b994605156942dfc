"""The exact solution in whole numbers: a scale for them, the rows that matter, flow and prices."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from .._core.arrays import Floats, Ints, Rows, TieKeys
from ._flow import FORBIDDEN, best_flow

# The largest gain gets this many bits. Paths through up to 2**14 classes then fit into 64.
_BITS = 46


class FixedPoint(NamedTuple):
    """A scale for values as whole numbers, whose sums and comparisons are exact.

    The value 1 becomes ``2**exponent`` units. A power of two keeps whole numbers whole.
    """

    exponent: int

    @classmethod
    def for_gains(cls, gains: Floats) -> Self:
        """Return the scale on which the largest absolute gain uses all bits."""
        finite = np.where(np.isinf(gains), 0, gains)
        largest = max(float(gains.max(initial=0.0)), -float(finite.min(initial=0.0)))
        return cls(_BITS - int(np.frexp(largest)[1]))

    def to_integers(self, gains: Floats) -> Ints:
        """Round gains to units; minus infinity forbids a column, and extreme gains are clipped."""
        largest = 2.0 ** (_BITS + 4)
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(gains, self.exponent))
        integers = np.clip(scaled, -largest, largest).astype(np.int64)
        forbidden = np.isneginf(gains)
        if forbidden.any():
            integers[forbidden] = FORBIDDEN
        return integers

    def to_floats(self, units: Ints | int) -> Floats:
        """Convert units back to floats."""
        return np.ldexp(np.asarray(units, dtype=np.float64), -self.exponent)


def solve_integers(
    gains: Ints, limits: Ints, segment_of: Rows, tie_keys: TieKeys | None = None
) -> tuple[Ints, Ints]:
    """Solve an assignment problem whose gains are whole numbers; return columns and prices.

    `gains` over leaving a row alone have a column for each class. `limits` are whole numbers: of
    the classes, then of the segments, then of the total; prices come in the same order. The lowest
    tie key wins a tie; without keys, the first row does. Column 0 leaves a row alone; column j + 1
    stands for column j of the gains. The prices are the lowest that prove the optimum: first of the
    total, then of the classes, then of the segments; they do not depend on the keys.
    """
    n_classes, prices = gains.shape[1], np.zeros(limits.size, dtype=np.int64)
    columns = _best_columns(gains)
    if _keeps_all(columns, limits, segment_of, n_classes):  # then nothing has a price
        return columns, prices
    columns[:], usable = 0, _usable(gains, limits, segment_of)
    if tie_keys is not None:
        usable = usable[np.argsort(tie_keys(usable), kind="stable")]
    names, segment = np.unique(segment_of[usable], return_inverse=True)
    places = np.concatenate([np.arange(n_classes), n_classes + names, [limits.size - 1]])
    gain, own, segment = gains[usable], limits[places], segment.astype(np.int64)
    columns[usable], prices[places] = best_flow(gain, segment, own)
    return columns, prices


def _best_columns(gains: Ints) -> Ints:
    """Give each row its best class if it gains anything, whatever the limits are."""
    if not gains.size:
        return np.zeros(len(gains), dtype=np.int64)
    best = gains.argmax(axis=1)
    return np.where(gains[np.arange(len(gains)), best] > 0, best + 1, 0)


def _keeps_all(columns: Ints, limits: Ints, segment_of: Rows, n_classes: int) -> bool:
    in_class = np.bincount(columns, minlength=n_classes + 1)[1:]
    in_segment = np.bincount(segment_of[columns > 0], minlength=limits.size - n_classes - 1)
    loads = np.concatenate([in_class, in_segment, [np.count_nonzero(columns)]])
    return bool(np.all(loads <= limits))


def _usable(gains: Ints, limits: Ints, segment_of: Rows) -> Rows:
    """Return the rows that an optimum, or its prices, may need.

    With room for F flags in a segment, only its F best rows of each class can matter: any other row
    could be replaced by one of these that is left alone. One more row sets the price.
    """
    n_classes, usable = gains.shape[1], np.zeros(len(gains), dtype=bool)
    of_segments = limits[n_classes:-1]
    total = min(int(limits[-1]), int(limits[:n_classes].sum()), int(of_segments.sum()))
    ends = np.cumsum(np.bincount(segment_of, minlength=of_segments.size))
    parts = np.split(np.argsort(segment_of, kind="stable"), ends[:-1])
    for limit, rows in zip(of_segments, parts, strict=True):
        keep = int(min(limit, total)) + 1
        for gain in gains[rows].T:
            # A gain below 0 is never taken, and no row has to set a price of 0.
            lowest = 0 if keep > rows.size else max(0, np.partition(gain, -keep)[-keep])
            usable[rows[gain >= lowest]] = True
    return np.flatnonzero(usable)
