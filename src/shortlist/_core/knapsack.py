r"""The batch with efforts: most expected value within a budget, a 0/1 knapsack.

With gains :math:`g_i = v_i p_i` and efforts :math:`e_i`, items are taken in the order of
:math:`g_i / e_i`. The first one that does not fit is the *break item*; its ratio is the price
:math:`\lambda` of a unit of effort. Items that still fit are taken in the same order from the rest.
The relaxation, in which the break item may be taken in part, bounds what any list can gain: the
list loses at most the gain of the break item.

The bound also says which items the best list can differ in. To change the decision about item i
costs at least :math:`|g_i - \lambda e_i|` of the bound; if that is more than the gap, the decision
is right. What is left, the *core*, is small in practice and is solved exactly, by dynamic
programming over lists that no other list dominates. HiGHS, which solves it too, allows itself a
tolerance and prints to the screen.

Efforts and budget are whole numbers of a unit, and no list exceeds the budget.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arrays import Doubles, Floats, Ints, Mask, Rows, TieKeys
from .ranking import keys_within, lift, rank

# Items and lists, not seconds: the answer must not depend on the machine.
_MOST_CORE, _MOST_LISTS = 5_000, 1_000_000
_ROUNDING = 1e-12


class Filled(NamedTuple):
    """The items taken, what another list may gain more, and the value of one more unit of effort.

    The gap is 0 if no list within the budget gains more, apart from rounding.
    """

    chosen: Mask
    gap: float
    price: float


def fill(ratios: Floats, gains: Doubles, efforts: Ints, budget: int, tie_keys: TieKeys) -> Filled:
    """Take items in the order of `ratios` while they fit, and solve the core.

    Ratios are ranked as lifted to their grid: what agrees in its first ten digits is tied. No item
    may be larger than the budget.
    """
    rows, chosen = _ranked(np.arange(ratios.size), ratios, tie_keys), np.zeros(ratios.size, bool)
    taken, out = _take(efforts[rows], budget)
    chosen[rows[taken]] = True
    if out is None:
        return Filled(chosen, 0.0, 0.0)
    first_out = rows[out]
    price = float(gains[first_out] / efforts[first_out])
    surplus = gains - price * efforts
    # By duality every price gives a bound, and that of the break item the best one.
    bound = float(surplus[surplus > 0].sum() + price * budget)
    gap = bound - float(gains[chosen].sum())
    if gap <= _ROUNDING * bound:
        return Filled(chosen, 0.0, price)
    core = np.flatnonzero(np.abs(surplus) <= gap + _ROUNDING * bound)
    if core.size > _MOST_CORE:
        return Filled(chosen, gap, price)
    chosen, optimal = _solved(chosen, _ranked(core, ratios, tie_keys), gains, efforts, budget)
    return Filled(chosen, 0.0 if optimal else max(bound - float(gains[chosen].sum()), 0.0), price)


# --- in order ---------------------------------------------------------------------------------


def _ranked(rows: Rows, ratios: Floats, tie_keys: TieKeys) -> Rows:
    """Return rows in falling order of their ratios; tie keys put equal ones in order."""
    return rows[rank(lift(ratios[rows]), keys_within(tie_keys, rows))[0]]


def _take(efforts: Ints, room: int) -> tuple[Rows, int | None]:
    """Take ranked items while they fit, skipping what does not; return them and the first out."""
    places, taken, first_out = np.arange(efforts.size), [], None
    while places.size:
        used = np.cumsum(efforts[places])
        n = int(np.searchsorted(used, room, side="right"))
        taken.append(places[:n])
        room -= int(used[n - 1]) if n else 0
        if n < places.size and first_out is None:
            first_out = int(places[n])
        places = places[n:][efforts[places[n:]] <= room]
    return np.concatenate([np.empty(0, np.intp), *taken]), first_out


# --- the core ---------------------------------------------------------------------------------


def _solved(
    chosen: Mask, core: Rows, gains: Doubles, efforts: Ints, budget: int
) -> tuple[Mask, bool]:
    """Decide again about the items in which a better list can differ; tell if none is better."""
    rest = chosen.copy()
    rest[core] = False
    room = budget - int(efforts[rest].sum())
    least = float(gains[core[chosen[core]]].sum())
    most = _MOST_LISTS // core.size
    better, optimal = _better_list(gains[core], efforts[core], room, least, most)
    if better is None:
        return chosen, optimal
    rest[core[better]] = True
    return rest, optimal


def _better_list(
    gains: Doubles, efforts: Ints, room: int, least: float, most: int
) -> tuple[Mask | None, bool]:
    """Return the best list that gains more than `least`, if any, and whether none gains more.

    Items come in the order of gain per effort, and are decided about from the last to the first:
    the first one wins ties. After each item, a list is kept if no other one with as little work
    gains as much, and if it can still become the best one: with the items to come, of which one
    may be taken in part, it gains more than `least`, and as much as any list does with the whole
    ones. If more than `most` lists are left, those that can gain most are kept.
    """
    used, gained = (np.concatenate([[0], np.cumsum(each)]) for each in (efforts, gains))
    work, worth, least, optimal = np.zeros(1, np.int64), np.zeros(1), least * (1 + _ROUNDING), True
    history = []
    for item in range(efforts.size - 1, -1, -1):
        fits = np.flatnonzero(work + efforts[item] <= room)
        origin = np.concatenate([fits, np.arange(work.size)])
        is_taken = np.arange(origin.size) < fits.size
        work = work[origin] + np.where(is_taken, efforts[item], 0)
        worth = worth[origin] + np.where(is_taken, gains[item], 0.0)
        kept = _undominated(work, worth)
        left, before, gain_before = room - work[kept], used[: item + 1], gained[: item + 1]
        whole = worth[kept] + gain_before[np.searchsorted(before, left, side="right") - 1]
        possible = worth[kept] + np.interp(left, before, gain_before)
        least = max(least, float(whole.max(initial=0.0)) * (1 - _ROUNDING))
        promising = np.flatnonzero(possible >= least)
        if promising.size > most:
            optimal = False
            promising = np.sort(promising[np.argsort(-possible[promising], kind="stable")[:most]])
        kept = kept[promising]
        history.append((origin[kept], is_taken[kept]))
        work, worth = work[kept], worth[kept]
    return (_traced(history, int(np.argmax(worth))) if worth.size else None), optimal


def _undominated(work: Ints, worth: Doubles) -> Rows:
    """Return the lists that no other one with as little work reaches, in the order of work."""
    order = np.lexsort((-worth, work))
    best_before = np.maximum.accumulate(np.concatenate([[-1.0], worth[order[:-1]]]))
    return order[worth[order] > best_before]


def _traced(history: list[tuple[Rows, Mask]], place: int) -> Mask:
    """Return the items of a list, followed back through what was decided about each."""
    chosen = []
    for origin, is_taken in reversed(history):
        chosen.append(is_taken[place])
        place = origin[place]
    return np.array(chosen)
