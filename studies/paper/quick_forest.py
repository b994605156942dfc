"""The forest of scikit-learn, tree for tree, several times as fast where one class is rare.

scikit-learn sorts a feature in every node. Here each value has its rank from the start, and a node
counts its items by rank. Only where the class changes can a split be best, because both impurities
are strictly concave in between, so the few rare items decide how many splits are looked at. Seeds,
random numbers and formulas are scikit-learn's, so scores agree to the last digit; tests compare.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import check_random_state

__all__ = ["QuickForest", "quick"]

#: scikit-learn takes values that are this close as equal.
_CLOSE = np.float32(1e-7)
_MAX_RANKS = 2**16
#: Items, weight of the first class and weight of the second are parts of one number: their bits.
_FIRST, _SECOND = 16, 40
_UNLIMITED = {
    "bootstrap": True,
    "ccp_alpha": 0.0,
    "class_weight": None,
    "max_depth": None,
    "max_leaf_nodes": None,
    "max_samples": None,
    "min_impurity_decrease": 0.0,
    "min_weight_fraction_leaf": 0.0,
    "monotonic_cst": None,
    "warm_start": False,
}
#: Feature, threshold, right child (the left one is next), and shares of both classes.
Tree = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def quick(model: Any) -> Any:
    """Return the quick form of a forest, and any other model as it is."""
    return QuickForest(**model.get_params()) if type(model) is RandomForestClassifier else model


class QuickForest(RandomForestClassifier):
    """scikit-learn's forest; what is not quick here is fitted there."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuickForest:
        """Grow the trees of `RandomForestClassifier.fit`."""
        X32 = np.ascontiguousarray(X, dtype=np.float32)
        ranks = _ranks_of(X32)
        classes = np.unique(y)
        if ranks is None or classes.size != 2 or sample_weight is not None or not self._is_plain():
            self.trees_: list[Tree] | None = None
            return super().fit(X, y, sample_weight)
        self.classes_, self.n_classes_, self.n_outputs_ = classes, 2, 1
        self.n_features_in_ = X32.shape[1]
        self.estimators_ = []  # the trees are arrays
        random = check_random_state(self.random_state)
        seeds = [random.randint(np.iinfo(np.int32).max) for _ in range(self.n_estimators)]
        self._grow(X32, np.asarray(y) == classes[1], ranks, seeds)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Average the leaves of all trees."""
        if self.trees_ is None:
            return super().predict_proba(X)
        X32 = np.ascontiguousarray(X, dtype=np.float32)
        sums, rows = np.zeros((len(X32), 2)), np.arange(len(X32))
        for tree in self.trees_:
            _add_leaves(sums, X32, rows, *tree)
        return sums / len(self.trees_)

    def _is_plain(self) -> bool:
        params = self.get_params()
        return (
            all(params[name] == value for name, value in _UNLIMITED.items())
            and self.criterion in ("gini", "entropy")
            and all(type(n) is int for n in (self.min_samples_split, self.min_samples_leaf))
            and (self.max_features == "sqrt" or type(self.max_features) is float)
        )

    def _grow(
        self, X: NDArray[np.float32], is_second: NDArray[np.bool], ranks: Any, seeds: list[int]
    ) -> None:
        n, width = X.shape
        by_feature, values, n_values = ranks
        share = np.sqrt(width) if self.max_features == "sqrt" else self.max_features * width
        settings = (
            max(1, int(share)),
            max(self.min_samples_split, 2 * self.min_samples_leaf),
            self.min_samples_leaf,
            self.criterion == "entropy",
        )
        counted = np.where(is_second, 1 << _SECOND, 1 << _FIRST)
        self.trees_, unseen, seen_by = [], np.zeros((n, 2)), np.zeros(n, dtype=np.int64)
        for seed in seeds:
            drawn = np.bincount(np.random.RandomState(seed).randint(0, n, n), minlength=n)
            state = np.random.RandomState(seed).randint(0, 2**31 - 1)
            held = np.flatnonzero(drawn)
            items = counted[held] * drawn[held] + 1
            self.trees_.append(
                _grow_tree(by_feature, values, n_values, held, items, state, settings)
            )
            if self.oob_score:
                rows = np.flatnonzero(drawn == 0)
                _add_leaves(unseen, X, rows, *self.trees_[-1])
                seen_by[rows] += 1
        if self.oob_score:
            self.oob_decision_function_ = unseen / np.maximum(seen_by, 1)[:, None]


def _ranks_of(X: NDArray[np.float32]) -> Any:
    """Return the rank of each value in its column, the values by rank, and how many there are.

    None if there are too many, gaps, or values so close that scikit-learn takes them as equal.
    """
    if len(X) >= _MAX_RANKS or not np.isfinite(X).all():
        return None
    columns = [np.unique(column, return_inverse=True) for column in X.T]
    if any((values[1:] <= values[:-1] + _CLOSE).any() for values, _ in columns):
        return None
    table = np.zeros((len(columns), len(X)), dtype=np.float32)
    for row, (values, _) in zip(table, columns, strict=True):
        row[: values.size] = values
    ranks = np.array([rank for _, rank in columns], dtype=np.uint16)
    return ranks, table, np.array([values.size for values, _ in columns])


@njit(cache=True)
def _add_leaves(sums, X, rows, feature, threshold, right, first, second):
    """Add the shares of both classes in the leaf of each row."""
    for row in rows:
        node = 0
        while right[node]:
            node = node + 1 if X[row, feature[node]] <= threshold[node] else right[node]
        sums[row, 0] += first[node]
        sums[row, 1] += second[node]


@njit(cache=True)
def _random(state):
    """Return scikit-learn's next random number: a 32-bit xorshift."""
    if state[0] == 0:
        state[0] = 1
    state[0] ^= state[0] << np.uint32(13)
    state[0] ^= state[0] >> np.uint32(17)
    state[0] ^= state[0] << np.uint32(5)
    return np.int64(state[0] & np.uint32(0x7FFFFFFF))


