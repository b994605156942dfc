"""The exact solution in whole numbers: a scale for them, the rows that matter, flow and prices.

The optimum is a flow: successive best paths through a small graph, compiled.
A flag is a unit of flow from a segment through a row into a class. Rows are not nodes of the graph.
Its nodes are the segments, with the rows that are left alone, followed by the classes, with those
that are flagged. A row moves from a segment to a class, from a class to another one, or back to its
segment; between two nodes, only the best row that can move matters.

Each step finds the path of moves with the largest gain from a segment with room to a class with
room (Bellman and Ford), and makes these moves. The steps end when no path gains anything, or at the
total. Gains are integers. Therefore rounding cannot create a cycle of moves that seems to gain. The
gains of successive paths never rise. Therefore stopping early is optimal for the total.
"""

from __future__ import annotations

from collections import namedtuple
from heapq import heappop, heappush
from typing import NamedTuple, Self

import numpy as np
from numba import njit

from .._core.arrays import Floats, Ints, Rows, TieKeys

# The largest gain gets this many bits. Paths through up to 2**14 classes then fit into 64.
_BITS = 46


class FixedPoint(NamedTuple):
    """A scale for values as whole numbers, whose sums and comparisons are exact.

    The value 1 becomes ``2**exponent`` units. A power of two keeps whole numbers whole.
    """

    exponent: int

    @classmethod
    def for_gains(cls, gains: Floats) -> Self:
        """Return the scale on which the largest absolute gain uses all bits."""
        finite = np.where(np.isinf(gains), 0, gains)
        largest = max(float(gains.max(initial=0.0)), -float(finite.min(initial=0.0)))
        return cls(_BITS - int(np.frexp(largest)[1]))

    def to_integers(self, gains: Floats) -> Ints:
        """Round gains to units; minus infinity forbids a column, and extreme gains are clipped."""
        largest = 2.0 ** (_BITS + 4)
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(gains, self.exponent))
        integers = np.clip(scaled, -largest, largest).astype(np.int64)
        forbidden = np.isneginf(gains)
        if forbidden.any():
            integers[forbidden] = FORBIDDEN
        return integers

    def to_floats(self, units: Ints | int) -> Floats:
        """Convert units back to floats."""
        return np.ldexp(np.asarray(units, dtype=np.float64), -self.exponent)


def solve_integers(
    gains: Ints, limits: Ints, segment_of: Rows, tie_keys: TieKeys | None = None
) -> tuple[Ints, Ints]:
    """Solve an assignment problem whose gains are whole numbers; return columns and prices.

    `gains` over leaving a row alone have a column for each class. `limits` are whole numbers: of
    the classes, then of the segments, then of the total; prices come in the same order. The lowest
    tie key wins a tie; without keys, the first row does. Column 0 leaves a row alone; column j + 1
    stands for column j of the gains. The prices are the lowest that prove the optimum: first of the
    total, then of the classes, then of the segments; they do not depend on the keys.
    """
    n_classes, prices = gains.shape[1], np.zeros(limits.size, dtype=np.int64)
    columns = _best_columns(gains)
    if _keeps_all(columns, limits, segment_of, n_classes):  # then nothing has a price
        return columns, prices
    columns[:], usable = 0, _usable(gains, limits, segment_of)
    if tie_keys is not None:
        usable = usable[np.argsort(tie_keys(usable), kind="stable")]
    names, segment = np.unique(segment_of[usable], return_inverse=True)
    places = np.concatenate([np.arange(n_classes), n_classes + names, [limits.size - 1]])
    gain, own, segment = gains[usable], limits[places], segment.astype(np.int64)
    columns[usable], prices[places] = best_flow(gain, segment, own)
    return columns, prices


def _best_columns(gains: Ints) -> Ints:
    """Give each row its best class if it gains anything, whatever the limits are."""
    if not gains.size:
        return np.zeros(len(gains), dtype=np.int64)
    best = gains.argmax(axis=1)
    return np.where(gains[np.arange(len(gains)), best] > 0, best + 1, 0)


