"""Values and efforts of items: checks, the order by value per effort, and exact sums of efforts.

An item that is rare is worth its value, and following it up takes its effort. For items that are
rare with probability p, the list that finds most value within a budget of effort is filled in the
order of value * p / effort. With equal values and equal efforts this is the order of p, and it is
then left to the scores themselves: answers are the same to the last bit.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Doubles, Floats, Ints, Mask
from .ranking import lift
from .validation import check_positive, check_scores, name_rows

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


def check_probabilities(scores: Floats) -> None:
    """Raise an error unless all scores lie between 0 and 1: values are weighed by probabilities."""
    bad = np.flatnonzero(~((scores >= 0) & (scores <= 1)))
    if bad.size:
        raise ValueError(
            "values, efforts and worth are weighed with the probability that an item is rare, and "
            f"scores must lie between 0 and 1; got {scores[bad[0]]:g} at {name_rows(bad)}. "
            "Calibrate the model with sklearn.calibration.CalibratedClassifierCV and pass the "
            "column of the rare label of its predict_proba."
        )


def are_equal(numbers: Doubles | None) -> bool:
    """Whether all items have the same number; so it is when none was given."""
    if numbers is None or numbers.size == 0:
        return True
    return bool(np.all(numbers[:_SOME] == numbers[0]) and np.all(numbers == numbers[0]))


def expected_worth(scores: Floats, values: Doubles | None, efforts: Doubles | None) -> Doubles:
    """Return the expected value per unit of effort; 1 stands for what was not given."""
    with np.errstate(over="ignore", under="ignore"):
        worth: Doubles = scores.astype(np.float64, copy=False)
        worth = worth if values is None else worth * values
        return worth if efforts is None else worth / efforts


def in_order_of_worth(
    scores: Floats, values: Doubles | None, efforts: Doubles | None
) -> tuple[Floats, bool]:
    """Return numbers in the order of value * p / effort, and whether they are products.

    Otherwise they are the scores themselves. Products that agree in their first ten digits are to
    count as tied: the same product may come out differently in its last digit.
    """
    values = None if are_equal(values) else values
    efforts = None if are_equal(efforts) else efforts
    if values is None and efforts is None:
        return scores, False
    check_probabilities(scores)
    return expected_worth(scores, values, efforts), True


def weigh(scores: Floats, values: Doubles | None, efforts: Doubles | None) -> Floats:
    """Return what is compared with a threshold: the scores, or what they are worth, lifted.

    Values and efforts of 1 leave the scores as they are. An item alone and a batch agree: nothing
    here depends on the other items.
    """
    if values is None and efforts is None:
        return scores
    worth = expected_worth(scores, values, efforts)
    unchanged = worth == scores
    if unchanged.all():
        return scores
    check_probabilities(scores)
    return np.where(unchanged, scores, lift(worth))


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
