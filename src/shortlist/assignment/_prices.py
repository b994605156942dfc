"""Prices that certify an optimum: the gain of one more unit of each capacity, compiled.

The graph of moves (see `_flow`) gets a source before the segments and a sink behind the classes.
Prices are differences of potentials at which no move gains anything. Of all valid prices, the
lowest are chosen: first for the total, then for the classes, then for the segments. With these, a
row that is worth strictly more than its prices is flagged in every optimum. Therefore flagging
strictly above the prices can never exceed a capacity.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ._flow import FORBIDDEN


@njit(cache=True)
def lowest_prices(gain, enter, change, leave, class_has_room, segment_has_room, total_has_room):
    """Return the prices of the classes, of the segments and of the total, in units of `gain`."""
    n_segments = segment_has_room.size
    total_price = 0
    if not total_has_room:
        # The best path from the source to the sink, if the total allowed one more flag.
        _, total_price = _distances(
            gain, enter, change, leave, class_has_room, segment_has_room, FORBIDDEN, True
        )
    class_prices, _ = _distances(
        gain, enter, change, leave, class_has_room, segment_has_room, -total_price, False
    )
    segment_prices = np.zeros(n_segments, np.int64)
    for s in range(n_segments):
        for j in range(class_prices.size):
            if enter[s, j] >= 0:
                surplus = gain[enter[s, j], j] - class_prices[j] - total_price
                segment_prices[s] = max(segment_prices[s], surplus)
    return class_prices, segment_prices, total_price


@njit(cache=True)
def _distances(
    gain, enter, change, leave, class_has_room, segment_has_room, sink_to_source, from_source
):
    """Return the largest gain of any path to each class, and to the sink."""
    n_segments, n_classes = enter.shape
    at_class = np.full(n_classes, FORBIDDEN, np.int64)
    at_segment = np.full(n_segments, FORBIDDEN, np.int64)
    at_source = 0 if from_source else FORBIDDEN
    at_sink = FORBIDDEN if from_source else 0
    unsettled = True
    while unsettled:
        unsettled = False
        before = at_sink
        # Prices are not negative: what reaches the source also reaches the sink and the classes.
        at_sink = max(at_sink, at_source)
        if sink_to_source != FORBIDDEN and at_sink != FORBIDDEN:
            at_source = max(at_source, at_sink + sink_to_source)
        for s in range(n_segments):
            if segment_has_room[s]:
                at_segment[s] = max(at_segment[s], at_source)
            if at_segment[s] == FORBIDDEN:
                continue
            if at_segment[s] > at_source:
                at_source, unsettled = at_segment[s], True
            for j in range(n_classes):
                row = enter[s, j]
                if row >= 0 and at_segment[s] + gain[row, j] > at_class[j]:
                    at_class[j], unsettled = at_segment[s] + gain[row, j], True
        for j in range(n_classes):
            if at_sink > at_class[j]:
                at_class[j], unsettled = at_sink, True
            if at_class[j] == FORBIDDEN:
                continue
            if class_has_room[j]:
                at_sink = max(at_sink, at_class[j])
            for k in range(n_classes):
                row = change[j, k]
                if row >= 0 and at_class[j] + gain[row, k] - gain[row, j] > at_class[k]:
                    at_class[k], unsettled = at_class[j] + gain[row, k] - gain[row, j], True
            for s in range(n_segments):
                row = leave[j, s]
                if row >= 0 and at_class[j] - gain[row, j] > at_segment[s]:
                    at_segment[s], unsettled = at_class[j] - gain[row, j], True
        unsettled = unsettled or at_sink != before
    return at_class, at_sink
