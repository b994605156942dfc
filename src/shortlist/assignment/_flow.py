"""The exact optimum as a flow: successive best paths through a small graph, compiled.

A flag is a unit of flow from a segment through a row into a class. Rows are not nodes of the graph:
between two nodes, only the best row that can move matters. There are three kinds of moves:

- segment -> class: a row that is left alone gets flagged,
- class -> class: a flagged row changes its class,
- class -> segment: a flagged row is left alone again.

Each step finds the path of moves with the largest gain from a segment with room to a class with
room (Bellman and Ford, on one node per class and segment), and makes these moves. The steps end
when no path gains anything, or at the total. Gains are integers. Therefore rounding cannot create
a cycle of moves that seems to gain. The gains of successive paths never rise. Therefore stopping
early is optimal for the total.

While every class and segment has room, the next best path is the next best row with its best
class. The caller makes these first steps all at once.
"""

from __future__ import annotations

from collections import namedtuple
from heapq import heappop, heappush

import numpy as np
from numba import njit

#: Stands for minus infinity among gains and distances.
FORBIDDEN = -(2**62)

#: Over rows: `gain` (by class), `segment`, `chosen` column. `order` lists the rows of each segment
#: by falling gain, `place` is the position of a row in that list, `start` that of a segment, and
#: `seen` the first unused position. `enter`, `change`, `leave` hold the best row per move, or -1.
_State = namedtuple("_State", "gain segment chosen order place start seen enter change leave")


@njit(cache=True)
def best_flow(gain, segment, order, start, first, class_limit, segment_limit, total):
    """Return the chosen column of each row (0: left alone), and prices that prove the optimum.

    `order` holds the rows for each class, grouped by segment and by falling gain within a segment.
    `start` is the position where each segment begins. Of equal gains, the first row wins. `first`
    holds the columns after the first steps.
    """
    n_classes, n_segments = gain.shape[1], start.size - 1
    # Heaps of the rows put back, and of the flagged rows that could leave, or change: pairs of
    # minus the gain and the row, the smallest on top. Outdated pairs are dropped on the way.
    nobody = (np.int64(0), np.int64(0))
    heaps = [[nobody for _ in range(0)] for _ in range(2 * n_segments * n_classes + n_classes**2)]
    state, class_load, segment_load = _start(gain, segment, order, start, first, heaps)
    rows = np.empty(2 * n_classes + 2, np.int64)
    targets = np.empty(2 * n_classes + 2, np.int64)
    n_flagged = class_load.sum()
    while n_flagged < total:
        end, to_class, to_segment, gained = _best_path(
            state, class_load < class_limit, segment_load < segment_limit
        )
        if end < 0 or gained <= 0:
            break
        n_moves, first_segment = _trace(state, end, to_class, to_segment, rows, targets)
        for move in range(n_moves):
            _move(state, heaps, rows[move], targets[move])
        class_load[end] += 1
        segment_load[first_segment] += 1
        n_flagged += 1
    open_classes, open_segments = class_load < class_limit, segment_load < segment_limit
    total_price = 0
    if n_flagged >= total:  # what the best path would gain if the total allowed one more flag
        total_price = max(0, _best_path(state, open_classes, open_segments)[3])
    return state.chosen, _lowest_prices(state, open_segments, total_price)


@njit(cache=True)
def _start(gain, segment, order, start, first, heaps):
    """Record the first steps, and find the best row for each move after them."""
    n_rows, n_classes = gain.shape
    n_segments = start.size - 1
    place = np.empty((n_classes, n_rows), np.int64)
    seen = np.empty((n_segments, n_classes), np.int64)
    enter = np.full((n_segments, n_classes), -1, np.int64)
    change = np.full((n_classes, n_classes), -1, np.int64)
    leave = np.full((n_classes, n_segments), -1, np.int64)
    for j in range(n_classes):
        seen[:, j] = start[:-1]
        for position in range(n_rows):
            place[j, order[j, position]] = position
    state = _State(gain, segment, first.copy(), order, place, start, seen, enter, change, leave)
    class_load = np.zeros(n_classes, np.int64)
    segment_load = np.zeros(n_segments, np.int64)
    for row in range(n_rows):
        if first[row] > 0:
            class_load[first[row] - 1] += 1
            segment_load[segment[row]] += 1
            _offer_to_change_and_leave(state, heaps, row, segment[row], first[row] - 1)
    for s in range(n_segments):
        for j in range(n_classes):
            enter[s, j] = _best_entering(state, heaps, s, j)
    return state, class_load, segment_load


