"""A blueprint as compiled functions of single rows.

No score is above that of the model: it has the same bits where the order of the sums is known, and
otherwise a bound of the rounding errors is subtracted. A library adds the terms of a product of
matrices in an order of its own, which changes with the number of rows. A sum of n terms has an
error of at most about n units in the last place times the sum of the sizes of its terms, in every
order (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). The bounds here cover
two such errors: that of the sum here, and that of the model's.

A node of a tree takes 16 bytes, and its two children are neighbours: a large forest takes one read
from memory per level of each tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

from .._core.arrays import Doubles
from .._core.scoring import score_classes
from . import blueprint
from ._grown_trees import GrownTree
from ._plan import Encoded, Plan, Refused, Vocabulary, plan_of

#: The largest relative error of one operation.
_UNIT = 2.0**-53
#: More than the error of a function of one number, in units.
_FEW = 16
#: LightGBM takes what is not larger for 0.
_TINY = float(np.float32(1e-35))

_NODE = np.dtype([("value", np.float64), ("code", np.int32), ("left", np.int32)])
_MISSING_LEFT, _IN_SET = 1, 2  # the lowest bits of a code; the feature lies above them
_AT_ONCE = 8  # trees that are walked together


def compiled(
    node: blueprint.Node, vocabulary: Vocabulary, plans: dict[int, Plan]
) -> Callable[[Encoded], Doubles]:
    """Return a function of encoded rows. Parts with the same preparation share its result."""
    if isinstance(node, blueprint.Leaf):
        key, score = id(node.prepared), _LEAVES[type(node)](node)
        if key not in plans:
            plans[key] = plan_of(node.prepared, vocabulary)
        plan = plans[key]
        return lambda rows: score(rows.prepared_by(plan))
    parts = [compiled(part, vocabulary, plans) for part in node.parts]
    combine = _COMBINED[type(node)](node)
    if len(parts) == 1:
        (only,) = parts
        return lambda rows: combine([only(rows)])
    return lambda rows: combine([part(rows) for part in parts])


# --- trees ---------------------------------------------------------------------------------------


def _trees(node: blueprint.Trees) -> Callable[[Doubles], Doubles]:
    leaves, n_trees, divisor = _packed(node), len(node.grown.trees), node.divisor
    if node.rounding == "none" and node.takes_gaps and node.takes_infinity:
        return leaves
    tiny = _TINY if node.rounding == "tiny" else -1.0
    how = np.array([node.rounding == "single", tiny, not node.takes_gaps, not node.takes_infinity])

    def score(X: Doubles) -> Doubles:
        numbers = np.empty_like(X)
        if not _read(X, how, numbers):
            raise Refused
        sums = leaves(numbers)
        if not node.in_order:
            sums -= 2.02 * (n_trees + 2) * _UNIT * sums
        return sums if divisor == 1 else sums / divisor

    return score


@njit(cache=True)
def _read(X, how, out):
    """Round numbers as a library does, and return whether it takes all of them."""
    to_single, tiny = how[0] != 0, how[1]
    refuses_gaps, refuses_infinity = how[2] != 0, how[3] != 0
    for i in range(X.shape[0]):
        for k in range(X.shape[1]):
            number = X[i, k]
            if to_single:
                number = np.float64(np.float32(number))
            elif abs(number) <= tiny:
                number = 0.0
            out[i, k] = number
            if number != number:
                if refuses_gaps:
                    return False
            elif refuses_infinity and number - number != 0:
                return False
    return True


def _packed(node: blueprint.Trees) -> Callable[[Doubles], Doubles]:
    """Return the sum of the leaves that a row reaches, in the order of the trees."""
    trees, sets, start, least = node.grown
    sizes = np.array([tree.left.size for tree in trees], dtype=np.int64)
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    nodes = np.empty(int(sizes.sum()), dtype=_NODE)
    set_starts = np.cumsum([0, *(words.size for words in sets)]).astype(np.int64)
    words = np.concatenate([np.empty(0, np.uint32), *sets]).astype(np.uint32)
    for root, tree in zip(roots.tolist(), trees, strict=True):
        left = np.ascontiguousarray(tree.left, np.int64)
        right = np.ascontiguousarray(tree.right, np.int64)
        values = np.where(tree.in_set >= 0, tree.in_set, tree.value).astype(np.float64)
        _pack(left, right, _codes(tree), values, nodes, root)

    def leaves(X: Doubles) -> Doubles:
        out = np.empty(len(X))
        _add_leaves(nodes, roots, set_starts, words, X, start, least, out)
        return out

    return leaves


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


# --- sums of products, and classifiers themselves ------------------------------------------------

_ACTIVATIONS: dict[str, Callable[[Doubles], Doubles]] = {
    "identity": lambda z: z,
    "logistic": expit,
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
}


def _layers(node: blueprint.Layers) -> Callable[[Doubles], Doubles]:
    activate, last = _ACTIVATIONS[node.activation], len(node.weights) - 1
    layers = [
        (np.ascontiguousarray(W, dtype=np.float64), np.asarray(b, dtype=np.float64))
        for W, b in zip(node.weights, node.shifts, strict=True)
    ]

    def low(X: Doubles) -> Doubles:
        values, errors = X, np.zeros(X.shape)
        for place, (W, b) in enumerate(layers):
            sums, bounds = np.empty((2, len(X), b.size))
            if not _next_layer(values, errors, W, b, sums, bounds):
                raise Refused
            values, errors = sums, bounds
            if place < last:  # none of these functions is steeper than 1
                values = activate(values)
                errors += _FEW * _UNIT * np.abs(values)
        return values[:, 0] - errors[:, 0]

    return low


@njit(cache=True)
def _next_layer(X, errors, W, b, values, bounds):
    """Fill in the sums of a layer, and how far those of the model can be from them.

    Returns False for numbers that are not finite, whose bounds are not finite either.
    """
    rounding = 2.02 * (W.shape[0] + 2) * 2.0**-53
    for i in range(X.shape[0]):
        for j in range(W.shape[1]):
            value, size, moved = b[j], abs(b[j]), 0.0
            for k in range(W.shape[0]):
                value += X[i, k] * W[k, j]
                size += (abs(X[i, k]) + errors[i, k]) * abs(W[k, j])
                moved += errors[i, k] * abs(W[k, j])
            values[i, j] = value
            bound = moved * (1 + 1e-12) + rounding * size
            bounds[i, j] = bound
            if bound - bound != 0:
                return False
    return True


def _asked(node: blueprint.Asked) -> Callable[[Doubles], Doubles]:
    ask, learner = node.ask, node.learner

    def score(X: Doubles) -> Doubles:
        asked = {"method": ask.method, "rare_label": ask.label, "classes": ask.classes}
        return np.asarray(score_classes(learner, X, **asked).rare, dtype=np.float64)

    return score


_LEAVES: dict[type, Callable[[Any], Callable[[Doubles], Doubles]]] = {
    blueprint.Asked: _asked,
    blueprint.Layers: _layers,
    blueprint.Trees: _trees,
    blueprint.Vectors: _asked,
}


# --- combinations --------------------------------------------------------------------------------

_Combine = Callable[[list[Doubles]], Doubles]


def _sum(node: blueprint.Sum) -> _Combine:
    return _added if node.divisor == 1 else lambda scores: _added(scores) / node.divisor


def _added(scores: list[Doubles]) -> Doubles:
    """Add up scores in their order, as NumPy does for several rows."""
    total = scores[0].copy()
    for more in scores[1:]:
        total += more
    return total


def averaged(scores: list[Doubles]) -> Doubles:
    """Average scores: add up in order, and divide."""
    return _added(scores) / len(scores) if len(scores) > 1 else scores[0]


def _logistic(node: blueprint.Logistic) -> _Combine:
    probability: Callable[[Doubles], Doubles] = expit
    if node.steepness is not None:
        probability = _of_lightgbm(node.steepness)
    if blueprint.is_exact(node):
        if node.complement:
            return lambda scores: 1 - probability(-scores[0])
        return lambda scores: probability(scores[0])
    error = _FEW * _UNIT
    if node.complement:
        return lambda scores: np.maximum(probability(scores[0]) - error, 0.0)
    return lambda scores: probability(scores[0]) * (1 - error)


def _of_lightgbm(steepness: float) -> Callable[[Doubles], Doubles]:
    """Return what LightGBM computes, with the same exponential function."""

    def of_one(number: float) -> float:
        try:
            return 1.0 / (1.0 + math.exp(-steepness * number))
        except OverflowError:
            return 0.0

    return lambda raw: np.array([of_one(number) for number in raw.tolist()])


def _weighted(node: blueprint.Weighted) -> _Combine:
    weights = node.weights
    return lambda scores: _weighted_below(np.array(scores), weights)


@njit(cache=True)
def _weighted_below(scores, weights):
    """Return what a weighted sum over the first axis is not below."""
    out = np.empty(scores.shape[1])
    for i in range(out.size):
        total, size = 0.0, 0.0
        for k in range(weights.size):
            total += weights[k] * scores[k, i]
            size += abs(weights[k] * scores[k, i])
        out[i] = total - 2.02 * (weights.size + 2) * 2.0**-53 * size
    return out


def _log_odds(node: blueprint.LogOdds) -> _Combine:
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


_COMBINED: dict[type, Callable[[Any], _Combine]] = {
    blueprint.Logistic: _logistic,
    blueprint.LogOdds: _log_odds,
    blueprint.Negated: lambda node: lambda scores: -scores[0],
    blueprint.Sum: _sum,
    blueprint.Weighted: _weighted,
}
