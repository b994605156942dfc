"""Lists of most expected value: how they are chosen, and what they cost and bring."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Floats, Mask, Rows
from .._core.probing import (
    BY_SCORE,
    NOT_SELECTED,
    PROBE,
    Probed,
    draw_probes,
)
from .._core.ranking import TieKeys, flag_exactly, keys_within
from .._core.validation import check_count
from .._core.work import (
    Units,
    are_equal,
    check_probabilities,
    count_in_units,
    expected_worth,
    in_order_of_worth,
)
from ..capacity import Capacity
from ..exceptions import CapacityError
from ..worth import Worth
from ._knapsack import fill

__all__ = [
    "Selection",
    "check_capacity_for",
    "choose",
    "describe_list",
    "expected_gains",
    "with_probes",
]


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
    bound : float
        No list within the capacity has a larger expected value.
    gap : float
        How far the list may be from the best one: 0 if it is known to be the best, and otherwise
        ``bound - gain``. NaN where `gain` is.
    price : float
        Expected value of one more unit of capacity: of one more flag, or of one more unit of work.
    n_not_worth : int
        How many items were left out because they are not worth a slot.
    reason : {"full", "no more items", "the rest does not fit", "not worth more"}
        Why the list ends here. "full" means that all of the capacity is used. Capacity that is
        left, ``allowed - used``, stays empty.
    """

    flagged: Mask
    used: float
    allowed: float
    gain: float
    bound: float
    gap: float
    price: float
    n_not_worth: int
    reason: str
    probed: Probed | None = field(default=None, repr=False)

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

    def __str__(self) -> str:
        left = self.allowed - self.used
        empty = f", {left:g} left ({self.reason})" if left > 0 else ""
        return (
            f"{np.count_nonzero(self.flagged)} flags: {self.used:g} of {self.allowed:g} "
            f"used{empty}; expected value {self.gain:g}, at most {self.gap:g} below the best list"
        )


def with_probes(
    found: Selection,
    gains: Doubles,
    ranked_by: Floats,
    tie_keys: TieKeys,
    draw_keys: TieKeys,
    probe: Fraction,
    *,
    strata: Any = 1,
    groups: Rows | None = None,
) -> Selection:
    """Give a share of the slots of a list to items below the cut, drawn at random."""
    n_strata = check_count("strata", strata)
    drawn = draw_probes(
        found.flagged, ranked_by, tie_keys, draw_keys, probe, groups=groups, strata=n_strata
    )
    gain = float(gains[drawn.flagged].sum())
    return _changed(found, flagged=drawn.flagged, gain=gain, gap=found.bound - gain, probed=drawn)


def check_capacity_for(capacity: Capacity, efforts: Doubles | None) -> None:
    """Raise an error if a budget comes without efforts, or efforts come without a budget."""
    if capacity.kind == "effort" and efforts is None:
        raise CapacityError(
            f"{capacity!r} is a budget of work. Pass efforts=..., the work that each item takes, "
            "or limit the number of flags: Capacity.count(...)."
        )
    if (
        capacity.kind != "effort"
        and efforts is not None
        and not (are_equal(efforts) and efforts[:1].sum() == efforts[:1].size)
    ):
        raise CapacityError(
            f"efforts were given, but {capacity!r} limits the number of flags, whatever they take. "
            "Use Capacity.effort(480), say, for a budget in the unit of the efforts."
        )


def choose(
    scores: Floats,
    capacity: Capacity,
    tie_keys: TieKeys,
    values: Doubles | None,
    efforts: Doubles | None,
    worth: Worth | None,
    *,
    prevalence: Any = None,
) -> Selection:
    """Do the work of :func:`~shortlist.select` for checked arrays and any tie keys."""
    rows = None
    if worth is not None:
        suffices = worth.suffices(scores, values, efforts)
        rows = None if suffices.all() else np.flatnonzero(suffices)
    if rows is None:
        return _choose_all(scores, capacity, tie_keys, values, efforts, scores.size, prevalence)
    found = _choose_all(
        scores[rows],
        capacity,
        keys_within(tie_keys, rows),
        None if values is None else values[rows],
        None if efforts is None else efforts[rows],
        scores.size,
        prevalence,
    )
    flagged = np.zeros(scores.size, dtype=bool)
    flagged[rows] = found.flagged
    left_out = scores.size - rows.size
    reason = "not worth more" if found.reason == "no more items" else found.reason
    return _changed(found, flagged=flagged, n_not_worth=left_out, reason=reason)


