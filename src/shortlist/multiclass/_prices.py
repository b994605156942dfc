"""Prices and cuts, which decide about one item at a time: values minus prices, compared exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._core.arrays import Floats, Ints, Rows
from .._core.hashing import hash_ids
from ..assignment import FixedPoint
from ._values import JointSample

__all__ = ["NEVER", "Margins", "Prices", "to_units"]

#: A cut that no surplus exceeds.
NEVER = 2**62
# Hashed ties differ by up to this many units: about 1e-7 of the largest value.
_TIE_UNITS = 2.0**23


class Margins(NamedTuple):
    """The best class of each item, its lead over all other columns, and over leaving it alone."""

    best: Rows
    lead: Ints
    surplus: Ints


@dataclass(frozen=True)
class Prices:
    """Prices and cuts, in units of a fixed point.

    An item gets its best class if that class leads by more than its cut, and if the surplus of the
    item exceeds the cuts of its segment and of the total. Cuts are never negative. Therefore an
    item whose two best columns tie gets neither.
    """

    scale: FixedPoint
    class_prices: Ints
    segment_prices: Ints
    total_price: int
    class_cuts: Ints
    segment_cuts: Ints
    total_cut: int

    def margins(self, units: Ints, segments: Rows) -> Margins:
        """Compare the classes after prices; a class that may never be flagged does not compete."""
        net = units - self.class_prices - self.segment_prices[segments, np.newaxis]
        net -= self.total_price
        net[:, self.class_cuts == NEVER] = -NEVER
        best = net.argmax(axis=1)
        everyone = np.arange(len(net))
        surplus = net[everyone, best]
        net[everyone, best] = 0  # "leave it" takes the place of the best
        return Margins(best, surplus - net.max(axis=1), surplus)

    def choose(self, items: JointSample) -> tuple[Rows, Ints]:
        """Return the column of each item (0 to leave it, j + 1 for class j), and its surplus."""
        units = to_units(items.gains, self.scale, items.keys)
        best, lead, surplus = self.margins(units, items.segments)
        flagged = (lead > self.class_cuts[best]) & (surplus > self.total_cut)
        flagged &= surplus > self.segment_cuts[items.segments]
        return np.where(flagged, best + 1, 0), surplus


def to_units(gains: Floats, scale: FixedPoint, keys: Floats | None) -> Ints:
    """Round gains to units; tie keys make equal gains differ a little, by class and key."""
    units = scale.to_integers(gains)
    if keys is None:
        return units
    words = np.rint(keys * 2.0**53).astype(np.int64)
    for j in range(units.shape[1]):
        units[:, j] += np.rint((hash_ids(words, seed=j) - 0.5) * _TIE_UNITS).astype(np.int64)
    return units
