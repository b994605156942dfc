"""The batch mode: today's list, exactly as long as the capacity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.hashing import keys_by_id
from .._core.ranking import flag_exactly
from .._core.validation import check_ids, check_scores, check_seed
from ..capacity import Capacity, check_capacity

__all__ = ["select"]


def select(
    scores: ArrayLike,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    ids: ArrayLike | None = None,
    random_state: Any = None,
) -> NDArray[np.bool_]:
    """Flag the most suspicious items of a batch: exactly as many as the capacity allows.

    A keyed hash of their ids puts items with equal scores in order. The answer does not depend on
    the row order, and a larger capacity only adds items.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        Higher is more suspicious. NaN is an error.
    capacity : Capacity
        How much can be followed up.
    prevalence : number, default=None
        Share of rare items, needed when the capacity is a multiple of it.
    ids : array-like of shape (n_items,), default=None
        Identifiers that break ties; row positions when absent.
    random_state : int, RandomState instance or None, default=None
        Key of the hash: another key draws other items from a tied block. `None` is a fixed key.

    Returns
    -------
    ndarray of bool, shape (n_items,)
        True for ``capacity.max_flags(n_items, prevalence)`` items.

    Examples
    --------
    >>> from shortlist import Capacity, select
    >>> select([0.2, 0.9, 0.4, 0.7], Capacity.count(2)).tolist()
    [False, True, False, True]

    Four items share the last place; their ids decide, in any row order:

    >>> select([1, 1, 1, 1], Capacity.count(1), ids=["ann", "bob", "eve", "joe"]).tolist()
    [False, False, True, False]
    >>> select([1, 1, 1, 1], Capacity.count(1), ids=["joe", "eve", "bob", "ann"]).tolist()
    [False, True, False, False]
    """
    scores = check_scores(scores)
    max_flags = check_capacity(capacity).max_flags(scores.size, prevalence)
    keys = keys_by_id(check_ids(ids, scores.size), seed=check_seed(random_state))
    return flag_exactly(scores, max_flags, keys)
