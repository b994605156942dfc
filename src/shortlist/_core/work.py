"""Values and efforts of items: checks, and exact sums of efforts."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Doubles, Floats, Ints, Mask
from .ranking import check_scores, lift
from .validation import check_positive, name_rows

_MOST_DIGITS = 9  # after the decimal point
_LARGEST_SUM = 2.0**62
_LARGEST_WHOLE = 2.0**53  # from here on, a product is rounded before it is looked at
_MANY, _ENOUGH = 10_000, Context(prec=50)
_SOME = 512
_GAPS = "Fill these gaps (with the median, say), or leave these items out."
_NO_VALUE = "An item that is worth nothing if it is rare has the value 0; give a loss its size."
_NO_EFFORT = "An item that takes no work needs no capacity: leave it out, or give it a little."


def check_values(values: ArrayLike | None, n_items: int) -> Doubles | None:
    """Return the value of each item, finite and at least 0; None stays None."""
    return _check_numbers("values", values, n_items, "at least 0", _NO_VALUE)


def check_efforts(efforts: ArrayLike | None, n_items: int) -> Doubles | None:
    """Return the effort of each item, finite and greater than 0; None stays None."""
    return _check_numbers("efforts", efforts, n_items, "greater than 0", _NO_EFFORT)


def _check_numbers(
    name: str, numbers: ArrayLike | None, n_items: int, needed: str, instead: str
) -> Doubles | None:
    if numbers is None:
        return None
    array = np.asarray(numbers)
    if array.shape != (n_items,):
        raise ValueError(
            f"{name} must hold one number for each of the {n_items} items; got shape {array.shape}."
        )
    array = check_scores(array, name=name, instead=_GAPS).astype(np.float64, copy=False)
    enough = array >= 0 if needed == "at least 0" else array > 0
    bad = np.flatnonzero(~(enough & (array < np.inf)))
    if bad.size:
        raise ValueError(
            f"{name} must be finite and {needed}; got {array[bad[0]]:g} at {name_rows(bad)}. "
            f"{instead}"
        )
    return array


def check_max_effort(max_effort: Any, efforts: Doubles) -> float:
    """Return the largest effort that any item can have; no item at hand may exceed it."""
    bound = check_positive("max_effort", max_effort)
    above = np.flatnonzero(efforts > bound)
    if above.size:
        raise ValueError(
            f"max_effort={bound:g} must be at least the effort of every item; got "
            f"{efforts[above[0]]:g} at {name_rows(above)}."
        )
    return bound


def reaches(numbers: Floats, least: float) -> Mask:
    """Whether each number is at least `least`, apart from noise in the last digits."""
    lowest = lift(np.array([least], dtype=np.float64))[0]
    return lift(numbers.astype(np.float64)) >= lowest


class Units(NamedTuple):
    """Efforts as whole numbers of a small unit, of which sums are exact."""

    efforts: Ints
    unit: Fraction

    def count(self, amount: Fraction) -> int:
        """Return how many units fit into an exact amount."""
        return amount // self.unit


def count_in_units(efforts: Doubles) -> Units:
    """Count efforts in a decimal unit: as they are written, or rounded up in their last digits.

    Three efforts of 0.1 fit into a budget of 0.3, whatever the other efforts are. The sum of all
    efforts has 18 digits; an effort with digits beyond is rounded up. Where very many efforts
    differ, and some have many digits, each is rounded up a little, which is much faster. A sum of
    units that is within a budget always means that the sum of the efforts is.
    """
    total = float(efforts.sum())
    for digits in range(_MOST_DIGITS + 1):
        scale = 10.0**digits
        if total * scale >= _LARGEST_SUM:
            break
        if _are_whole(efforts[:_SOME], scale) and _are_whole(efforts, scale):
            return Units(np.rint(efforts * scale).astype(np.int64), Fraction(1, 10**digits))
    digits = 18 - Decimal(total).adjusted() - 1
    unit, (each, places) = Fraction(10) ** -digits, np.unique(efforts, return_inverse=True)
    if each.size > _MANY:  # more than what the product and the decimal lose
        return Units(np.ceil(efforts * 10.0**digits * (1 + 2**-50)).astype(np.int64), unit)
    counts = [math.ceil(Decimal(str(e)).scaleb(digits, _ENOUGH)) for e in each.tolist()]
    return Units(np.array(counts, dtype=np.int64)[places], unit)


def _are_whole(numbers: Doubles, scale: float) -> bool:
    """Whether each number is the closest one to a whole number of 1 / scale, and so written."""
    if scale == 1:
        return bool(np.all(numbers == np.floor(numbers)))
    scaled = numbers * scale
    return bool(np.all((np.rint(scaled) / scale == numbers) & (scaled < _LARGEST_WHOLE)))
