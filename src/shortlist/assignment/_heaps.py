"""Many max-heaps in one pool of nodes, compiled: entries are (key, row), and a tie goes to the
smaller row. They are pairing heaps (Fredman, Sedgewick, Sleator and Tarjan, Algorithmica 1986):
adding is one comparison, and no heap needs to know in advance how large it will grow.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

__all__ = ["Heaps", "drop_top", "empty_heaps", "push", "with_room"]

#: Arrays over nodes (`key`, `row`, first `child`, next `sibling`), `top` over heaps, `used` nodes.
Heaps = namedtuple("Heaps", "key row child sibling top used")
_NONE = -1


@njit(cache=True)
def empty_heaps(n_heaps, room):
    """Return `n_heaps` heaps without entries, and room for some."""
    return Heaps(
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.full(n_heaps, _NONE, np.int64),
        np.zeros(1, np.int64),
    )


@njit(cache=True)
def with_room(heaps, extra):
    """Return the heaps with room for `extra` more entries: the same, or a copy twice as large."""
    used = heaps.used[0]
    if used + extra <= heaps.key.size:
        return heaps
    larger = empty_heaps(heaps.top.size, 2 * (used + extra))
    larger.key[:used] = heaps.key[:used]
    larger.row[:used] = heaps.row[:used]
    larger.child[:used] = heaps.child[:used]
    larger.sibling[:used] = heaps.sibling[:used]
    larger.top[:] = heaps.top
    larger.used[0] = used
    return larger


@njit(cache=True)
def push(heaps, heap, key, row):
    """Add an entry to one of the heaps."""
    node = heaps.used[0]
    heaps.used[0] = node + 1
    heaps.key[node], heaps.row[node] = key, row
    heaps.child[node] = heaps.sibling[node] = _NONE
    heaps.top[heap] = _meld(heaps, heaps.top[heap], node)


@njit(cache=True)
def drop_top(heaps, heap):
    """Remove the top entry: pair its children from the left, then join the pairs from the right."""
    node = heaps.child[heaps.top[heap]]
    pairs = _NONE
    while node != _NONE:
        partner = heaps.sibling[node]
        following = heaps.sibling[partner] if partner != _NONE else _NONE
        pair = _meld(heaps, node, partner)
        heaps.sibling[pair] = pairs
        pairs, node = pair, following
    joined = _NONE
    while pairs != _NONE:
        following = heaps.sibling[pairs]
        joined = _meld(heaps, joined, pairs)
        pairs = following
    if joined != _NONE:
        heaps.sibling[joined] = _NONE
    heaps.top[heap] = joined


@njit(cache=True)
def _meld(heaps, a, b):
    if a == _NONE:
        return b
    if b == _NONE:
        return a
    if heaps.key[b] > heaps.key[a] or (
        heaps.key[b] == heaps.key[a] and heaps.row[b] < heaps.row[a]
    ):
        a, b = b, a
    heaps.sibling[b] = heaps.child[a]
    heaps.child[a] = b
    return a
