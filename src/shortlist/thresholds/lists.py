"""The batch mode: today's list, exactly as long as the capacity, and what it costs and brings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows, TieKeys
from .._core.ids import check_ids, keys_by_id
from .._core.knapsack import fill
from .._core.probing import (
    BY_SCORE,
    NOT_SELECTED,
    PROBE,
    Probed,
    check_probe,
    draw_probes,
    expected_losses,
    probe_seed,
)
from .._core.ranking import (
    are_equal,
    check_probabilities,
    check_scores,
    expected_worth,
    flag_exactly,
    in_order_of_worth,
    keys_within,
    lift,
    rank,
)
from .._core.validation import check_number, check_seed
from .._core.work import check_efforts, check_values, count_in_units
from ..capacity import Capacity, check_capacity, check_efforts_suit
from ..exceptions import CapacityError
from ..worth import Worth, check_worth
from .precision import CommonScores


@dataclass(frozen=True)
class Selection:
    """A list with what it costs and brings; made by :func:`~shortlist.select`.

    Attributes
    ----------
    flagged : ndarray of bool, shape (n_items,)
        The items to follow up.
    used, allowed : float
        Flags, or their work if the capacity is an effort; and how much the capacity allows.
    gain : float
        Expected value of the list: the sum of value times probability. NaN where scores are not
        probabilities.
    gap : float
        How much more another list within the capacity may gain at most: 0 if this one is known to
        be the best. NaN where `gain` is.
    price : float
        Expected value of one more unit of capacity: of one more flag, or of one more unit of work.
    reason : {"full", "no more items", "the rest does not fit", "not worth more", "not precise"}
        Why the list ends here. "full" means that all of the capacity is used, and "not precise"
        that a longer list would not keep the promised precision. Capacity that is left,
        ``allowed - used``, stays empty.
    acted : ndarray of bool, shape (n_items,), or None
        The items to act on at once, besides the list; None if there is no such tier.
    """

    flagged: Mask
    used: float
    allowed: float
    gain: float
    gap: float
    price: float
    reason: str
    probed: Probed | None = field(default=None, repr=False)
    acted: Mask | None = field(default=None, repr=False)

    @property
    def tiers(self) -> NDArray[np.str_]:
        """What to do with each item: "act" at once, "review", or "pass"."""
        return tiers_of(self.flagged, self.acted)

    @property
    def is_probe(self) -> Mask:
        """The items that were drawn below the cut."""
        return np.zeros(self.flagged.size, bool) if self.probed is None else self.probed.is_probe

    @property
    def reasons(self) -> NDArray[np.str_]:
        """Why each item is on the list or not: "score", "probe" or "not selected"."""
        listed = np.where(self.flagged, BY_SCORE, NOT_SELECTED)
        return np.where(self.is_probe, PROBE, listed)

    @property
    def probabilities(self) -> Floats:
        """The probability with which each item was selected.

        It is 1 by score, and below the cut the share that was drawn, for drawn items and for all
        others.
        """
        return self.flagged * 1.0 if self.probed is None else self.probed.probabilities

    def among(self, rows: Rows, n_items: int) -> Selection:
        """Return this list of some `rows` as one of all items."""
        flagged = np.zeros(n_items, dtype=bool)
        flagged[rows[self.flagged]] = True
        return replace(self, flagged=flagged)

    def __str__(self) -> str:
        left = self.allowed - self.used
        empty = f", {left:g} left ({self.reason})" if left > 0 else ""
        return (
            f"{np.count_nonzero(self.flagged)} flags: {self.used:g} of {self.allowed:g} "
            f"used{empty}; expected value {self.gain:g}, at most {self.gap:g} below the best list"
        )


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
    common_scores: ArrayLike | None = None,
    act: float | None = None,
    probe: Any = 0,
    return_details: bool = False,
) -> Any:
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
        not given counts as 1) for which a slot is used; or ``Worth.precision(0.2)``, the share of
        the list that is rare, at least, on average over calibrations and batches. It needs
        `common_scores`. Slots that would not do stay empty.
    common_scores : array-like of shape (n_common,), default=None
        For ``Worth.precision(...)`` and `act`: scores of items that are known to be common, by the
        same model, which has not seen them. They must be like the common items of the batch.
    act : float, default=None
        Divide the batch into three tiers: items to act on at once, of which at least this share is
        rare on average, such as 0.9, however many they are; items to review, the most suspicious
        ones of the others within the capacity; and items to pass. Not with probes or a precision.
    probe : number, default=0
        Share of the slots for items below the cut, drawn at random; rounded down to whole items.
        Each has the same probability, and with `values` a higher one where more is at stake: up to
        four parts of equal expected loss, ``values * (scores + scores.mean())``, get as many probes
        each. The number of flags stays the same, and `probabilities` of the details says how likely
        each item was. Pass ids, or
        another `random_state` for each batch: without ids the same key draws the same positions in
        every batch. See :func:`~shortlist.feedback.estimate_missed`. Not with a budget of work.
    return_details : bool, default=False
        Return a :class:`~shortlist.thresholds.Selection` rather than the flags alone.

    Returns
    -------
    ndarray of bool, shape (n_items,)
        True for ``capacity.max_flags(n_items, prevalence)`` items, or for fewer if not more are
        worth it. With an effort, the work of the flagged items is at most the budget, in exact
        arithmetic. With `act`, an array of "act", "review" and "pass".
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
    >>> from shortlist import Capacity, Worth, select
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

    At least half of a list is to be rare. Of 99 common items, one is above 0.5, as is one of the
    1,000 items of a quiet day, and nothing is listed; of another day, 20 items are:

    >>> import numpy as np
    >>> common = np.append(np.linspace(0, 0.4, 98), 0.55)
    >>> quiet, busy = (np.append(np.linspace(0, 0.4, 1_000 - n), [0.9] * n) for n in (1, 20))
    >>> half = {"worth": Worth.precision(0.5), "common_scores": common}
    >>> [int(select(day, Capacity.count(50), **half).sum()) for day in (quiet, busy)]
    [0, 20]

    Act on the 20 items at once, and review two of the others:

    >>> tiers = select(busy, Capacity.count(2), common_scores=common[:-1], act=0.4)
    >>> [int((tiers == tier).sum()) for tier in ("act", "review", "pass")]
    [20, 2, 978]

    One of four slots is a probe, and each of the seven items below the cut is as likely to get it:

    >>> picked = select(range(10), Capacity.count(4), probe=0.25, return_details=True)
    >>> picked.reasons[picked.flagged].tolist()
    ['probe', 'score', 'score', 'score']
    >>> bool(picked.probabilities[0] == 1 / 7)
    True
    """
    scores = check_scores(scores)
    ids, seed, share = check_ids(ids, scores.size), check_seed(random_state), check_probe(probe)
    values, efforts = check_values(values, scores.size), check_efforts(efforts, scores.size)
    check_efforts_suit(check_capacity(capacity), efforts)
    items = Candidates(scores, keys_by_id(ids, seed=seed), values, efforts)
    worth = check_worth(worth)
    common = None if common_scores is None else _check_common(common_scores, worth, act)
    is_plain = worth is None and act is None and not (share or return_details)
    if is_plain and capacity.kind != "effort":
        return items.first(capacity.max_flags(scores.size, prevalence))
    if act is not None:  # tiers within the capacity of all items
        capacity = Capacity.count(capacity.max_flags(scores.size, prevalence))
    found = items.listed(
        lambda some, worth: some.choose(capacity, worth, prevalence),
        worth=worth,
        act=act,
        common=lambda: common,
        probe=share,
        draw_keys=keys_by_id(ids, seed=probe_seed(seed)),
    )
    if return_details:
        return found
    return found.flagged if act is None else found.tiers


