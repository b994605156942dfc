"""Scores without the noise in their last digits.

Many models give an item slightly different scores in different batches: sums are computed in
another order, by several threads or by another kernel. If many items share the score at the
threshold, chance would then decide whether all of them are flagged. Scores are therefore lifted to
the next point of a grid that is far coarser than the noise and far finer than anything a model
knows (about ten digits in double precision). Grid points have odd last bits: numbers that models
often return (0, 1/2, 3/40) do not lie at the edge of a cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_calibrated", "lift"]

# For each precision: an integer of the same width, the number of bits given up, the odd remainder.
_GRIDS: dict[Any, tuple[Any, int, int]] = {
    np.dtype(np.float64): (np.int64, 16, 0x5EB3),
    np.dtype(np.float32): (np.int32, 6, 0x15),
}


def lift(scores: NDArray[np.floating]) -> NDArray[np.floating]:
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


def as_calibrated(scores: NDArray[np.floating], precision: np.dtype[Any]) -> NDArray[np.floating]:
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
