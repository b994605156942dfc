"""The batch mode: today's list, exactly as long as the capacity."""

from __future__ import annotations

from typing import Any, Literal, overload

from numpy.typing import ArrayLike

from .._core.arrays import Mask
from .._core.hashing import keys_by_id
from .._core.probing import (
    check_probe,
    probe_seed,
)
from .._core.ranking import flag_exactly
from .._core.validation import check_ids, check_scores, check_seed
from .._core.work import (
    check_efforts,
    check_values,
    in_order_of_worth,
)
from ..capacity import Capacity, check_capacity
from ..exceptions import CapacityError
from ..worth import check_worth
from ._choosing import Selection, check_capacity_for, choose, expected_gains, with_probes

__all__ = ["select"]


@overload
def select(
    scores: ArrayLike,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    ids: ArrayLike | None = None,
    random_state: Any = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
    worth: Any = None,
    probe: Any = 0,
    strata: int = 1,
    return_details: Literal[False] = False,
) -> Mask: ...


@overload
def select(
    scores: ArrayLike,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    ids: ArrayLike | None = None,
    random_state: Any = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
    worth: Any = None,
    probe: Any = 0,
    strata: int = 1,
    return_details: Literal[True],
) -> Selection: ...


def select(
    scores: ArrayLike,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    ids: ArrayLike | None = None,
    random_state: Any = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
    worth: Any = None,
    probe: Any = 0,
    strata: int = 1,
    return_details: bool = False,
) -> Mask | Selection:
    """Flag the most suspicious items of a batch: exactly as many as the capacity allows.

    A keyed hash of their ids puts items with equal scores in order. The answer does not depend on
    the row order, and a larger capacity only adds items.

    Where items differ in value, those with the highest ``values * scores`` are flagged; where they
    also take different amounts of work, the list with the highest expected value within the
    budget. Scores must then be probabilities.

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
    values : array-like of shape (n_items,), default=None
        What each item is worth if it is rare: finite, at least 0. `None` means that all are worth
        the same.
    efforts : array-like of shape (n_items,), default=None
        How much work each item takes: finite, greater than 0, in the unit of
        ``Capacity.effort(...)``, which needs them. An item larger than the whole budget is never
        flagged.
    worth : number or Worth, default=None
        The least expected value per unit of effort (``values * scores / efforts``, where what is
        not given counts as 1) for which a slot is used; or ``Worth.precision(0.2)``, the least
        probability. Below it slots stay empty.
    probe : number, default=0
        Share of the slots for items below the cut, drawn at random, each with the same
        probability; rounded down to whole items. The number of flags stays the same. Pass ids, or
        another `random_state` for each batch: without ids the same key draws the same positions in
        every batch. See :func:`~shortlist.feedback.estimate_missed`. Not with a budget of work.
    strata : int, default=1
        Parts of equal size, by score, of the items below the cut; equally many probes are drawn in
        each.
    return_details : bool, default=False
        Return a :class:`~shortlist.thresholds.Selection` rather than the flags alone.

    Returns
    -------
    ndarray of bool, shape (n_items,)
        True for ``capacity.max_flags(n_items, prevalence)`` items, or for fewer if not more are
        worth it. With an effort, the work of the flagged items is at most the budget, in exact
        arithmetic.
    Selection
        With ``return_details=True``: the flags, what they use and bring, how far from the best
        list they may be, and why capacity is left, if any is.

    Notes
    -----
    With efforts the batch is a 0/1 knapsack. It is filled in the order of value * probability /
    effort, and then the items in which a better list could differ are decided again, exactly. If
    these are too many, the list may be below the best one by at most `gap`, which is less than the
    value of one item. A larger budget may then exchange items instead of only adding some. Equal
    values and efforts leave everything to the scores.

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

    An hour is left. The likeliest case takes all of it; the other two are worth more together:

    >>> found = select(
    ...     [0.9, 0.5, 0.4],
    ...     Capacity.effort(60),
    ...     values=[100, 150, 120],
    ...     efforts=[60, 30, 30],
    ...     return_details=True,
    ... )
    >>> found.flagged.tolist(), found.gain, found.used
    ([False, True, True], 123.0, 60.0)

    On a quiet day, slots stay empty:

    >>> print(select([0.3, 0.01, 0.02], Capacity.count(2), worth=0.1, return_details=True))
    1 flags: 1 of 2 used, 1 left (not worth more); expected value 0.3, at most 0 below the best list

    One of four slots is a probe, and each of the seven items below the cut is as likely to get it:

    >>> picked = select(range(10), Capacity.count(4), probe=0.25, return_details=True)
    >>> picked.reasons[picked.flagged].tolist()
    ['probe', 'score', 'score', 'score']
    >>> bool(picked.probabilities[0] == 1 / 7)
    True
    """
    scores = check_scores(scores)
    ids, seed, share = check_ids(ids, scores.size), check_seed(random_state), check_probe(probe)
    keys = keys_by_id(ids, seed=seed)
    values, efforts = check_values(values, scores.size), check_efforts(efforts, scores.size)
    check_capacity_for(check_capacity(capacity), efforts)
    worth = check_worth(worth)
    if capacity.kind != "effort" and worth is None and not share and not return_details:
        ratios, lifted = in_order_of_worth(scores, values, None)
        k = capacity.max_flags(scores.size, prevalence)
        return flag_exactly(ratios, k, keys, lifted=lifted)
    found = choose(scores, capacity, keys, values, efforts, worth, prevalence=prevalence)
    if share:
        ratios, _ = in_order_of_worth(scores, values, None)
        draw_keys = keys_by_id(ids, seed=probe_seed(seed))
        if capacity.kind == "effort":
            raise CapacityError(
                f"probe=... is a share of the slots, and {capacity!r} is a budget of work. Limit "
                "the number of flags, or leave probes out."
            )
        gains = expected_gains(scores, values)
        found = with_probes(found, gains, ratios, keys, draw_keys, share, strata=strata)
    return found if return_details else found.flagged