@dataclass(frozen=True)
class Candidates:
    """Items of which a list is chosen; checked arrays, and None where nothing was given.

    With `lifted`, scores that agree in their first ten digits are tied.
    """

    scores: Floats
    tie_keys: TieKeys
    values: Doubles | None = None
    efforts: Doubles | None = None
    lifted: bool = False
    segments: Rows | None = None

    def within(self, rows: Rows) -> Candidates:
        """Return some of the items."""
        names = ("scores", "values", "efforts", "segments")
        known = {name: getattr(self, name) for name in names}
        some: Any = {n: None if column is None else column[rows] for n, column in known.items()}
        return replace(self, tie_keys=keys_within(self.tie_keys, rows), **some)

    def first(self, k: int) -> Mask:
        """Flag the `k` items of most expected value, whatever work they take."""
        ratios, are_products = in_order_of_worth(self.scores, self.values, None)
        return flag_exactly(ratios, k, self.tie_keys, lifted=self.lifted or are_products)

    def choose(
        self, capacity: Capacity, worth: Worth | None = None, prevalence: Any = None
    ) -> Selection:
        """Choose the list of most expected value, of items that are worth it."""
        n_items, some, rows = self.scores.size, self, np.zeros(0, np.intp)
        if worth is not None:
            suffices = worth.suffices(self.scores, self.values, self.efforts)
            if not suffices.all():
                rows = np.flatnonzero(suffices)
                some = self.within(rows)
        if capacity.kind == "effort":
            found = some._spend(capacity.max_effort(n_items))
        else:
            k = capacity.max_flags(n_items, prevalence)
            flagged = some.first(k)
            used = int(np.count_nonzero(flagged))
            price = some._next(flagged) if used == k else 0.0
            found = some._described(flagged, used, k, price=price)
        if some is self:
            return found
        reason = "not worth more" if found.reason == "no more items" else found.reason
        return replace(found.among(rows, n_items), reason=reason)

    def _spend(self, allowed: Fraction) -> Selection:
        """Choose the list of most expected value within a budget of work: a knapsack."""
        assert self.efforts is not None
        units, flagged, gap = count_in_units(self.efforts), np.zeros(self.scores.size, bool), 0.0
        budget = units.count(allowed)
        if are_equal(self.efforts):
            each = int(units.efforts[0]) if flagged.size else 1
            flagged = self.first(budget // each)
            price = self._next(flagged) / each
        else:
            check_probabilities(self.scores)
            fits: Any = slice(None)
            if units.efforts.max(initial=0) > budget:
                fits = np.flatnonzero(units.efforts <= budget)
            gains = self._gains[fits]
            keys = keys_within(self.tie_keys, np.arange(flagged.size)[fits])
            filled = fill(gains / self.efforts[fits], gains, units.efforts[fits], budget, keys)
            flagged[fits], gap, price = filled
        used, unit = units.unit * int(units.efforts[flagged].sum()), float(units.unit)
        return self._described(flagged, used, allowed, gap=gap, price=price / unit)

    def _described(
        self, flagged: Mask, used: Any, allowed: Any, *, gap: float = 0.0, price: float
    ) -> Selection:
        """Return a list with what it uses and brings, and why it ends."""
        gain = float(self._gains[flagged].sum())
        reason = "no more items" if flagged.all() else "the rest does not fit"
        reason = "full" if used == allowed else reason
        return Selection(
            flagged, float(used), float(allowed), gain, gap + 0.0 * gain, price, reason
        )

    def _next(self, flagged: Mask) -> float:
        """Return the expected value of the best item that is not on a list."""
        return float(self._gains[~flagged].max(initial=0.0))

    def listed(
        self,
        choose: Callable[[Candidates, Worth | None], Selection],
        *,
        worth: Worth | None,
        act: float | None,
        common: Callable[[], CommonScores | None],
        probe: Fraction,
        draw_keys: TieKeys,
    ) -> Selection:
        """Choose a list; shorten it to a precision, divide the items into tiers, or draw probes."""
        check_one_way(worth, act, probe)
        if act is not None:
            acted = self.shortened(self.choose(Capacity.fraction(1)), common(), act).flagged
            rows = np.flatnonzero(~acted)
            return replace(choose(self.within(rows), worth).among(rows, acted.size), acted=acted)
        if worth is not None and worth.kind == "precision":
            return self.shortened(choose(self, None), common(), worth.least)
        found = choose(self, worth)
        return self.with_probes(found, probe, draw_keys) if probe else found

    def shortened(
        self, found: Selection, common: CommonScores | None, precision: float
    ) -> Selection:
        """Return the longest part of a list, the most suspicious first, that keeps a precision."""
        if common is None or self.values is not None or self.efforts is not None:
            raise ValueError(
                f"Worth.precision({precision:g}) promises how much of a list is rare. It needs "
                "common_scores=..., scores of items that are known to be common, and no values or "
                f"efforts. For items that are rare with a probability of at least {precision:g} "
                f"each, by the model, use worth={precision:g}."
            )
        rows = np.flatnonzero(found.flagged)
        scores = lift(self.scores[rows]) if self.lifted else self.scores[rows]
        rows = rows[rank(scores, keys_within(self.tie_keys, rows))[0]]
        k = common.length(self.scores[rows], self.tie_keys(rows), self.scores.size, precision)
        flagged = np.zeros(self.scores.size, dtype=bool)
        flagged[rows[:k]] = True
        shorter = self._described(flagged, k, found.allowed, price=0.0)
        return replace(shorter, reason="not precise") if k < rows.size else found

    def with_probes(self, found: Selection, probe: Fraction, draw_keys: TieKeys) -> Selection:
        """Give a share of the slots of a list to items below the cut, drawn at random."""
        if self.efforts is not None:
            raise CapacityError(
                "probe=... is a share of the slots, and with efforts the capacity is a budget of "
                "work. Limit the number of flags, or leave probes out."
            )
        ranked_by, losses = in_order_of_worth(self.scores, self.values, None)[0], None
        if self.values is not None and not np.isnan(found.gain):  # scores are probabilities
            losses = expected_losses(self.scores, self.values)
        drawn = draw_probes(
            found.flagged,
            lift(ranked_by) if self.lifted else ranked_by,
            self.tie_keys,
            draw_keys,
            probe,
            groups=self.segments,
            losses=losses,
        )
        gain = float(self._gains[drawn.flagged].sum())
        gap = found.gain + found.gap - gain
        return replace(found, flagged=drawn.flagged, gain=gain, gap=gap, probed=drawn)

    @cached_property
    def _gains(self) -> Doubles:
        """The expected value of each item; NaN where scores are no probabilities."""
        if self.scores.size and not (self.scores.min() >= 0 and self.scores.max() <= 1):
            return np.full(self.scores.size, np.nan)
        return expected_worth(self.scores, self.values, None)


def check_one_way(worth: Worth | None, act: float | None, probe: Fraction) -> None:
    """Raise an error if a list is to be chosen in two ways besides its capacity."""
    check_act(act)
    by_precision = worth is not None and worth.kind == "precision"
    if by_precision + (act is not None) + bool(probe) > 1:
        raise ValueError(
            "Worth.precision(...), act=... and probe=... cannot be combined: each says which items "
            "of a list are chosen otherwise than by the capacity. Make a list for each."
        )


def check_act(act: Any) -> None:
    """Raise an error unless `act` is a share, or None."""
    if act is not None and not 0 < float(check_number("act", act)) <= 1:
        raise ValueError(
            f"act must lie above 0 and be at most 1: it is the share of the items to act on that "
            f"is rare, such as 0.9; got {act!r}."
        )


def _check_common(common_scores: ArrayLike, worth: Worth | None, act: float | None) -> CommonScores:
    """Return the scores of common items, with which new items count as tied."""
    if act is None and (worth is None or worth.kind != "precision"):
        raise ValueError(
            "common_scores were given without worth=Worth.precision(...) or act=..., and would not "
            "be used. Pass one of these, or leave the scores out."
        )
    known = check_scores(common_scores, name="common_scores")
    return CommonScores(known, np.zeros(known.size), lifted=False)


def tiers_of(flagged: Mask, acted: Mask | None) -> NDArray[np.str_]:
    """Return what to do with each item: "act" at once, "review", or "pass"."""
    tiers = np.where(flagged, "review", "pass")
    return tiers if acted is None else np.where(acted, "act", tiers)