@njit(cache=True)
def _parts(number):
    """Return what a number counts: items, weight of the first class, weight of the second."""
    first = (number >> _FIRST) & ((1 << (_SECOND - _FIRST)) - 1)
    return number & ((1 << _FIRST) - 1), float(first), float(number >> _SECOND)


@njit(cache=True)
def _impurity(first, second, entropy):
    total = first + second
    if not entropy:
        return 1.0 - (first * first + second * second) / (total * total)
    found = 0.0
    for count in (first, second):
        if count > 0.0:
            share = count / total
            found -= share * (np.log(share) / np.log(2.0))
    return found


@njit(cache=True)
def _count(ranks, held, items, counts, words):
    """Count the items of a node by rank, and mark the ranks that occur."""
    for place in range(held.size):
        rank = ranks[held[place]]
        counts[rank] += items[place]
        words[rank >> 6] |= np.uint64(1) << np.uint64(rank & 63)


@njit(cache=True)
def _best_split(counts, words, n_words, node, best, min_leaf, entropy):
    """Return the best split of one feature if it is above `best`, and the number of its ranks.

    `node` is what the whole node counts. The counts and marks are zero afterwards.
    """
    n, all_first, all_second = _parts(node)
    n_ranks, below, first, second = 0, 0, 0.0, 0.0
    last, last_kind, n_last = 0, 0, 0
    split = (best, -1, -1, 0.0, 0.0)
    for word in range(n_words):
        marks = words[word]
        words[word] = 0
        while marks:
            rank = (word << 6) + np.int64(trailing_zeros(marks))
            marks &= marks - np.uint64(1)
            n_here, first_here, second_here = _parts(counts[rank])
            counts[rank] = 0
            kind = (first_here > 0) + 2 * (second_here > 0)
            # Between items of one class a split is best only at the limits of the leaf size.
            is_limit = below - n_last < min_leaf or n - below - n_here < min_leaf
            may_be_best = kind != last_kind or kind == 3 or is_limit
            if n_ranks and below >= min_leaf and n - below >= min_leaf and may_be_best:
                right_first, right_second = all_first - first, all_second - second
                found = -(right_first + right_second) * _impurity(
                    right_first, right_second, entropy
                ) - (first + second) * _impurity(first, second, entropy)
                if found > split[0]:
                    split = (found, last, rank, first, second)
            n_ranks += 1
            below += n_here
            first += first_here
            second += second_here
            last, last_kind, n_last = rank, kind, n_here
    return split, n_ranks


@njit(cache=True)
def _divide(ranks, held, items, highest):
    """Put the items up to a rank first, and return how many they are."""
    middle, stop = 0, held.size
    while middle < stop:
        if ranks[held[middle]] <= highest:
            middle += 1
        else:
            stop -= 1
            held[middle], held[stop] = held[stop], held[middle]
            items[middle], items[stop] = items[stop], items[middle]
    return middle


