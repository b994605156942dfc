r"""The batch with efforts: most expected value within a budget, a 0/1 knapsack.

With gains :math:`g_i = v_i p_i` and efforts :math:`e_i`, items are taken in the order of
:math:`g_i / e_i`. The first one that does not fit is the *break item*; its ratio is the price
:math:`\lambda` of a unit of effort. Items that still fit are taken in the same order from the rest.
The relaxation, in which the break item may be taken in part, bounds what any list can gain: the
list loses at most the gain of the break item.

The bound also says which items the best list can differ in. To change the decision about item i
costs at least :math:`|g_i - \lambda e_i|` of the bound; if that is more than the gap, the decision
is right. What is left, the *core*, is small in practice and is solved exactly: by dynamic
programming if the budget left for it has few units, and else by branch and bound with the same
relaxation. HiGHS, which does this too, allows itself a tolerance and prints to the screen.

Efforts and budget are whole numbers of a unit, and no list exceeds the budget.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np

from .._core.arrays import Doubles, Floats, Ints, Mask, Rows
from .._core.ranking import TieKeys, cell_of, lift

__all__ = ["Filled", "fill"]

_SORT_BELOW = 1 << 17
_SAMPLE = 1 << 16
_MOST_CORE, _SMALL_CORE = 5_000, 300  # items, the latter for large batches
# Nodes of the tree, not seconds, because the answer must not depend on the machine; fewer where the
# batch is large and the gap small anyway. A node costs about as much as this many cells of a table.
_MOST_NODES, _FEWER_NODES, _MANY_ITEMS = 100_000, 1_000, 100_000
_CELLS_PER_NODE = 200
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Filled:
    """A list within a budget.

    Attributes
    ----------
    chosen : ndarray of bool
        The items taken.
    gain, bound : float
        Expected value of the list, and what no list within the budget can exceed.
    price : float
        Expected value of one more unit of effort (in units); 0 when everything fits.
    optimal : bool
        Whether no list within the budget gains more, apart from rounding.
    """

    chosen: Mask
    gain: float
    bound: float
    price: float
    optimal: bool


def fill(
    ratios: Floats, gains: Doubles, efforts: Ints, budget: int, tie_keys: TieKeys, *, solve: bool
) -> Filled:
    """Take items in the order of `ratios` while they fit; then, if asked for, solve the core.

    Ratios are ranked as lifted to their grid: what agrees in its first ten digits is tied.
    """
    fits = np.flatnonzero(efforts <= budget) if efforts.max(initial=0) > budget else None
    if fits is not None:
        return _among(fits, ratios, gains, efforts, budget, tie_keys, solve)
    chosen, first_out = _in_order(ratios, efforts, budget, tie_keys)
    gain = float(gains[chosen].sum())
    if first_out is None:
        return Filled(chosen, gain, gain, 0.0, True)
    price = float(gains[first_out] / efforts[first_out])
    surplus = gains - price * efforts
    # By duality every price gives a bound, and that of the break item the best one.
    bound = float(surplus[surplus > 0].sum() + price * budget)
    filled = Filled(chosen, gain, max(bound, gain), price, bound - gain <= _ROUNDING * bound)
    if filled.optimal or not solve:
        return filled
    core = np.flatnonzero(np.abs(surplus) <= bound - gain + _ROUNDING * bound)
    if core.size > (_MOST_CORE if gains.size < _MANY_ITEMS else _SMALL_CORE):
        return filled
    core = _ranked(core, ratios, tie_keys)
    return _with_core_solved(filled, core, gains, efforts, budget)


def _among(
    rows: Rows,
    ratios: Floats,
    gains: Doubles,
    efforts: Ints,
    budget: int,
    tie_keys: TieKeys,
    solve: bool,
) -> Filled:
    """Leave out the items that are larger than the budget by themselves."""
    found = fill(
        ratios[rows],
        gains[rows],
        efforts[rows],
        budget,
        lambda tied: tie_keys(rows[tied]),
        solve=solve,
    )
    chosen = np.zeros(efforts.size, dtype=bool)
    chosen[rows] = found.chosen
    return replace(found, chosen=chosen)


# --- in order ---------------------------------------------------------------------------------


def _in_order(
    ratios: Floats, efforts: Ints, budget: int, tie_keys: TieKeys
) -> tuple[Mask, int | None]:
    """Return the items taken in order, and the first one that did not fit."""
    low, high = _bracket(ratios, efforts, budget)
    chosen = ratios > high
    room = budget - int(efforts[chosen].sum())
    if room < 0:  # the sample was unlucky
        low, high = -np.inf, np.inf
        chosen, room = np.zeros(ratios.size, dtype=bool), budget
    first_out = None
    inside = np.flatnonzero((ratios > low) & (ratios <= high))
    for rows in (inside, None):
        if rows is None:  # below the bracket: all that still fits
            rows = np.flatnonzero((ratios <= low) & ((efforts <= room) | (first_out is None)))
        if rows.size == 0:
            continue
        rows = _ranked(rows, ratios, tie_keys)
        taken, out = _take(efforts[rows], room)
        chosen[rows[taken]] = True
        room -= int(efforts[rows[taken]].sum())
        if first_out is None and out is not None:
            first_out = int(rows[out])
    return chosen, first_out


def _ranked(rows: Rows, ratios: Floats, tie_keys: TieKeys) -> Rows:
    """Return rows in falling order of their ratios; tie keys put equal ones in order."""
    lifted = lift(ratios[rows])
    order = np.argsort(-lifted, kind="stable")
    ranked = lifted[order]
    equal = ranked[1:] == ranked[:-1]
    if not equal.any():
        return rows[order]
    tied = np.zeros(rows.size, dtype=bool)
    tied[1:] |= equal
    tied[:-1] |= equal
    keys = np.zeros(rows.size)
    keys[tied] = tie_keys(rows[order[tied]])
    return rows[order[np.lexsort((keys, -ranked))]]


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


def _bracket(ratios: Floats, efforts: Ints, budget: int) -> tuple[float, float]:
    """Guess two ratios between which the break item lies; for few items, everything does.

    A large batch is not sorted as a whole: a random sample tells about where the budget ends, six
    standard errors either way.
    """
    n = ratios.size
    if n <= _SORT_BELOW:
        return -np.inf, np.inf
    positions = np.random.default_rng(0).integers(n, size=_SAMPLE)
    order = np.argsort(-ratios[positions])
    used = np.cumsum(efforts[positions][order].astype(np.float64)) * (n / _SAMPLE)
    place = float(np.searchsorted(used, budget))
    # Standard error of the place: items in the sample before it, each with its own effort.
    own = efforts[positions].astype(np.float64)
    spread = math.sqrt(float(np.mean(own**2))) / max(float(own.mean()), 1e-300)
    margin = 6 * math.sqrt(place + 1) * spread + 6
    first, last = int(place - margin), int(place + margin)
    high = np.inf if first < 0 else _edge(ratios[positions[order[first]]])
    low = -np.inf if last >= _SAMPLE else _edge(ratios[positions[order[last]]])
    return low, high


def _edge(ratio: float) -> float:
    """Return the upper end of the cell of a ratio, within which ratios count as equal."""
    return float(cell_of(ratio, np.dtype(np.float64))[1])


# --- the core ---------------------------------------------------------------------------------


def _with_core_solved(
    filled: Filled, core: Rows, gains: Doubles, efforts: Ints, budget: int
) -> Filled:
    """Decide again about the items in which a better list can differ."""
    rest = filled.chosen.copy()
    rest[core] = False
    pains = _MOST_NODES if efforts.size < _MANY_ITEMS else _FEWER_NODES
    room = budget - int(efforts[rest].sum())
    best, optimal = _solve(gains[core], efforts[core], room, pains)
    if best is None or gains[core[best]].sum() <= gains[core[filled.chosen[core]]].sum():
        return replace(filled, optimal=optimal)
    rest[core[best]] = True
    gain = float(gains[rest].sum())
    return replace(filled, chosen=rest, gain=gain, bound=max(filled.bound, gain), optimal=optimal)


def _solve(gains: Doubles, efforts: Ints, room: int, pains: int) -> tuple[Mask | None, bool]:
    """Return the best list of a core that was found, and whether it is surely the best one."""
    divisor = int(np.gcd.reduce(efforts)) if efforts.size else 1
    width = room // divisor + 1
    if width * efforts.size <= _CELLS_PER_NODE * pains:
        return _by_dynamic_programming(gains, efforts // divisor, width), True
    return _by_branch_and_bound(gains, efforts, room, pains)


def _by_dynamic_programming(gains: Doubles, efforts: Ints, width: int) -> Mask:
    """Find the best list for every amount of work below `width`, item by item."""
    best = np.zeros(width)
    taken = np.zeros((efforts.size, width), dtype=bool)
    for item in range(efforts.size - 1, -1, -1):  # the first item decides last, and wins ties
        effort = int(efforts[item])
        if effort < width:
            with_item = best[: width - effort] + gains[item]
            better = with_item >= best[effort:]
            taken[item, effort:] = better
            best[effort:] = np.where(better, with_item, best[effort:])
    chosen, left = np.zeros(efforts.size, dtype=bool), width - 1
    for item in range(efforts.size):
        if taken[item, left]:
            chosen[item] = True
            left -= int(efforts[item])
    return chosen


def _by_branch_and_bound(
    gains: Doubles, efforts: Ints, room: int, most_nodes: int
) -> tuple[Mask | None, bool]:
    """Search lists in depth, and leave out what the relaxation shows to be no better.

    Items come in the order of gain per effort, and each is taken before it is left out. Returns the
    best list found, None if there is none, and whether the search came to its end.
    """
    used, gained = [0, *np.cumsum(efforts).tolist()], [0.0, *np.cumsum(gains).tolist()]
    worth, work, n = gains.tolist(), efforts.tolist(), efforts.size
    best, best_list = -1.0, None
    stack: list[tuple[int, int, float, tuple[int, ...]]] = [(0, room, 0.0, ())]
    while stack:
        if most_nodes == 0:
            return _mask(best_list, n), False
        most_nodes -= 1
        first, left, value, taken = stack.pop()
        stop = bisect_right(used, used[first] + left) - 1  # all from the first to here fit
        whole = value + gained[stop] - gained[first]
        if whole > best * (1 + _ROUNDING):
            best, best_list = whole, (*taken, *range(first, stop))
        if stop == n:
            continue
        part = (left - used[stop] + used[first]) * worth[stop] / work[stop]
        if whole + part <= best * (1 + _ROUNDING):
            continue
        stack.append((first + 1, left, value, taken))
        if work[first] <= left:
            stack.append((first + 1, left - work[first], value + worth[first], (*taken, first)))
    return _mask(best_list, n), True


def _mask(chosen: tuple[int, ...] | None, n: int) -> Mask | None:
    if chosen is None:
        return None
    mask = np.zeros(n, dtype=bool)
    mask[list(chosen)] = True
    return mask