def _keeps_all(columns: Ints, limits: Ints, segment_of: Rows, n_classes: int) -> bool:
    in_class = np.bincount(columns, minlength=n_classes + 1)[1:]
    in_segment = np.bincount(segment_of[columns > 0], minlength=limits.size - n_classes - 1)
    loads = np.concatenate([in_class, in_segment, [np.count_nonzero(columns)]])
    return bool(np.all(loads <= limits))


def _usable(gains: Ints, limits: Ints, segment_of: Rows) -> Rows:
    """Return the rows that an optimum, or its prices, may need.

    With room for F flags in a segment, only its F best rows of each class can matter: any other row
    could be replaced by one of these that is left alone. One more row sets the price.
    """
    n_classes, usable = gains.shape[1], np.zeros(len(gains), dtype=bool)
    of_segments = limits[n_classes:-1]
    total = min(int(limits[-1]), int(limits[:n_classes].sum()), int(of_segments.sum()))
    ends = np.cumsum(np.bincount(segment_of, minlength=of_segments.size))
    parts = np.split(np.argsort(segment_of, kind="stable"), ends[:-1])
    for limit, rows in zip(of_segments, parts, strict=True):
        keep = int(min(limit, total)) + 1
        for gain in gains[rows].T:
            # A gain below 0 is never taken, and no row has to set a price of 0.
            lowest = 0 if keep > rows.size else max(0, np.partition(gain, -keep)[-keep])
            usable[rows[gain >= lowest]] = True
    return np.flatnonzero(usable)


#: Stands for minus infinity among gains and distances.
FORBIDDEN = -(2**62)

#: Over rows: `gain` (by class), `segment`, `chosen` column (0: left alone). Over moves: the `best`
#: row, or -1.
_State = namedtuple("_State", "gain segment chosen best n_segments")


@njit(cache=True)
def best_flow(gain, segment, limits):
    """Return the chosen column of each row (0: left alone), and prices that prove the optimum.

    Of equal gains, the first row wins. Limits and prices are those of the classes, of the segments
    and of the total, in this order.
    """
    n_classes, total = gain.shape[1], limits[-1]
    n_segments = limits.size - n_classes - 1
    limit = np.concatenate((limits[n_classes:-1], limits[:n_classes]))
    load = np.zeros(limit.size, np.int64)
    # A heap of rows for each move: minus what they gain, and the row, the smallest on top. Pairs of
    # rows that have moved meanwhile are dropped on the way.
    nobody = (np.int64(0), np.int64(0))
    n_moves = n_classes * (2 * n_segments + n_classes)
    heaps = [[nobody for _ in range(0)] for _ in range(n_moves)]
    chosen, best = np.zeros(segment.size, np.int64), np.full(n_moves, -1, np.int64)
    state, n_flagged = _State(gain, segment, chosen, best, n_segments), 0
    for row in range(segment.size):
        _offer(state, heaps, row)
    while True:
        has_room = load < limit
        end, gained, via = _best_path(state, has_room)
        if n_flagged >= total or end < 0:
            break
        load[end] += 1
        load[_make_moves(state, heaps, end, via)] += 1
        n_flagged += 1
    # The price of the total is what one more flag would gain.
    total_price = gained if n_flagged >= total else 0
    return state.chosen, _lowest_prices(state, has_room, total_price)


@njit(cache=True)
def _node(state, row):
    """Return where a row is: in its segment, or in a class."""
    column = state.chosen[row]
    return state.n_segments + column - 1 if column else state.segment[row]


@njit(cache=True)
def _worth(gain, row, node, n_segments):
    """Return what a row gains in a class; in a segment it is left alone."""
    return gain[row, node - n_segments] if node >= n_segments else 0


@njit(cache=True)
def _number(source, target, n_segments, n_classes):
    """Return the number of a move: from segments, then to segments, then between classes."""
    if source < n_segments:
        return source * n_classes + target - n_segments
    if target < n_segments:
        return n_segments * (n_classes + source - n_segments) + target
    return n_classes * (n_segments + source) + target - n_segments


@njit(cache=True)
def _offer(state, heaps, row):
    """Add a row to the heaps of all moves that it can make; it is never flagged for no gain."""
    gain, n_segments, n_classes = state.gain, state.n_segments, state.gain.shape[1]
    here = _node(state, row)
    worth = _worth(gain, row, here, n_segments)
    for k in range(n_classes + 1):
        target = n_segments + k if k < n_classes else state.segment[row]
        there = _worth(gain, row, target, n_segments)
        if target != here and (there > 0 or k == n_classes):
            move = _number(here, target, n_segments, n_classes)
            heappush(heaps[move], (worth - there, row))
            state.best[move] = _top(state, heaps[move], here)


