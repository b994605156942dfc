"""Values as whole numbers, so that sums and comparisons are exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._flow import FORBIDDEN

__all__ = ["FixedPoint", "to_fixed_point"]

# The largest gain gets this many bits. Paths through up to 2**14 classes then fit into 64.
_BITS = 46


class FixedPoint(NamedTuple):
    """A scale: one stands for ``2**exponent`` units. A power of two keeps whole numbers whole."""

    exponent: int

    def to_integers(self, gains: NDArray[np.float64]) -> NDArray[np.int64]:
        """Round to units; minus infinity becomes `FORBIDDEN`, and far too large gains are cut."""
        largest = 2.0 ** (_BITS + 4)
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(gains, self.exponent))
        forbidden = np.isneginf(gains)
        scaled = np.clip(scaled, -largest, largest)
        if forbidden.any():
            scaled[forbidden] = 0
        integers = scaled.astype(np.int64)
        if forbidden.any():
            integers[forbidden] = FORBIDDEN
        return integers

    def to_floats(self, units: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """Return units as numbers again."""
        return np.ldexp(np.asarray(units, dtype=np.float64), -self.exponent)


def to_fixed_point(gains: NDArray[np.float64]) -> FixedPoint:
    """Return the scale on which the largest of the gains fills its bits."""
    largest = max(
        float(gains.max(initial=0.0)), -float(np.where(np.isinf(gains), 0, gains).min(initial=0.0))
    )
    return FixedPoint(_BITS - int(np.frexp(largest)[1]))