@njit(cache=True)
def _best_path(state, class_has_room, segment_has_room):
    """Return the last class of the best path, the predecessor of each node, and the gain."""
    n_segments, n_classes = state.enter.shape
    at_class = np.full(n_classes, FORBIDDEN, np.int64)
    at_segment = np.where(segment_has_room, 0, FORBIDDEN)
    to_class = np.full(n_classes, -1, np.int64)  # a class, or n_classes + a segment
    to_segment = np.full(n_segments, -1, np.int64)  # a class, or -1 for a beginning
    improved = segment_has_room.copy()
    while _relax(state, at_class, at_segment, to_class, to_segment, improved):
        pass
    end, gained = -1, FORBIDDEN
    for j in range(n_classes):
        if class_has_room[j] and at_class[j] > gained:
            end, gained = j, at_class[j]
    return end, to_class, to_segment, gained


@njit(cache=True)
def _relax(state, at_class, at_segment, to_class, to_segment, improved):
    """Try every move from the segments that have improved, and from all classes.

    Return whether any node has got a larger gain; `improved` marks the segments that did.
    """
    n_segments, n_classes = state.enter.shape
    any_better = False
    for s in range(n_segments):
        if not improved[s]:
            continue
        improved[s] = False
        for j in range(n_classes):
            row = state.enter[s, j]
            if row >= 0 and at_segment[s] + state.gain[row, j] > at_class[j]:
                at_class[j] = at_segment[s] + state.gain[row, j]
                to_class[j] = n_classes + s
                any_better = True
    for j in range(n_classes):
        if at_class[j] == FORBIDDEN:
            continue
        for k in range(n_classes):
            row = state.change[j, k]
            if row >= 0:
                there = at_class[j] + state.gain[row, k] - state.gain[row, j]
                if there > at_class[k]:
                    at_class[k], to_class[k] = there, j
                    any_better = True
        for s in range(n_segments):
            row = state.leave[j, s]
            if row >= 0 and at_class[j] - state.gain[row, j] > at_segment[s]:
                at_segment[s], to_segment[s] = at_class[j] - state.gain[row, j], j
                improved[s] = any_better = True
    return any_better


@njit(cache=True)
def _trace(state, end, to_class, to_segment, rows, targets):
    """Follow the path back from its end; record its moves, and return its first segment."""
    n_classes = to_class.size
    n_moves, j = 0, end
    while True:
        origin = to_class[j]
        if origin < n_classes:
            rows[n_moves], targets[n_moves] = state.change[origin, j], j + 1
            n_moves, j = n_moves + 1, origin
            continue
        s = origin - n_classes
        rows[n_moves], targets[n_moves] = state.enter[s, j], j + 1
        n_moves += 1
        j = to_segment[s]
        if j < 0:
            return n_moves, s
        rows[n_moves], targets[n_moves] = state.leave[j, s], 0
        n_moves += 1


