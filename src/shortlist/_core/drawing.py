"""A draw of at most a million calibration items, so that no model grows with its data."""

from __future__ import annotations

import numpy as np

from .arrays import Mask, Rows
from .hashing import hash_ids

__all__ = ["MOST_ITEMS", "is_drawn"]

#: Of more calibration items than this, some are drawn.
MOST_ITEMS = 1 << 20
_SEED = 0x5EED
_STANDARD_ERRORS = 6  # of the number of drawn items


def is_drawn(positions: Rows, n_items: int) -> Mask:
    """Tell which positions among `n_items` are drawn: all, or almost surely at most `MOST_ITEMS`.

    A hash of the position draws each item by itself, so blocks of items can be drawn one by one.
    Nothing about an item has a say, so what held for all items holds for those drawn. A hash of
    the item's values would draw equal items together.
    """
    if n_items <= MOST_ITEMS:
        return np.ones(positions.size, dtype=bool)
    most = MOST_ITEMS - _STANDARD_ERRORS * MOST_ITEMS**0.5
    return hash_ids(positions, seed=_SEED) < most / n_items
