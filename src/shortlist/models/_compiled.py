"""A blueprint as compiled functions of single rows.

No score is above that of the model: it has the same bits where the order of the sums is known, and
otherwise a bound of the rounding errors is subtracted. A library adds the terms of a product of
matrices in an order of its own, which changes with the number of rows. A sum of n terms has an
error of at most about n units in the last place times the sum of the sizes of its terms, in every
order (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). The bounds here cover
two such errors: that of the sum here, and that of the model's.

One function prepares the features of all parts of the model, and one walks all of its trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit
from scipy.special import expit

from .._core.arrays import Doubles
from .._core.scoring import score_classes
from .._core.trees import TINY, packed
from .._core.walks import add_leaves
from . import blueprint
from ._columns import NAN, Vocabulary

#: The largest relative error of one operation.
_UNIT = 2.0**-53
#: More than the error of a function of one number, in units.
_FEW = 16
Scores = list[Doubles]


class Refused(Exception):
    """A row for which the model itself has to answer, most likely by an error."""


class Compiled:
    """A blueprint as a function of rows of plain values."""

    def __init__(self, node: blueprint.Node) -> None:
        leaves = blueprint.leaves_of(node)
        self._columns = _Columns(leaves)
        trees = [leaf for leaf in leaves if isinstance(leaf, blueprint.Trees)]
        others = [leaf for leaf in leaves if not isinstance(leaf, blueprint.Trees)]
        first = self._columns.places
        self._forest = _Forest(trees, [first[id(leaf)] for leaf in trees])
        self._others = [_LEAVES[type(leaf)](leaf, first[id(leaf)]) for leaf in others]
        places = {id(leaf): place for place, leaf in enumerate([*trees, *others])}
        self._combine = _combined(node, places)

    def __call__(self, rows: Sequence[Sequence[Any]]) -> Doubles:
        """Score rows, or raise Refused."""
        X = self._columns(rows)
        return self._combine([*self._forest(X), *[score(X) for score in self._others]])


# --- columns -------------------------------------------------------------------------------------


class _Columns:
    """The features of all leaves side by side, each list of them once for each way to read it.

    `places` says where those of each leaf begin.
    """

    def __init__(self, leaves: list[blueprint.Leaf]) -> None:
        self._vocabulary = Vocabulary([each for leaf in leaves for each in leaf.features])
        lists = {(id(leaf.features), _reading(leaf)): leaf.features for leaf in leaves}
        starts = np.cumsum([0, *map(len, lists.values())]).tolist()
        places = dict(zip(lists, starts, strict=False))
        self.places = {id(leaf): places[id(leaf.features), _reading(leaf)] for leaf in leaves}
        readings = np.repeat([reading for _, reading in lists], np.diff(starts)).astype(np.int8)
        features = [feature for each in lists.values() for feature in each]
        self._arrays = (*self._vocabulary.arrays(features), readings)

    def __call__(self, rows: Sequence[Sequence[Any]]) -> Doubles:
        """Return the features of rows; texts are looked up first."""
        numbers, codes = self._vocabulary.numbers, self._vocabulary.codes.items()
        values = np.array(
            [
                [row[k] for k in numbers]
                + [known.get(row[k] if row[k] == row[k] else NAN, 0) for k, known in codes]
                for row in rows
            ],
            dtype=np.float64,
        )
        X = np.empty((len(rows), self._arrays[0].size))
        if not _prepare(values, *self._arrays, X):
            raise Refused
        return X


_SINGLE, _TINY_IS_ZERO, _NO_GAPS = 1, 2, 4


def _reading(leaf: blueprint.Leaf) -> int:
    """Return how a leaf reads numbers."""
    if not isinstance(leaf, blueprint.Trees):
        return 0
    rounding = {"none": 0, "single": _SINGLE, "tiny": _TINY_IS_ZERO}[leaf.rounding]
    return rounding + _NO_GAPS * (not leaf.takes_gaps)


@njit(cache=True)
def _prepare(values, sources, starts, missing, stages, table, readings, out):
    """Compute features as the libraries do, and return whether they take all of them."""
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            number = values[i, sources[k]]
            if starts[k] >= 0:
                number = table[starts[k] + np.int64(number)]
            elif number != number:
                number = missing[k]
            elif abs(number) == np.inf:
                return False  # many models take no infinite numbers: let them say so
            else:
                for stage in range(0, stages.shape[0], 2):
                    number = (number - stages[stage, k]) / stages[stage + 1, k]
            reading = readings[k]
            if reading & _SINGLE:
                number = np.float64(np.float32(number))
            elif reading & _TINY_IS_ZERO and abs(number) <= TINY:
                number = 0.0
            out[i, k] = number
            if (reading & _NO_GAPS and number != number) or abs(number) == np.inf:
                return False
    return True


# --- trees ---------------------------------------------------------------------------------------


class _Forest:
    """All trees of a model; returns the sum of each leaf of the blueprint."""

    def __init__(self, leaves: list[blueprint.Trees], places: list[int]) -> None:
        trees = [
            (tree, first, place)
            for place, (leaf, first) in enumerate(zip(leaves, places, strict=True))
            for tree in leaf.trees
        ]
        self._nodes, self._roots = packed([each[0] for each in trees], [each[1] for each in trees])
        self._sums_of = np.array([place for _, _, place in trees], dtype=np.int64)
        slack = [0.0 if leaf.in_order else 2.02 * (len(leaf.trees) + 2) * _UNIT for leaf in leaves]
        self._slack = np.array(slack)[:, np.newaxis]
        self._starts = np.array([leaf.start for leaf in leaves])[:, np.newaxis]
        self._divisors = np.array([float(leaf.divisor) for leaf in leaves])[:, np.newaxis]

    def __call__(self, X: Doubles) -> Doubles:
        """Return the scores of the leaves (rows) for rows (columns)."""
        if not self._starts.size:
            return self._starts
        sums = np.repeat(self._starts, len(X), axis=1)
        add_leaves(self._nodes, self._roots, self._sums_of, X, sums)
        sums -= self._slack * sums
        sums /= self._divisors
        return sums


# --- sums of products, and classifiers themselves ------------------------------------------------


def _layers(leaf: blueprint.Layers, first: int) -> Callable[[Doubles], Doubles]:
    weights = tuple(np.ascontiguousarray(W, dtype=np.float64) for W in leaf.weights)
    shifts = tuple(np.array(b, dtype=np.float64) for b in leaf.shifts)
    activation = blueprint.ACTIVATIONS.index(leaf.activation)

    def low(X: Doubles) -> Doubles:
        out = np.empty(len(X))
        if not _low_sums(X, first, weights, shifts, activation, out):
            raise Refused
        return out

    return low


@njit(cache=True)
def _low_sums(X, first, weights, shifts, activation, out):
    """Fill in what the last sums of a network are not below.

    Returns False for numbers that are not finite, whose bounds are not finite either.
    """
    values = X[:, first : first + weights[0].shape[0]].copy()
    errors = np.zeros(values.shape)
    for place in range(len(weights)):
        if place:
            _activate(values, errors, activation)
        values, errors = _next_layer(values, errors, weights[place], shifts[place])
    for i in range(out.size):
        out[i] = values[i, 0] - errors[i, 0]
        if errors[i, 0] - errors[i, 0] != 0:
            return False
    return True


@njit(cache=True)
def _next_layer(values, errors, W, b):
    """Return the sums of a layer, and how far those of the model can be from them."""
    rounding = 2.02 * (W.shape[0] + 2) * _UNIT
    sums, bounds = np.empty((len(values), b.size)), np.empty((len(values), b.size))
    for i in range(len(values)):
        for j in range(b.size):
            total, size, moved = b[j], abs(b[j]), 0.0
            for k in range(W.shape[0]):
                total += values[i, k] * W[k, j]
                size += (abs(values[i, k]) + errors[i, k]) * abs(W[k, j])
                moved += errors[i, k] * abs(W[k, j])
            sums[i, j], bounds[i, j] = total, moved * (1 + 1e-12) + rounding * size
    return sums, bounds


@njit(cache=True)
def _activate(values, errors, activation):
    """Apply one of `ACTIVATIONS`, none of which is steeper than 1."""
    for i in range(len(values)):
        for j in range(values.shape[1]):
            number = values[i, j]
            if activation == 1:
                values[i, j] = 1 / (1 + math.exp(-number))
            elif activation == 2:
                values[i, j] = max(number, 0.0)
            elif activation == 3:
                values[i, j] = math.tanh(number)
            errors[i, j] += _FEW * _UNIT * abs(values[i, j])


def _asked(leaf: blueprint.Asked, first: int) -> Callable[[Doubles], Doubles]:
    ask, learner, end = leaf.ask, leaf.learner, first + len(leaf.features)

    def score(X: Doubles) -> Doubles:
        own = np.ascontiguousarray(X[:, first:end])
        asked = score_classes(learner, own, method=ask.method, rare_label=ask.label).rare
        return np.asarray(asked, dtype=np.float64)

    return score


_LEAVES: dict[type, Callable[[Any, int], Callable[[Doubles], Doubles]]] = {
    blueprint.Asked: _asked,
    blueprint.Layers: _layers,
}


# --- combinations --------------------------------------------------------------------------------


def _combined(node: blueprint.Node, places: dict[int, int]) -> Callable[[Scores], Doubles]:
    """Return a function of the scores of all leaves."""
    if isinstance(node, blueprint.Leaf):
        place = places[id(node)]
        return lambda scores: scores[place]
    combine = _COMBINED[type(node)](node)
    parts = [_combined(part, places) for part in node.parts]
    return lambda scores: combine([part(scores) for part in parts])


def _sum(node: blueprint.Sum) -> Callable[[Scores], Doubles]:
    def added(scores: Scores) -> Doubles:
        total = scores[0].copy()
        for more in scores[1:]:  # in their order, as NumPy does for several rows
            total += more
        return total / node.divisor

    return added


def _logistic(node: blueprint.Logistic) -> Callable[[Scores], Doubles]:
    probability: Callable[[Doubles], Doubles] = _of_lightgbm if node.of_lightgbm else expit
    if blueprint.is_exact(node):
        if node.complement:
            return lambda scores: 1 - probability(-scores[0])
        return lambda scores: probability(scores[0])
    error = _FEW * _UNIT
    if node.complement:
        return lambda scores: np.maximum(probability(scores[0]) - error, 0.0)
    return lambda scores: probability(scores[0]) * (1 - error)


def _of_lightgbm(scores: Doubles) -> Doubles:
    """Return what LightGBM computes, with the same exponential function."""
    return np.array([1.0 / (1.0 + _exp(-score)) for score in scores.tolist()])


def _exp(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def _weighted(node: blueprint.Weighted) -> Callable[[Scores], Doubles]:
    low = _layers(blueprint.Layers([], [node.weights[:, np.newaxis]], [np.zeros(1)]), 0)
    return lambda scores: low(np.ascontiguousarray(np.transpose(scores)))


def _log_odds(node: blueprint.LogOdds) -> Callable[[Scores], Doubles]:
    slack, pull = 2.02 * (node.n_terms + 8) * _UNIT, node.pull
    return lambda scores: _log_odds_below(scores[0], pull, slack)


@njit(cache=True)
def _log_odds_below(chances, pull, slack):
    """Return what log-odds are not below, from what a probability is not below."""
    out = np.empty_like(chances)
    for i in range(chances.size):
        rare = math.log((chances[i] * pull + 0.5) / (pull + 1))
        other = math.log(((1 - chances[i] + slack) * pull + 0.5) / (pull + 1))
        out[i] = rare - other - 2.0**-50 * (abs(rare) + abs(other) + 1)
    return out


_COMBINED: dict[type, Callable[[Any], Callable[[Scores], Doubles]]] = {
    blueprint.Logistic: _logistic,
    blueprint.LogOdds: _log_odds,
    blueprint.Sum: _sum,
    blueprint.Weighted: _weighted,
}
