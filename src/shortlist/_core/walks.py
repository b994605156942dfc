"""Compiled walks through packed trees."""

from __future__ import annotations

import numpy as np
from numba import njit

_AT_ONCE = 8  # trees that are walked together


@njit(cache=True)
def add_leaves(nodes, roots, sums_of, X, sums):
    """Walk down several trees at once: while one waits for memory, the others go on."""
    at = np.empty(_AT_ONCE, np.int64)
    for first in range(0, roots.size, _AT_ONCE):
        n_trees = min(_AT_ONCE, roots.size - first)
        for i in range(X.shape[0]):
            at[:n_trees] = roots[first : first + n_trees]
            is_going = True
            while is_going:
                is_going = False
                for k in range(n_trees):
                    node = at[k]
                    left = nodes[node]["left"]
                    if left < 0:
                        continue
                    is_going = True
                    code = nodes[node]["code"]
                    number = X[i, code >> 1]
                    is_missing, goes_left = number != number, (code & 1) == 1
                    goes_right = not goes_left if is_missing else number > nodes[node]["value"]
                    at[k] = left + np.int64(goes_right)
            for k in range(n_trees):  # in their order
                sums[sums_of[first + k], i] += nodes[at[k]]["value"]