@njit(cache=True)
def _choose(ranks, n_values, held, items, state, features, n_known, counts, words, settings):
    """Draw features as scikit-learn does, and return the best split among them.

    The first `n_known` of `features` are known to be constant. Those that turn out to be are put
    behind them; their number comes last.
    """
    max_features, _, min_leaf, entropy = settings
    node = items.sum()
    best, best_feature = (-np.inf, -1, -1, 0.0, 0.0), -1
    end, visited, n_found, n_drawn = features.size, 0, 0, 0
    while end > n_known + n_found and (visited < max_features or visited <= n_found + n_drawn):
        visited += 1
        j = n_drawn + _random(state) % (end - n_found - n_drawn)
        if j < n_known:
            features[n_drawn], features[j] = features[j], features[n_drawn]
            n_drawn += 1
            continue
        j += n_found
        feature = features[j]
        _count(ranks[feature], held, items, counts, words)
        n_words = (n_values[feature] + 63) // 64
        split, n_ranks = _best_split(counts, words, n_words, node, best[0], min_leaf, entropy)
        if n_ranks == 1:
            place = n_known + n_found
            n_found += 1
        else:
            end -= 1
            place = end
        features[place], features[j] = features[j], features[place]
        if split[1] >= 0:
            best, best_feature = split, feature
    return best, best_feature, n_found


@njit(cache=True)
def _grow_tree(ranks, values, n_values, held, items, seed, settings):
    """Grow one tree; `held` are the rows that were drawn, `items` what each of them counts."""
    _, min_split, _, entropy = settings
    size = 2 * held.size
    feature, right = np.zeros(size, dtype=np.int16), np.zeros(size, dtype=np.int32)
    threshold, first, second = np.zeros(size), np.zeros(size), np.zeros(size)
    state = np.array([seed], dtype=np.uint32)
    features = np.arange(ranks.shape[0])
    constants = np.zeros(ranks.shape[0], dtype=np.int64)
    counts = np.zeros(n_values.max(), dtype=np.int64)
    words = np.zeros(counts.size // 64 + 1, dtype=np.uint64)
    # Of nodes that wait: start, end, parent of a right child or -1, number of constants; impurity.
    stack, impurities = np.zeros((size, 4), dtype=np.int64), np.zeros(size)
    stack[0, 1], stack[0, 2] = held.size, -1
    _, all_first, all_second = _parts(items.sum())
    weight, impurities[0] = all_first + all_second, _impurity(all_first, all_second, entropy)
    waiting, n_nodes = 1, 0
    while waiting:
        waiting -= 1
        start, end, parent, n_known = stack[waiting]
        impurity, node = impurities[waiting], n_nodes
        if parent >= 0:
            right[parent] = node
        _, n_first, n_second = _parts(items[start:end].sum())
        here = n_first + n_second
        first[node], second[node] = n_first / here, n_second / here
        n_nodes += 1
        if end - start < min_split or impurity <= np.finfo(np.float64).eps:
            continue
        split, chosen, n_found = _choose(
            ranks,
            n_values,
            held[start:end],
            items[start:end],
            state,
            features,
            n_known,
            counts,
            words,
            settings,
        )
        features[:n_known] = constants[:n_known]
        constants[n_known : n_known + n_found] = features[n_known : n_known + n_found]
        if chosen < 0:
            continue
        _, below, above, left_first, left_second = split
        left = left_first + left_second
        left_impurity = _impurity(left_first, left_second, entropy)
        right_impurity = _impurity(n_first - left_first, n_second - left_second, entropy)
        gain = (here / weight) * (
            impurity - ((here - left) / here * right_impurity) - (left / here * left_impurity)
        )
        if gain + np.finfo(np.float64).eps < 0.0:
            continue
        feature[node] = chosen
        threshold[node] = values[chosen, below] / 2.0 + values[chosen, above] / 2.0
        middle = start + _divide(ranks[chosen], held[start:end], items[start:end], below)
        stack[waiting] = middle, end, node, n_known + n_found
        stack[waiting + 1] = start, middle, -1, n_known + n_found
        impurities[waiting], impurities[waiting + 1] = right_impurity, left_impurity
        waiting += 2
    return (
        feature[:n_nodes].copy(),
        threshold[:n_nodes].copy(),
        right[:n_nodes].copy(),
        first[:n_nodes].copy(),
        second[:n_nodes].copy(),
    )
