"""Scores: what they may be, the ranking by score and tie key, cuts in it, and the grid of scores.

The tie keys themselves, hashes of ids, come from `ids.py`.

Items are ranked by score, the most suspicious first. Tied scores are either left in one block,
which is taken whole or not at all, or put in order by a *tie key*: a number in [0, 1) that
belongs to the item, the smaller the earlier. A :class:`Cut` is a place in that ranking.

An item that is rare is worth its value, and following it up takes its effort. For items that are
rare with probability p, the list that finds most value within a budget of effort is filled in the
order of value * p / effort. With equal values and equal efforts this is the order of p, and it is
then left to the scores themselves: answers are the same to the last bit.

Many models give an item slightly different scores in different batches: sums are computed in
another order, by several threads or by another kernel. If many items share the score at the
threshold, chance would then decide whether all of them are flagged. Scores are therefore lifted to
the next point of a grid that is far coarser than the noise and far finer than anything a model
knows (about ten digits in double precision). Grid points have odd last bits: numbers that models
often return (0, 1/2, 3/40) do not lie at the edge of a cell.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Doubles, Floats, Mask, Rows, TieKeys
from .ids import lots_of
from .validation import name_rows

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_NONE = np.empty(0, dtype=np.intp)
_SOME = 512


# --- what scores may be, and what they are worth -------------------------------------------------


def check_scores(
    scores: ArrayLike,
    *,
    name: str = "scores",
    rows: NDArray[np.intp] | None = None,
    instead: str = "Give these items a score, or leave them out before selecting.",
) -> NDArray[np.floating]:
    """Return `scores` as a one-dimensional float array without NaN; infinities are allowed.

    float32 and float64 are kept as they are, and large arrays are not copied. `rows` are the user's
    numbers of the items, if they are not simply 0, 1, 2, ..., and `instead` says what to do.
    """
    array = np.asarray(scores)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one number per item; got shape {array.shape}. "
            "For the output of predict_proba, pass the column of the rare label."
        )
    if array.dtype not in _FLOATS:
        array = _as_floats(array, name)
    # The least number is NaN if one is, and takes no memory. A product would be as quick, but the
    # threads of a linear algebra library keep spinning, and slow down the next model.
    has_nan = math.isnan(np.min(array, initial=np.inf))
    bad = np.flatnonzero(np.isnan(array)) if has_nan else _NONE
    if bad.size:
        named = name_rows(bad if rows is None else rows[bad])
        raise ValueError(
            f"{name} must not be NaN; found {bad.size} NaN of {array.size} at {named}. {instead}"
        )
    return array


def _as_floats(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    holds_text = array.dtype.kind == "O" and any(isinstance(value, str) for value in array)
    if array.dtype.kind in "USmMc" or holds_text:
        raise ValueError(f"{name} must be numbers; got dtype {array.dtype}.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers; got dtype {array.dtype}.") from error
    except OverflowError as error:
        raise ValueError(
            f"{name} must lie between -1.8e308 and 1.8e308, as 64-bit floats do; got a number "
            "beyond that. Scale them down."
        ) from error


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


# --- places in a ranking -------------------------------------------------------------------------


class Cut(NamedTuple):
    """A place in the ranking: before it, scores above `value` and ties with a key below `key`."""

    value: float
    key: float = 0.0


BEFORE_ALL = Cut(np.inf, 0.0)
AFTER_ALL = Cut(-np.inf, 1.0)


def cut_after(scores: Floats, k: int, tie_keys: TieKeys | None = None) -> Cut:
    """Find the cut at the (k + 1)-th item: at most `k` items come strictly before it.

    Without tie keys the block of scores tied with that item lies behind the cut as a whole.
    """
    if k < 0:
        return BEFORE_ALL
    if k >= scores.size:
        return AFTER_ALL
    value = nth_largest(scores, k)
    if tie_keys is None:
        return Cut(value)
    keys = np.sort(tie_keys(np.flatnonzero(scores == value)))
    return Cut(value, float(keys[k - np.count_nonzero(scores > np.float64(value))]))


def stricter(first: Cut, second: Cut) -> Cut:
    """Return the cut that comes earlier in the ranking."""
    return min(first, second, key=lambda cut: (-cut.value, cut.key))


def flag_above(scores: Floats, cut: Cut, tie_keys: TieKeys | None = None) -> Mask:
    """Flag the items strictly before `cut`; without tie keys, never any of its tied block."""
    flagged = scores > _rounded_up(cut.value, scores.dtype)
    if tie_keys is not None and cut.key > 0:
        # With a float64 scalar NumPy compares in float64, and rounds no score to the cut.
        tied = np.flatnonzero(scores == np.float64(cut.value))
        if tied.size:
            flagged[tied] = tie_keys(tied) < cut.key
    return flagged


def _rounded_up(value: float, precision: np.dtype[Any]) -> np.floating:
    """Return the smallest number of a precision that is not below a value.

    Rounded to single precision, a score may come to lie above a cut in double precision that it
    was equal to, but never above the rounded cut.
    """
    if precision == np.float64:
        return np.float64(value)
    with np.errstate(over="ignore"):
        rounded = precision.type(value)
    below = float(rounded) < value
    return np.nextafter(rounded, precision.type(np.inf)) if below else rounded


def keys_within(tie_keys: TieKeys, rows: Rows) -> TieKeys:
    """Return the tie keys of some of the items, which are then numbered from 0."""
    return lambda tied: tie_keys(rows[tied])


def flag_exactly(scores: Floats, k: int, tie_keys: TieKeys, *, lifted: bool = False) -> Mask:
    """Flag exactly `k` items, the first of the ranking; equal keys go by position.

    With `lifted`, the ranking is that of ``lift(scores)``, of which only a few are computed.
    """
    if k <= 0:
        return np.zeros(scores.size, dtype=bool)
    if k >= scores.size:
        return np.ones(scores.size, dtype=bool)
    value = nth_largest(scores, k - 1)
    lower, upper = cell_of(value, scores.dtype) if lifted else (value, value)
    flagged = scores > upper
    tied = np.flatnonzero((scores > lower) & (scores <= upper) if lifted else scores == value)
    missing = k - int(np.count_nonzero(flagged))
    if missing < tied.size:
        tied = tied[np.argsort(tie_keys(tied), kind="stable")[:missing]]
    flagged[tied] = True
    return flagged


def rank(scores: Floats, tie_keys: TieKeys | None = None) -> tuple[Rows, Rows]:
    """Return the ranking as positions, and the numbers of leading items at which it can be cut.

    A cut cannot fall between equal scores with equal keys, or without keys.
    """
    order, keys = np.argsort(-scores, kind="stable"), np.zeros(scores.size)
    tied = order[_tied_places(scores[order])]
    if tie_keys is not None and tied.size:
        keys[tied] = tie_keys(tied)
        order = np.lexsort((keys, -scores))
    is_end = _differs_from_last(scores[order], keys[order])[1:]
    return order, np.concatenate([[0], np.flatnonzero(is_end) + 1, [scores.size]])


def dense_places(scores: Floats, tie_keys: Doubles) -> Rows:
    """Return the place of each item in the ranking, from 1 on; items with equal keys share one."""
    order = np.lexsort((tie_keys, -scores))
    places = np.empty(order.size, dtype=np.intp)
    places[order] = np.cumsum(_differs_from_last(scores[order], tie_keys[order]))
    return places


def _differs_from_last(ranked: Floats, keys: Doubles) -> Mask:
    """Tell which items of a ranking can be told from the one before; the first always can."""
    is_next = np.ones(ranked.size, dtype=bool)
    is_next[1:] = (ranked[1:] != ranked[:-1]) | (keys[1:] != keys[:-1])
    return is_next


def tied_positions(scores: Floats) -> Rows:
    """Return the positions of all scores that occur more than once."""
    if not _tied_places(np.sort(scores)).size:  # many times as fast as to find out which is where
        return np.empty(0, dtype=np.intp)
    order = np.argsort(scores)
    return order[_tied_places(scores[order])]


def _tied_places(ranked: Floats) -> Rows:
    equals_next = ranked[1:] == ranked[:-1]
    tied = np.zeros(ranked.size, dtype=bool)
    tied[1:] |= equals_next
    tied[:-1] |= equals_next
    return np.flatnonzero(tied)


def nth_largest(scores: Floats, place: int) -> float:
    """Return the score in the given place, counting from 0 at the largest."""
    index = scores.size - 1 - place
    return float(np.partition(scores, index)[index])


# --- which scores count as equal -----------------------------------------------------------------

# For each precision: an integer of the same width, the number of bits given up, the odd remainder.
_GRIDS: dict[Any, tuple[Any, int, int]] = {
    np.dtype(np.float64): (np.int64, 16, 0x5EB3),
    np.dtype(np.float32): (np.int32, 6, 0x15),
}


def lift(scores: Floats) -> Floats:
    """Return for each score the smallest grid point that is not below it; infinities stay.

    For a grid point g, ``score > g`` exactly when ``lift(score) > g``.
    """
    integer, n_bits, remainder = _GRIDS[scores.dtype]
    bits = np.array(scores, order="C").view(integer)
    _flip_negative(bits)
    # Up to the next multiple of the step, less the remainder; computed in place, as all here is.
    bits += (1 << n_bits) - 1 - remainder
    bits &= -(1 << n_bits)
    bits |= remainder
    _flip_negative(bits)
    lifted = bits.view(scores.dtype)
    # Infinities stay, the lower one too, whose next grid point is finite.
    infinite = np.isinf(scores)
    beyond = ~np.isfinite(lifted)
    if beyond.any():  # as is what the next grid point lies beyond
        lifted[beyond] = np.inf
    if infinite.any():
        lifted[infinite] = scores[infinite]
    return lifted


def cell_of(value: float, precision: np.dtype[Any]) -> tuple[np.floating, np.floating]:
    """Return the grid points around a value: all above the first, up to the second, are lifted to
    the second.
    """
    integer, n_bits, _ = _GRIDS[precision]
    upper = lift(np.array([value], dtype=precision))
    bits = upper.view(integer).copy()
    _flip_negative(bits)
    bits -= 1 << n_bits
    _flip_negative(bits)
    lower = bits.view(precision)[0] if np.isfinite(upper[0]) else np.nextafter(upper[0], 0)
    return lower, upper[0]


class Cuts(NamedTuple):
    """A threshold between two places of a ranking.

    Items before the upper cut are flagged. Of those between the cuts, a share is, drawn by lot.
    """

    upper: Cut
    lower: Cut
    share: float

    def within(self, at_most: Cut) -> Cuts:
        """Return these cuts, none of them later than another one."""
        return self._replace(
            upper=stricter(self.upper, at_most), lower=stricter(self.lower, at_most)
        )

    def divide(self, scores: Floats, tie_keys: TieKeys | None) -> tuple[Mask, Mask]:
        """Return which items lie before the upper cut, and which between the cuts."""
        above = flag_above(scores, self.upper, tie_keys)
        if self.lower == self.upper:
            return above, np.zeros_like(above)
        return above, flag_above(scores, self.lower, tie_keys) & ~above

    def flag(self, scores: Floats, tie_keys: TieKeys | None) -> Mask:
        """Flag scores that are lifted to their grid."""
        flagged, between = self.divide(scores, tie_keys)
        if self.share and tie_keys is not None and between.any():
            flagged[between] = lots_of(tie_keys(np.flatnonzero(between))) < self.share
        return flagged


def as_calibrated(scores: Floats, precision: np.dtype[Any]) -> Floats:
    """Return scores in the precision of calibration: finer ones are rounded, coarser ones refused.

    In another precision, equal scores come to lie on the other side of a threshold among them, all
    at once.
    """
    if scores.dtype == precision:
        return scores
    if scores.dtype.itemsize < precision.itemsize:
        raise ValueError(
            f"The model gives {scores.dtype} scores for these items, but gave {precision} ones in "
            "calibration. Items on the threshold could then come out above it. Pass items of the "
            "type that the calibration items had, or recalibrate on items of this type."
        )
    with np.errstate(over="ignore"):
        return scores.astype(precision)


def _flip_negative(bits: NDArray[Any]) -> None:
    """Flip the magnitude of negative numbers: bits then rise with the scores. Twice undoes it."""
    largest = np.iinfo(bits.dtype).max
    bits ^= (bits >> (8 * bits.itemsize - 1)) & largest
