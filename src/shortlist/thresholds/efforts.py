r"""How many calibration items may lie above a threshold, where each takes an effort of its own.

An item that is flagged costs its effort, and any other nothing. The mean cost of a threshold,
:math:`E[e \cdot 1\{\text{flagged}\}]`, must stay within the budget per item, c. No item takes more
than E, the `max_effort`. Each function returns the largest k that keeps one promise, as those of
`_guarantees` do for counts; for equal efforts all of them are those rules, bit for bit.

Values enter the ranking only. A wrong value or probability costs value, never the promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._core.arrays import Doubles, Floats, Ints
from .._core.betting import walk_below
from .._core.ranking import TieKeys, rank
from .._core.work import Units, are_equal, check_max_effort, count_in_units
from ..capacity import Capacity, check_efforts_suit, exact
from .promise import Promise, promised_k, warn_too_few

__all__ = ["Budget", "budget_of", "effort_k"]


@dataclass(frozen=True)
class Budget:
    """A budget of effort per item, and what one item can take of it.

    Attributes
    ----------
    per_item : Fraction
        The budget for each item, flagged or not.
    max_effort : float
        The largest effort of any item, in future too.
    efforts : ndarray of shape (n_items,)
        Efforts of the calibration items.
    """

    per_item: Fraction
    max_effort: float
    efforts: Doubles

    @property
    def ratio(self) -> Fraction:
        """The share of items that may be flagged if each takes the largest effort."""
        return min(self.per_item / exact(self.max_effort), Fraction(1))


def budget_of(capacity: Capacity, efforts: Doubles | None, max_effort: Any) -> Budget:
    """Return the budget; efforts that differ need a bound."""
    check_efforts_suit(capacity, efforts)
    assert efforts is not None
    per_item = capacity.effort_per_item()
    if max_effort is not None:
        return Budget(per_item, check_max_effort(max_effort, efforts), efforts)
    if not are_equal(efforts):
        raise ValueError(
            "Efforts that differ need max_effort=..., the largest effort that any item can take, "
            f"in future too (the largest here is {efforts.max():g}). A promise about effort "
            "without such a bound is impossible: a single case could take everything. If work is "
            "cut off after some hours, that is the bound."
        )
    return Budget(per_item, float(efforts[0]), efforts)


def effort_k(scores: Floats, budget: Budget, promise: Promise, tie_keys: TieKeys | None) -> int:
    """Apply the rule of the guarantee, and warn when there are too few items for it."""
    equal = are_equal(budget.efforts) and budget.efforts[0] == budget.max_effort
    promise = replace(promise, ratio=budget.ratio)
    if promise.ratio == 0:
        return -1
    if equal or promise.guarantee in _BY_COUNT:
        return promised_k(scores.size, _counted(promise, budget))
    if promise.ratio == 1:
        return scores.size
    order, _ = rank(scores, tie_keys)
    k = _K[promise.guarantee](budget.efforts[order], budget, promise)
    if k < 0:
        warn_too_few(promise, _shortage(budget))
    return k


def _counted(promise: Promise, budget: Budget) -> Promise:
    """Return the promise about a number of flags that all take the largest effort."""
    per = promise.capacity.per
    if promise.guarantee != "next-batch" or per is None:
        return promise
    most = int(exact(promise.capacity.value) // exact(budget.max_effort))
    return replace(promise, capacity=Capacity.count(min(most, per), per=per))


def _shortage(budget: Budget) -> str:
    share = float(budget.max_effort / budget.per_item)
    return (
        f"needs more calibration items: one item can take {budget.max_effort:g}, which is the "
        f"budget of {share:g} items; got {budget.efforts.size}"
    )


def _plug_in(ranked: Doubles, budget: Budget, promise: Promise) -> int:
    """Spend at most the budget on the calibration items themselves."""
    n = ranked.size
    if _fitting(ranked, budget.per_item * (n + 1) - exact(budget.max_effort)) < 0:
        return -1
    return _fitting(ranked, budget.per_item * n)


def _expected(ranked: Doubles, budget: Budget, promise: Promise) -> int:
    r"""Keep the expected effort per item at most c, by conformal risk control.

    The cost :math:`L(\lambda) = e 1\{d > \lambda\}` falls in the threshold :math:`\lambda` and is
    at most E. The lowest threshold with :math:`(\sum_i L_i(\lambda) + E) / (n + 1) \le c` has an
    expected cost of at most c for the next item (Angelopoulos, Bates, Fisch, Lei and Schuster,
    ICLR 2024).
    """
    return _fitting(ranked, budget.per_item * (ranked.size + 1) - exact(budget.max_effort))


def _confident(ranked: Doubles, budget: Budget, promise: Promise) -> int:
    """Keep P(mean cost > c) at most the error, by betting.

    The mean cost falls in the threshold. Walking down from the top, the first threshold whose claim
    "the mean cost is at least c" cannot be refuted ends the walk: an error can only happen where
    the true mean cost crosses c, and there it has the allowed probability.
    """
    scaled = np.minimum(ranked / budget.max_effort, 1.0)
    return walk_below(scaled, ranked.size, float(budget.ratio), error=promise.error)


def _fitting(ranked: Doubles, amount: Fraction) -> int:
    """Return how many ranked items fit into an exact amount of work; -1 if it is negative."""
    if amount < 0:
        return -1
    units: Units = count_in_units(ranked)
    used: Ints = np.cumsum(units.efforts)
    room = min(units.count(amount), int(used[-1]))
    return int(np.searchsorted(used, room, side="right"))


_K: dict[str, Callable[[Doubles, Budget, Promise], int]] = {
    "plug-in": _plug_in,
    "expected": _expected,
    "confident": _confident,
}
#: These promise a number of flags, each of which may take the largest effort: what E times as many
#: flags may take is a bound of the work, and no better one is known that holds for every law.
_BY_COUNT = ("next-batch", "simultaneous")
