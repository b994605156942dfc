"""A random forest that is quick where one class is rare, with the splits of scikit-learn's.

While the rare items on each side stay the same, the Gini gain is convex in the number of common
ones on the left, so that the best cut of a feature lies next to a rare item. A node with few rare
items is searched by sorting those few, and counting the common ones between them. Bootstrap,
candidates and stopping are those of :class:`sklearn.ensemble.RandomForestClassifier`; only the
random numbers differ.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["RareForest"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

_CHUNK = 512  # items that go down a tree together
_SHIFT = 1 << 16  # a code and a weight in one number


class _Tree(NamedTuple):
    """Nodes as arrays: a leaf has feature -1, and all nodes have the share of rare items."""

    feature: Ints
    threshold: Floats
    left: Ints
    rare_share: Floats


class RareForest(ClassifierMixin, BaseEstimator):
    """Random forest for labels 0 and 1 (the rare one), the same in distribution as scikit-learn's.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    min_samples_split : int, default=2
        Nodes with fewer items are not split.
    max_features : int or None, default=None
        Candidates for each split; `None` takes the root of their number.
    bootstrap : bool, default=True
        Whether each tree has a sample of its own.
    random_state : int, default=None
        Seed.
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        min_samples_split: int = 2,
        max_features: int | None = None,
        bootstrap: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_split = min_samples_split
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.random_state = random_state

    def fit(self, X: Floats, y: NDArray[np.int64]) -> Self:
        """Grow the trees."""
        # As scikit-learn does: features in single precision, thresholds halfway between them.
        X, is_rare = np.asarray(X, dtype=np.float32), np.asarray(y) == 1
        self.classes_ = np.array([0, 1])
        columns = [np.unique(column, return_inverse=True) for column in X.T]
        levels = np.concatenate([values for values, _ in columns]).astype(np.float64)
        offsets = np.cumsum([0, *(len(values) for values, _ in columns)])
        codes = np.array([inverse for _, inverse in columns], dtype=np.uint16)
        n_candidates = self.max_features or max(1, int(np.sqrt(X.shape[1])))
        n_levels = np.diff(offsets)
        rng = np.random.default_rng(self.random_state)
        self.trees_ = []
        for _ in range(self.n_estimators):
            weights = self._draw(rng, len(X))
            rare, common = (
                np.flatnonzero((weights > 0) & side).astype(np.int32)
                for side in (is_rare, ~is_rare)
            )
            grown = _grow(
                codes, n_levels, weights, rare, common, n_candidates, self.min_samples_split, rng
            )
            self.trees_.append(_with_thresholds(grown, levels, offsets))
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Return the mean share of each class in the leaves of the items."""
        # Thresholds are compared with single precision, as in training.
        X = np.ascontiguousarray(X, dtype=np.float32)
        rare = np.zeros(len(X))
        for tree in self.trees_:
            _add_shares(X, *tree, rare)
        rare /= len(self.trees_)
        return np.column_stack([1 - rare, rare])

    def predict(self, X: Floats) -> NDArray[np.int64]:
        """Return the class with the larger share; of equal ones, the common one."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)

    def _draw(self, rng: np.random.Generator, n: int) -> Ints:
        if not self.bootstrap:
            return np.ones(n, dtype=np.int32)
        return np.bincount(rng.integers(n, size=n), minlength=n).astype(np.int32)


def _with_thresholds(grown: Any, levels: Floats, offsets: Ints) -> _Tree:
    """Turn the two neighbouring codes of each cut into the value halfway between them."""
    feature, low, high, left, share = grown
    start = offsets[np.maximum(feature, 0)]
    threshold = (levels[start + low] + levels[start + high]) / 2
    return _Tree(feature, threshold, left, share)


@njit(cache=True)
def _grow(codes, n_levels, weights, rare, common, n_candidates, min_split, rng):
    """Grow one tree; nodes hold stretches of `rare` and `common`, which are reordered."""
    size = 2 * (rare.size + common.size)
    feature, left = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    low, high, share = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size)
    stack = np.empty((size, 5), np.int64)
    stack[0] = 0, 0, rare.size, 0, common.size
    order, work = np.arange(len(codes)), _work_space(rare.size, n_levels.max())
    n_nodes, top = 1, 1
    while top > 0:
        top -= 1
        node, r0, r1, c0, c1 = stack[top]
        here = rare[r0:r1], common[c0:c1]
        totals = weights[here[0]].sum(), weights[here[1]].sum()
        share[node] = totals[0] / (totals[0] + totals[1])
        if min(totals) == 0 or here[0].size + here[1].size < min_split:
            continue
        best, limit = _find_split(
            codes, n_levels, weights, here, totals, n_candidates, order, work, rng
        )
        if best == -1:
            continue
        r_split, r_low, r_high = _partition(codes[best], here[0], limit)
        c_split, c_low, c_high = _partition(codes[best], here[1], limit)
        feature[node], left[node] = best, n_nodes
        low[node], high[node] = max(r_low, c_low), min(r_high, c_high)
        stack[top] = n_nodes, r0, r0 + r_split, c0, c0 + c_split
        stack[top + 1] = n_nodes + 1, r0 + r_split, r1, c0 + c_split, c1
        top += 2
        n_nodes += 2
    return feature[:n_nodes], low[:n_nodes], high[:n_nodes], left[:n_nodes], share[:n_nodes]