def _changed(found: Selection, **changes: Any) -> Selection:
    return Selection(**{**found.__dict__, **changes})


def _choose_all(
    scores: Floats,
    capacity: Capacity,
    tie_keys: TieKeys,
    values: Doubles | None,
    efforts: Doubles | None,
    n_items: int,
    prevalence: Any,
) -> Selection:
    """Choose among items that are all worth it; the capacity refers to `n_items`."""
    if capacity.kind != "effort":
        k = capacity.max_flags(n_items, prevalence)
        return _choose_count(scores, k, tie_keys, values, float(k))
    assert efforts is not None
    units, allowed = count_in_units(efforts), capacity.max_effort(n_items)
    if are_equal(efforts):
        return _choose_equal(scores, tie_keys, values, units, allowed)
    return _choose_filled(scores, tie_keys, values, efforts, units, allowed)


def _choose_count(
    scores: Floats, k: int, tie_keys: TieKeys, values: Doubles | None, allowed: float
) -> Selection:
    ratios, lifted = in_order_of_worth(scores, values, None)
    flagged = flag_exactly(ratios, k, tie_keys, lifted=lifted)
    return describe_list(flagged, expected_gains(scores, values), allowed)


def _choose_equal(
    scores: Floats, tie_keys: TieKeys, values: Doubles | None, units: Units, allowed: Fraction
) -> Selection:
    """Choose as many items as fit, where all take the same effort."""
    each = int(units.efforts[0]) if scores.size else 1
    k = units.count(allowed) // each
    found = _choose_count(scores, k, tie_keys, values, float(min(k, scores.size)))
    used = units.unit * each * int(found.used)
    reason = "no more items" if found.used >= scores.size else "the rest does not fit"
    return _changed(
        found,
        used=float(used),
        allowed=float(allowed),
        price=found.price / float(units.unit * each),
        reason="full" if used == allowed else reason,
    )


def _choose_filled(
    scores: Floats,
    tie_keys: TieKeys,
    values: Doubles | None,
    efforts: Doubles,
    units: Units,
    allowed: Fraction,
) -> Selection:
    """Choose the list of most expected value, a knapsack."""
    check_probabilities(scores)
    gains, budget = expected_worth(scores, values, None), units.count(allowed)
    filled = fill(gains / efforts, gains, units.efforts, budget, tie_keys, solve=True)
    used = int(units.efforts[filled.chosen].sum())
    reason = "full" if used == budget else "the rest does not fit"
    return Selection(
        filled.chosen,
        used=float(units.unit * used),
        allowed=float(allowed),
        gain=filled.gain,
        bound=filled.bound,
        gap=0.0 if filled.optimal else filled.bound - filled.gain,
        price=filled.price / float(units.unit),
        n_not_worth=0,
        reason="no more items" if filled.chosen.all() and used < budget else reason,
    )


def expected_gains(scores: Floats, values: Doubles | None) -> Doubles:
    """Return the expected value of each item; NaN where scores are no probabilities."""
    if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
        return np.full(scores.size, np.nan)
    return np.asarray(expected_worth(scores, values, None), dtype=np.float64)


def describe_list(flagged: Mask, gains: Doubles, allowed: float) -> Selection:
    """Describe a list of the highest ratios: it is the best one."""
    used = int(np.count_nonzero(flagged))
    gain = float(gains[flagged].sum())
    rest = gains[~flagged]
    full = used == allowed
    return Selection(
        flagged,
        used=float(used),
        allowed=allowed,
        gain=gain,
        bound=gain,
        gap=0.0 * gain,
        price=float(rest.max()) if full and rest.size else 0.0,
        n_not_worth=0,
        reason="full" if full else "no more items",
    )