@njit(cache=True)
def _move(state, heaps, row, target):
    """Give a row another column, and update the best row of every move."""
    n_segments, n_classes = state.enter.shape
    s, source = state.segment[row], state.chosen[row] - 1
    state.chosen[row] = target
    if source < 0:
        for j in range(n_classes):
            if state.enter[s, j] == row:
                state.enter[s, j] = _best_entering(state, heaps, s, j)
    else:
        for k in range(n_classes):
            if state.change[source, k] == row:
                heap = 2 * n_segments * n_classes + source * n_classes + k
                state.change[source, k] = _top(heaps[heap], state.chosen, source + 1)
        if state.leave[source, s] == row:
            heap = n_segments * n_classes + source * n_segments + s
            state.leave[source, s] = _top(heaps[heap], state.chosen, source + 1)
    if target == 0:
        _offer_to_enter(state, heaps, row, s)
    else:
        _offer_to_change_and_leave(state, heaps, row, s, target - 1)


@njit(cache=True)
def _best_entering(state, heaps, s, j):
    """Find the best row of a segment that is left alone: in its list, or among rows put back."""
    position = state.seen[s, j]
    while position < state.start[s + 1] and state.chosen[state.order[j, position]] != 0:
        position += 1
    state.seen[s, j] = position
    best = -1
    if position < state.start[s + 1]:
        row = state.order[j, position]
        if state.gain[row, j] != FORBIDDEN:
            best = row
    row = _top(heaps[s * state.gain.shape[1] + j], state.chosen, 0)
    if row >= 0 and (best < 0 or state.place[j, row] < state.place[j, best]):
        best = row
    return best


@njit(cache=True)
def _top(heap, chosen, column):
    """Return the best row of a heap that still has a column, or -1; drop outdated entries."""
    while len(heap) and chosen[heap[0][1]] != column:
        heappop(heap)
    return heap[0][1] if len(heap) else -1


@njit(cache=True)
def _offer_to_enter(state, heaps, row, s):
    n_classes = state.gain.shape[1]
    for j in range(n_classes):
        if state.gain[row, j] == FORBIDDEN:
            continue
        if state.place[j, row] < state.seen[s, j]:  # otherwise the row is still ahead in the list
            heappush(heaps[s * n_classes + j], (-state.gain[row, j], row))
        best = state.enter[s, j]
        if best < 0 or state.place[j, row] < state.place[j, best]:
            state.enter[s, j] = row


@njit(cache=True)
def _offer_to_change_and_leave(state, heaps, row, s, j):
    n_segments, n_classes = state.enter.shape
    for k in range(n_classes):
        if k != j and state.gain[row, k] != FORBIDDEN:
            heap = 2 * n_segments * n_classes + j * n_classes + k
            heappush(heaps[heap], (state.gain[row, j] - state.gain[row, k], row))
            state.change[j, k] = _top(heaps[heap], state.chosen, j + 1)
    heap = n_segments * n_classes + j * n_segments + s
    heappush(heaps[heap], (state.gain[row, j], row))
    state.leave[j, s] = _top(heaps[heap], state.chosen, j + 1)


# --- prices -----------------------------------------------------------------------------------
#
# Prices are differences of potentials at which no move gains anything. Of all valid prices, the
# lowest are chosen: first for the total, then for the classes, then for the segments. With these,
# a row that is worth strictly more than its prices is flagged in every optimum. Therefore flagging
# strictly above the prices can never exceed a capacity.


@njit(cache=True)
def _lowest_prices(state, segment_has_room, total_price):
    """Return the prices of the classes, of the segments and of the total, in units of `gain`."""
    n_segments, n_classes = state.enter.shape
    class_prices = np.zeros(n_classes, np.int64)
    at_segment = np.where(segment_has_room, -total_price, FORBIDDEN)
    unused = np.empty(max(n_classes, n_segments), np.int64)
    improved = segment_has_room.copy()
    while _relax(state, class_prices, at_segment, unused, unused, improved):
        pass
    segment_prices = np.zeros(n_segments, np.int64)
    for s in range(n_segments):
        for j in range(n_classes):
            row = state.enter[s, j]
            if row >= 0:
                surplus = state.gain[row, j] - class_prices[j] - total_price
                segment_prices[s] = max(segment_prices[s], surplus)
    return class_prices, segment_prices, total_price
