"""The rule that decides about one item at a time: values minus prices, compared exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.hashing import hash_ids
from ..assignment._fixed_point import FixedPoint

__all__ = ["NEVER", "JointRule", "Margins", "to_units"]

Ints = NDArray[np.int64]

#: A cut that nothing lies above.
NEVER = 2**62
# Hashed ties differ by up to this many units: about 1e-7 of the largest value.
_TIE_UNITS = 2.0**23


class Margins(NamedTuple):
    """The best class of each item, its lead over all other columns, and over leaving it alone."""

    best: NDArray[np.intp]
    lead: Ints
    surplus: Ints


@dataclass(frozen=True)
class JointRule:
    """Prices and cuts, in units of a fixed point.

    An item gets its best class, if that leads by more than the cut of the class, and if its
    surplus lies above the cuts of its segment and of the total. Cuts are never below 0, so
    that a tie of two columns gets neither.
    """

    scale: FixedPoint
    class_prices: Ints
    segment_prices: Ints
    total_price: int
    class_cuts: Ints
    segment_cuts: Ints
    total_cut: int

    def margins(self, units: Ints, segments: NDArray[np.intp]) -> Margins:
        """Compare the classes after prices; a class that never may be flagged takes no part."""
        net = units - self.class_prices - self.segment_prices[segments, np.newaxis]
        net -= self.total_price
        net[:, self.class_cuts == NEVER] = -NEVER
        best = net.argmax(axis=1)
        everyone = np.arange(len(net))
        surplus = net[everyone, best]
        net[everyone, best] = 0  # in place of the best stands "leave it"
        return Margins(best, surplus - net.max(axis=1), surplus)

    def choose(self, units: Ints, segments: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the column of each item: 0 to leave it, j + 1 for class j."""
        best, lead, surplus = self.margins(units, segments)
        flagged = (lead > self.class_cuts[best]) & (surplus > self.total_cut)
        flagged &= surplus > self.segment_cuts[segments]
        return np.where(flagged, best + 1, 0)


def to_units(
    gains: NDArray[np.float64], scale: FixedPoint, keys: NDArray[np.float64] | None
) -> Ints:
    """Round gains to units; with tie keys, let equal gains differ a little, by class and key."""
    units = scale.to_integers(gains)
    if keys is None:
        return units
    words = np.rint(keys * 2.0**53).astype(np.int64)
    for j in range(units.shape[1]):
        units[:, j] += np.rint((hash_ids(words, seed=j) - 0.5) * _TIE_UNITS).astype(np.int64)
    return units