@njit(cache=True)
def _work_space(n_rare, most_levels):
    """Make room for keys, points, weights at points, counts between them, and places of codes."""
    return (
        np.empty(n_rare, np.int64),
        np.empty(n_rare, np.int64),
        np.empty(n_rare, np.int64),
        np.empty(2 * n_rare + 1, np.int64),
        np.empty(most_levels, np.int32),
    )


@njit(cache=True)
def _find_split(codes, n_levels, weights, here, totals, n_candidates, order, work, rng):
    """Try features at random; return the best one and the largest code that goes to the left.

    As in scikit-learn, a feature that is constant in the node counts as tried, and the search
    goes on until one is not.
    """
    rare, common = here
    keys, points, rare_at, counts, slots = work
    best, best_gain, best_limit, tried = -1, -np.inf, 0, 0
    while tried < order.size and (tried < n_candidates or best == -1):
        place = rng.integers(tried, order.size)
        order[tried], order[place] = order[place], order[tried]
        f = order[tried]
        tried += 1
        m = _rare_points(codes[f], weights, rare, keys, points, rare_at)
        if n_levels[f] <= 2 * common.size:
            _count_by_table(codes[f], weights, common, points[:m], counts, slots[: n_levels[f]])
        else:
            _count_by_search(codes[f], weights, common, points[:m], counts)
        gain, limit = _best_cut(points[:m], rare_at, counts, totals)
        if gain > best_gain:
            best, best_gain, best_limit = f, gain, limit
    return best, best_limit


@njit(cache=True)
def _rare_points(column, weights, rare, keys, points, rare_at):
    """Sort the codes of the rare items; return how many differ, with the weight at each."""
    for i in range(rare.size):
        keys[i] = np.int64(column[rare[i]]) * _SHIFT + weights[rare[i]]
    some = keys[: rare.size]
    some.sort()
    n_points = 0
    for key in some:
        code = key // _SHIFT
        if n_points == 0 or points[n_points - 1] != code:
            points[n_points] = code
            rare_at[n_points] = 0
            n_points += 1
        rare_at[n_points - 1] += key % _SHIFT
    return n_points


@njit(cache=True)
def _count_by_table(column, weights, common, points, counts, slots):
    """Count the common items below, at and between the points: 2 m + 1 places.

    A table of all codes is worth its while when the items are many.
    """
    start = 0
    for j in range(points.size):
        slots[start : points[j]] = 2 * j
        slots[points[j]] = 2 * j + 1
        start = points[j] + 1
    slots[start:] = 2 * points.size
    counts[: 2 * points.size + 1] = 0
    for item in common:
        counts[slots[column[item]]] += weights[item]


@njit(cache=True)
def _count_by_search(column, weights, common, points, counts):
    """Count the same, and find the place of each item by bisection."""
    counts[: 2 * points.size + 1] = 0
    for item in common:
        code = np.int64(column[item])
        place = np.searchsorted(points, code)
        at = place < points.size and points[place] == code
        counts[2 * place + at] += weights[item]


@njit(cache=True)
def _best_cut(points, rare_at, counts, totals):
    """Return the largest sum of squares over sizes, and the largest code left of that cut."""
    best, limit = -np.inf, 0
    rare_left, common_left = 0, 0
    for j in range(points.size):
        common_left += counts[2 * j]
        for after in range(2):  # the cut is just before the point, then just after it
            if after:
                rare_left += rare_at[j]
                common_left += counts[2 * j + 1]
            n_left = rare_left + common_left
            n_right = totals[0] + totals[1] - n_left
            if n_left == 0 or n_right == 0:
                continue
            gain = (rare_left**2 + common_left**2) / n_left
            gain += ((totals[0] - rare_left) ** 2 + (totals[1] - common_left) ** 2) / n_right
            if gain > best:
                best, limit = gain, points[j] - 1 + after
    return best, limit


@njit(cache=True)
def _partition(column, items, limit):
    """Put items with codes up to the limit first; return their number and the codes at the gap."""
    first, last = 0, items.size - 1
    low, high = -1, _SHIFT
    while first <= last:
        code = int(column[items[first]])
        if code <= limit:
            low = max(low, code)
            first += 1
        else:
            high = min(high, code)
            items[first], items[last] = items[last], items[first]
            last -= 1
    return first, low, high


@njit(cache=True)
def _add_shares(X, feature, threshold, left, rare_share, total):
    """Add the share of rare items in the leaf of each item.

    All items go down one level at a time, so that the processor works on many at once.
    """
    nodes, active = np.zeros(_CHUNK, np.int32), np.empty(_CHUNK, np.int32)
    for start in range(0, len(X), _CHUNK):
        n = n_active = min(_CHUNK, len(X) - start)
        nodes[:n] = 0
        for i in range(n):
            active[i] = i
        while n_active > 0 and feature[0] >= 0:
            n_left = 0
            for k in range(n_active):
                i = active[k]
                node = nodes[i]
                node = left[node] + (X[start + i, feature[node]] > threshold[node])
                nodes[i] = node
                active[n_left] = i
                n_left += feature[node] >= 0
            n_active = n_left
        for i in range(n):
            total[start + i] += rare_share[nodes[i]]
