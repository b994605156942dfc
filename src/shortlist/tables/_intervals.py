"""The interval of a detection: one for each number, wherever it is shown."""

from __future__ import annotations

import numpy as np

from .._core.arrays import Mask, Rows
from .._core.binomial import Interval
from ..capacity import Capacity
from ..metrics import CapacityCurve, capacity_curve

__all__ = ["as_filled", "curve_of", "interval_of_flags", "interval_of_rule"]


def curve_of(is_rare: Mask, order: Rows) -> CapacityCurve:
    """Return the capacity curve of a ranking, in which ties are broken already.

    Parameters
    ----------
    is_rare : ndarray of bool
        Which rows are rare.
    order : ndarray of int
        Positions of the rows, the most suspicious first.

    Returns
    -------
    CapacityCurve
    """
    return capacity_curve(is_rare[order], -np.arange(order.size, dtype=np.float64), rare_label=True)


def interval_of_flags(curve: CapacityCurve, n_flagged: int, capacity: Capacity) -> Interval:
    """Return the interval of the detection when as large a share of new cases is flagged.

    Parameters
    ----------
    curve : CapacityCurve
        Of a ranking.
    n_flagged : int
        Number of flags.
    capacity : Capacity
        Its unit counts: a multiple means as many flags for each rare case.

    Returns
    -------
    Interval
    """
    return curve.interval_at(as_filled(n_flagged, curve.n_rare, capacity))


def as_filled(n_flagged: int, n_rare: int, capacity: Capacity) -> Capacity:
    """Return the capacity that some flags fill, in the unit of another one."""
    if capacity.kind == "multiple" and n_flagged > 0:
        return Capacity.multiple(n_flagged / n_rare)
    return Capacity.count(n_flagged)


def interval_of_rule(is_rare: Mask, order: Rows, flagged: Mask, capacity: Capacity) -> Interval:
    """Return the interval of the detection of any rule, when it flags as large a share.

    What the rule flags comes first in the ranking. Such a ranking is a score, too, for which the
    interval holds.

    Parameters
    ----------
    is_rare, flagged : ndarray of bool
        Which rows are rare, and which the rule flagged.
    order : ndarray of int
        Positions of the rows, the most suspicious first.
    capacity : Capacity
        Its unit counts, as in :func:`interval_of_flags`.

    Returns
    -------
    Interval
    """
    flagged_first = order[np.argsort(~flagged[order], kind="stable")]
    return interval_of_flags(curve_of(is_rare, flagged_first), int(flagged.sum()), capacity)