@njit(cache=True)
def _top(state, heap, source):
    """Return the best row of a heap that is still there, or -1; drop outdated entries."""
    while len(heap) and _node(state, heap[0][1]) != source:
        heappop(heap)
    return heap[0][1] if len(heap) else -1


@njit(cache=True)
def _best_path(state, has_room):
    """Return the last class of the best path (-1: none gains), its gain, and predecessors."""
    n_segments = state.n_segments
    reached = has_room.copy()
    reached[n_segments:] = False
    gains = np.where(reached, 0, FORBIDDEN)
    via = np.full(has_room.size, -1, np.int64)
    while _relax(state, gains, via, reached):
        pass
    end, gained = -1, 0
    for node in range(n_segments, has_room.size):
        if has_room[node] and gains[node] > gained:
            end, gained = node, gains[node]
    return end, gained, via


@njit(cache=True)
def _relax(state, gains, via, improved):
    """Try every move from the nodes that have improved, and return whether any node has.

    `gains` are the largest to each node so far, and `via` says where they come from.
    """
    gain, n_segments, n_classes = state.gain, state.n_segments, state.gain.shape[1]
    any_better = False
    for source in range(gains.size):
        if not improved[source]:
            continue
        improved[source] = False
        for target in range(n_segments if source < n_segments else 0, gains.size):
            row = state.best[_number(source, target, n_segments, n_classes)]
            if row < 0:
                continue
            there = gains[source] - _worth(gain, row, source, n_segments)
            there += _worth(gain, row, target, n_segments)
            if there > gains[target]:
                gains[target], via[target] = there, source
                improved[target] = any_better = True
    return any_better


@njit(cache=True)
def _make_moves(state, heaps, end, via):
    """Make the moves of a path, and return the segment that it begins in."""
    rows, targets = np.empty(via.size, np.int64), np.empty(via.size, np.int64)
    n_moves, node = 0, end
    while via[node] >= 0:
        move = _number(via[node], node, state.n_segments, state.gain.shape[1])
        rows[n_moves], targets[n_moves] = state.best[move], node
        n_moves, node = n_moves + 1, via[node]
    for move in range(n_moves):
        _move(state, heaps, rows[move], targets[move])
    return node


@njit(cache=True)
def _move(state, heaps, row, target):
    """Move a row, and update the best row of every move."""
    source, n_segments, n_classes = _node(state, row), state.n_segments, state.gain.shape[1]
    state.chosen[row] = max(0, target - n_segments + 1)
    for k in range(n_classes + 1):
        other = n_segments + k if k < n_classes else state.segment[row]
        if other != source:
            move = _number(source, other, n_segments, n_classes)
            if state.best[move] == row:
                state.best[move] = _top(state, heaps[move], source)
    _offer(state, heaps, row)


@njit(cache=True)
def _lowest_prices(state, has_room, total_price):
    """Return the prices of the classes, the segments and the total, in units of `gain`.

    Prices are differences of potentials at which no move gains anything. Of all valid prices, the
    lowest are chosen: first for the total, then for the classes, then for the segments. With these,
    a row that is worth strictly more than its prices is flagged in every optimum. Therefore
    flagging strictly above the prices can never exceed a capacity.
    """
    n_segments, n_classes = state.n_segments, state.gain.shape[1]
    prices = np.where(has_room, -total_price, FORBIDDEN)
    prices[n_segments:] = 0
    reached = prices != FORBIDDEN
    while _relax(state, prices, np.empty_like(prices), reached):
        pass
    lowest = np.zeros(n_classes + n_segments + 1, np.int64)
    lowest[:n_classes], lowest[-1] = prices[n_segments:], total_price
    for s in range(n_segments):
        for k in range(n_classes):
            row = state.best[s * n_classes + k]
            if row >= 0:
                surplus = state.gain[row, k] - prices[n_segments + k] - total_price
                lowest[n_classes + s] = max(lowest[n_classes + s], surplus)
    return lowest
