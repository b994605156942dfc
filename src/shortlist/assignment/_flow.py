"""The exact optimum as a flow: successive best paths through a small graph, compiled.

A flag is a unit of flow from a segment through a row into a class. The rows need no nodes of their
own: between two nodes only the best row that can move counts, and there are three kinds of moves,

- segment -> class: a row that is left alone gets flagged,
- class -> class: a flagged row changes its class,
- class -> segment: a flagged row is left alone again.

Each step finds the path of moves from a segment with room to a class with room that gains the
most (Bellman and Ford, on as many nodes as there are classes and segments), and makes its moves. It
stops when no path gains anything, or at the total. Gains are integers, so that no rounding
can make a path of moves gain by going in circles; gains of successive paths never rise, which is
why stopping early is optimal for the total.

As long as every class and segment has room, the next best path is the next best row with its best
class. Those first steps are made at once by the caller.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from ._heaps import drop_top, empty_heaps, push, with_room

__all__ = ["FORBIDDEN", "best_flow"]

#: Stands for minus infinity among gains and distances.
FORBIDDEN = -(2**62)

#: Over rows: `gain` (by class), `segment`, `chosen` column. `order` lists the rows of each segment
#: by falling gain, `place` finds a row there, `start` finds a segment, `seen` is how far the
#: list has been used up. `enter`, `change`, `leave` hold the best row for each move, or -1.
_State = namedtuple("_State", "gain segment chosen order place start seen enter change leave")


@njit(cache=True)
def best_flow(gain, segment, order, start, first, class_limit, segment_limit, total):
    """Return the chosen column of each row (0: left alone), and the best row for each move left.

    `order` holds for each class the rows, grouped by segment and by falling gain within it;
    `start` says where each segment begins. Equal gains go to the row that comes first. `first` are
    the columns after the first steps.
    """
    n_classes, n_segments = gain.shape[1], start.size - 1
    heaps = empty_heaps(2 * n_segments * n_classes + n_classes**2, 1024)
    heaps = with_room(heaps, np.count_nonzero(first) * n_classes)
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
        heaps = with_room(heaps, n_moves * (n_classes + 1))
        for move in range(n_moves):
            _move(state, heaps, rows[move], targets[move])
        class_load[end] += 1
        segment_load[first_segment] += 1
        n_flagged += 1
    return state.chosen, state.enter, state.change, state.leave, class_load, segment_load


@njit(cache=True)
def _start(gain, segment, order, start, first, heaps):
    """Enter the first steps, and find the best row for each move after them."""
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
    """Return the last class of the best path, where each node was reached from, and the gain."""
    n_segments, n_classes = state.enter.shape
    at_class = np.full(n_classes, FORBIDDEN, np.int64)
    at_segment = np.full(n_segments, FORBIDDEN, np.int64)
    to_class = np.full(n_classes, -1, np.int64)  # a class, or n_classes + a segment
    to_segment = np.full(n_segments, -1, np.int64)  # a class, or -1 for a beginning
    improved = np.zeros(n_segments, np.bool_)
    for s in range(n_segments):
        if segment_has_room[s]:
            at_segment[s] = 0
            improved[s] = True
    unsettled = True
    while unsettled:
        unsettled = False
        for s in range(n_segments):
            if not improved[s]:
                continue
            improved[s] = False
            for j in range(n_classes):
                row = state.enter[s, j]
                if row >= 0 and at_segment[s] + state.gain[row, j] > at_class[j]:
                    at_class[j] = at_segment[s] + state.gain[row, j]
                    to_class[j] = n_classes + s
                    unsettled = True
        for j in range(n_classes):
            if at_class[j] == FORBIDDEN:
                continue
            for k in range(n_classes):
                row = state.change[j, k]
                if row >= 0:
                    there = at_class[j] + state.gain[row, k] - state.gain[row, j]
                    if there > at_class[k]:
                        at_class[k], to_class[k] = there, j
                        unsettled = True
            for s in range(n_segments):
                row = state.leave[j, s]
                if row >= 0 and at_class[j] - state.gain[row, j] > at_segment[s]:
                    at_segment[s], to_segment[s] = at_class[j] - state.gain[row, j], j
                    improved[s] = unsettled = True
    end, gained = -1, FORBIDDEN
    for j in range(n_classes):
        if class_has_room[j] and at_class[j] > gained:
            end, gained = j, at_class[j]
    return end, to_class, to_segment, gained


@njit(cache=True)
def _trace(state, end, to_class, to_segment, rows, targets):
    """Walk the path back from its end; write down its moves, and return where it began."""
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
    """Give a row another column, and keep the best row of every move up to date."""
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
                state.change[source, k] = _best_flagged(state, heaps, heap, source)
        if state.leave[source, s] == row:
            heap = n_segments * n_classes + source * n_segments + s
            state.leave[source, s] = _best_flagged(state, heaps, heap, source)
    if target == 0:
        _offer_to_enter(state, heaps, row, s)
    else:
        _offer_to_change_and_leave(state, heaps, row, s, target - 1)


@njit(cache=True)
def _best_entering(state, heaps, s, j):
    """Find the best row of a segment that is left alone: in its list, or among the returned."""
    position = state.seen[s, j]
    while position < state.start[s + 1] and state.chosen[state.order[j, position]] != 0:
        position += 1
    state.seen[s, j] = position
    best = -1
    if position < state.start[s + 1]:
        row = state.order[j, position]
        if state.gain[row, j] != FORBIDDEN:
            best = row
    heap = s * state.gain.shape[1] + j
    while heaps.top[heap] >= 0 and state.chosen[heaps.row[heaps.top[heap]]] != 0:
        drop_top(heaps, heap)
    if heaps.top[heap] >= 0:
        row = heaps.row[heaps.top[heap]]
        if best < 0 or state.place[j, row] < state.place[j, best]:
            best = row
    return best


@njit(cache=True)
def _best_flagged(state, heaps, heap, j):
    """Find the best row of a heap that is still flagged as class `j`; others are out of date."""
    while heaps.top[heap] >= 0 and state.chosen[heaps.row[heaps.top[heap]]] != j + 1:
        drop_top(heaps, heap)
    return heaps.row[heaps.top[heap]] if heaps.top[heap] >= 0 else -1


@njit(cache=True)
def _offer_to_enter(state, heaps, row, s):
    n_classes = state.gain.shape[1]
    for j in range(n_classes):
        if state.gain[row, j] == FORBIDDEN:
            continue
        if state.place[j, row] < state.seen[s, j]:  # otherwise the list still comes to it
            push(heaps, s * n_classes + j, state.gain[row, j], row)
        best = state.enter[s, j]
        if best < 0 or state.place[j, row] < state.place[j, best]:
            state.enter[s, j] = row


@njit(cache=True)
def _offer_to_change_and_leave(state, heaps, row, s, j):
    n_segments, n_classes = state.enter.shape
    for k in range(n_classes):
        if k != j and state.gain[row, k] != FORBIDDEN:
            heap = 2 * n_segments * n_classes + j * n_classes + k
            push(heaps, heap, state.gain[row, k] - state.gain[row, j], row)
            state.change[j, k] = _best_flagged(state, heaps, heap, j)
    heap = n_segments * n_classes + j * n_segments + s
    push(heaps, heap, -state.gain[row, j], row)
    state.leave[j, s] = _best_flagged(state, heaps, heap, j)
