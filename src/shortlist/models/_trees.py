"""Trees as one array of nodes, and the compiled function that adds up their leaves.

A node takes 16 bytes, and its two children are neighbours: a large forest takes one read from
memory per level of each tree. Comparisons and the order of the sum are those of the library that
grew the trees, so that the sum has the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .._core.arrays import Doubles

__all__ = ["GrownTree", "LeafSum"]

_NODE = np.dtype([("value", np.float64), ("code", np.int32), ("left", np.int32)])
_MISSING_LEFT, _IN_SET = 1, 2  # the lowest bits of a code; the feature lies above them
_AT_ONCE = 8  # trees that are walked together


class GrownTree(NamedTuple):
    """A tree with its root at 0.

    `left` and `right` are the children of each node, -1 for a leaf. `value` is what a number is
    compared with, or the weight of a leaf. Where `in_set` is not negative, the node asks whether
    the number is in that set; what is, goes where missing values do not go.
    """

    left: NDArray[np.integer]
    right: NDArray[np.integer]
    feature: NDArray[np.integer]
    value: Doubles
    missing_left: NDArray[np.bool_]
    in_set: NDArray[np.integer]


class LeafSum:
    """The sum of the leaves that a row reaches, one for each tree, in the order of the trees.

    Parameters
    ----------
    trees : list of GrownTree
        The trees.
    sets : list of arrays of uint32
        Sets of whole numbers, as bits.
    start : float
        What the sum starts from.
    least : float
        The least number that is looked up in a set; the others are in none.
    """

    def __init__(
        self,
        trees: list[GrownTree],
        *,
        sets: list[NDArray[np.uint32]] | None = None,
        start: float = 0.0,
        least: float = 0.0,
    ) -> None:
        sizes = np.array([tree.left.size for tree in trees], dtype=np.int64)
        self._roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        self._nodes = np.empty(int(sizes.sum()), dtype=_NODE)
        self._start, self._least = float(start), float(least)
        sets = sets or []
        self._set_starts = np.cumsum([0, *(words.size for words in sets)]).astype(np.int64)
        self._words = np.concatenate([np.empty(0, np.uint32), *sets]).astype(np.uint32)
        for root, tree in zip(self._roots.tolist(), trees, strict=True):
            _pack(
                np.ascontiguousarray(tree.left, np.int64),
                np.ascontiguousarray(tree.right, np.int64),
                _codes(tree),
                np.where(tree.in_set >= 0, tree.in_set, tree.value).astype(np.float64),
                self._nodes,
                root,
            )

    def __call__(self, X: Doubles) -> Doubles:
        out = np.empty(len(X))
        _add_leaves(
            self._nodes,
            self._roots,
            self._set_starts,
            self._words,
            X,
            self._start,
            self._least,
            out,
        )
        return out


def _codes(tree: GrownTree) -> NDArray[np.int64]:
    flags = _MISSING_LEFT * tree.missing_left.astype(np.int64) + _IN_SET * (tree.in_set >= 0)
    return np.maximum(tree.feature, 0).astype(np.int64) * 4 + flags


@njit(cache=True)
def _pack(left, right, codes, values, nodes, start):
    """Write a tree level by level, the two children of a node beside each other."""
    order = np.empty(left.size, np.int64)
    order[0] = 0
    end = 1
    for k in range(left.size):
        old = order[k]
        nodes[start + k].value = values[old]
        nodes[start + k].code = codes[old]
        if left[old] < 0:
            nodes[start + k].left = -1
        else:
            nodes[start + k].left = start + end
            order[end] = left[old]
            order[end + 1] = right[old]
            end += 2


@njit(cache=True)
def _add_leaves(nodes, roots, set_starts, words, X, start, least, out):
    """Walk down several trees at once: while one waits for memory, the others go on."""
    at = np.empty(_AT_ONCE, np.int64)
    out[:] = start
    for first in range(0, roots.size, _AT_ONCE):
        n_trees = min(_AT_ONCE, roots.size - first)
        for i in range(X.shape[0]):
            at[:n_trees] = roots[first : first + n_trees]
            is_going = True
            while is_going:
                is_going = False
                for k in range(n_trees):
                    node = at[k]
                    left = nodes[node].left
                    if left < 0:
                        continue
                    is_going = True
                    code = nodes[node].code
                    value = nodes[node].value
                    number = X[i, code >> 2]
                    if code & 2:
                        is_in = _is_in_set(number, np.int64(value), set_starts, words, least)
                        goes_right = is_in == ((code & 1) == 1)
                    elif number != number:
                        goes_right = (code & 1) == 0
                    else:
                        goes_right = number > value
                    at[k] = left + np.int64(goes_right)
            for k in range(n_trees):  # in their order
                out[i] += nodes[at[k]].value


@njit(cache=True)
def _is_in_set(number, which, set_starts, words, least):
    n_bits = 32 * (set_starts[which + 1] - set_starts[which])
    if not (number >= least and number < n_bits):
        return False
    bit = np.int64(number)
    word = words[set_starts[which] + (bit >> 5)]
    return (word >> np.uint32(bit & 31)) & np.uint32(1) == 1
