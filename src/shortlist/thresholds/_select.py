"""The batch mode: today's list, exactly as long as the capacity."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from .._core.hashing import keys_by_id
from .._core.probing import check_probe, probe_seed
from .._core.ranking import flag_exactly
from .._core.validation import check_ids, check_scores, check_seed
from ..capacity import Capacity, check_capacity
from ._selection import make_selection

__all__ = ["select"]


def select(
    scores: ArrayLike,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    ids: ArrayLike | None = None,
    random_state: Any = None,
    probe: Any = 0,
    strata: int = 1,
    details: bool = False,
) -> Any:
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

    probe : number, default=0
        Share of the slots for items below the cut, drawn at random, each with the same
        probability; rounded down to whole items. The number of flags stays the same. See
        :func:`~shortlist.feedback.estimate_missed`.
    strata : int, default=1
        Parts of equal size, by score, of the items below the cut; equally many probes are drawn in
        each.
    details : bool, default=False
        Whether to return the reason and the probability of every answer as well.

    Returns
    -------
    ndarray of bool, shape (n_items,), or Selection
        True for ``capacity.max_flags(n_items, prevalence)`` items; with `details`, a
        :class:`~shortlist.thresholds.Selection` that has this mask as `flagged`.

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

    One of four slots is a probe, and each of the seven items below the cut is as likely to get it:

    >>> picked = select(range(10), Capacity.count(4), probe=0.25, details=True)
    >>> picked.reasons[picked.flagged].tolist()
    ['probe', 'score', 'score', 'score']
    >>> picked.probabilities[0] == 1 / 7
    np.True_
    """
    scores = check_scores(scores)
    max_flags = check_capacity(capacity).max_flags(scores.size, prevalence)
    ids, seed = check_ids(ids, scores.size), check_seed(random_state)
    keys = keys_by_id(ids, seed=seed)
    flagged = flag_exactly(scores, max_flags, keys)
    if not details and not check_probe(probe):
        return flagged
    draw_keys = keys_by_id(ids, seed=probe_seed(seed))
    selection = make_selection(flagged, scores, keys, draw_keys, probe, strata=strata)
    return selection if details else selection.flagged
