"""Parts of the data that change places: to fit on and to choose on, with some left out of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core.arrays import Mask, Rows
from .._wrapping.fitting import hold_out
from ._evidence import stratified_folds

__all__ = ["Swap", "draw_swaps"]

_FEWEST_FOLDS = 3


class Swap(NamedTuple):
    """Pairs of rows, to fit on and to choose on, and rows that are in neither."""

    pairs: list[tuple[Rows, Rows]]
    left_out: Rows


def draw_swaps(
    is_rare: Mask, rows: Rows, n_swaps: int, rng: np.random.Generator, *, leave_out: bool
) -> list[Swap]:
    """Halve the rows some times, and let the halves change places.

    With `leave_out`, each swap leaves other rows out, a share of one in `n_swaps` or in three.

    Examples
    --------
    >>> is_rare, rows = np.arange(12) < 6, np.arange(12)
    >>> swaps = draw_swaps(is_rare, rows, 3, np.random.default_rng(0), leave_out=True)
    >>> [[len(fit), len(choose)] for fit, choose in swaps[0].pairs], len(swaps[0].left_out)
    ([[4, 4], [4, 4]], 4)
    >>> sorted(np.concatenate([swap.left_out for swap in swaps])) == rows.tolist()
    True
    """
    folds = np.full(rows.size, n_swaps)  # that of no swap
    if leave_out:
        folds = stratified_folds(is_rare[rows], max(n_swaps, _FEWEST_FOLDS), rng)
    swaps = []
    for number in range(n_swaps):
        rest = rows[folds != number]
        first, second = (rest[half] for half in hold_out(is_rare[rest].astype(np.intp), 0.5, rng))
        swaps.append(Swap([(first, second), (second, first)], rows[folds == number]))
    return swaps
