"""Groups of items that belong together, such as the rows of one customer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Rows
from .ids import is_missing, plain_id, values_of
from .validation import name_rows

__all__ = ["number_groups"]

_SORTED_BY_NUMPY = "biuUS"


def number_groups(groups: ArrayLike | None, n_items: int) -> Rows | None:
    """Number the groups in the order in which they first occur.

    None if there are none, or if every item is a group of its own: that is the same.
    """
    if groups is None:
        return None
    values = values_of(groups)
    if values.shape != (n_items,):
        raise ValueError(
            f"groups must name one group for each of the {n_items} items; got shape {values.shape}."
        )
    codes = _codes(values)
    return None if codes.size == 0 or codes.max() == codes.size - 1 else codes


def _codes(values: NDArray[Any]) -> Rows:
    if values.dtype.kind in _SORTED_BY_NUMPY:
        _, first, sorted_codes = np.unique(values, return_index=True, return_inverse=True)
        numbers = np.empty(first.size, dtype=np.intp)
        numbers[np.argsort(first)] = np.arange(first.size)
        return numbers[sorted_codes]
    listed = values.tolist() if values.dtype.kind not in "mM" else list(values)
    missing = np.flatnonzero([is_missing(value) for value in listed])
    if missing.size:
        raise ValueError(
            f"groups must not be missing, as at {name_rows(missing)}: items without a group might "
            "belong together. Leave them out, or give each a group of its own."
        )
    numbers_of: dict[Any, int] = {}
    return np.array([numbers_of.setdefault(plain_id(value), len(numbers_of)) for value in listed])
