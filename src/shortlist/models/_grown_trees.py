"""Fitted trees of scikit-learn and LightGBM in one form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles
from ._columns import Unsupported

# LightGBM's types of decisions: a bit for sets, one for missing values, and two for their kind.
_IN_SET, _MISSING_LEFT = 1, 2
_NO_GAPS, _ZERO_IS_MISSING, _GAPS = 0, 1, 2
_JUST_ABOVE_MINUS_ONE = float(np.nextafter(-1.0, 0.0))


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


class GrownTrees(NamedTuple):
    """Trees whose leaves are added up, in their order, from `start`.

    `sets` are sets of whole numbers, as bits of uint32; numbers below `least` are in none of them.
    """

    trees: list[GrownTree]
    sets: list[NDArray[np.uint32]]
    start: float = 0.0
    least: float = 0.0


def sklearn_trees(estimators: list[Any], label: int) -> GrownTrees:
    """Return the sum over decision trees of the share of a label in the leaf."""
    return GrownTrees([_sklearn_tree(estimator.tree_, label) for estimator in estimators], [])


def _sklearn_tree(tree: Any, label: int) -> GrownTree:
    is_leaf = tree.children_left < 0
    return GrownTree(
        tree.children_left,
        tree.children_right,
        tree.feature,
        np.where(is_leaf, tree.value[:, 0, label], tree.threshold),
        tree.missing_go_to_left.astype(bool),
        np.full(tree.node_count, -1),
    )


def histogram_trees(learner: Any) -> GrownTrees:
    """Return the raw score of histogram-based boosting with two classes."""
    known, place_of = learner._bin_mapper.make_known_categories_bitsets()
    trees: list[GrownTree] = []
    sets: list[NDArray[np.uint32]] = []
    for (predictor,) in learner._predictors:
        trees.append(_histogram_tree(predictor, known, place_of, sets))
    (start,) = np.ravel(learner._baseline_prediction).tolist()
    return GrownTrees(trees, sets, start=start)


def _histogram_tree(predictor: Any, known: Any, place_of: Any, sets: list[Any]) -> GrownTree:
    nodes = predictor.nodes
    is_leaf, missing_left = nodes["is_leaf"] == 1, nodes["missing_go_to_left"] == 1
    in_set = np.full(len(nodes), -1)
    for place in np.flatnonzero((nodes["is_categorical"] == 1) & ~is_leaf).tolist():
        left = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][place]]
        right = known[place_of[nodes["feature_idx"][place]]] & ~left
        in_set[place] = len(sets)
        sets.append(np.asarray(right if missing_left[place] else left, dtype=np.uint32))
    return GrownTree(
        np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
        np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
        nodes["feature_idx"],
        np.where(is_leaf, nodes["value"], nodes["num_threshold"]),
        missing_left,
        in_set,
    )


def lightgbm_trees(booster: Any) -> GrownTrees:
    """Return the raw score of a booster of LightGBM with one score per row."""
    head, *blocks = booster.model_to_string().split("\n\nTree=")
    settings = _entries(head)
    if settings["num_tree_per_iteration"] != "1" or "average_output" in head.split("\n"):
        raise Unsupported("LightGBM with several scores, or an average of its trees")
    sets: list[NDArray[np.uint32]] = []
    trees = [_lightgbm_tree(_entries(block), sets) for block in blocks]
    return GrownTrees(trees, sets, least=_JUST_ABOVE_MINUS_ONE)


def _entries(block: str) -> dict[str, str]:
    lines = block.partition("\n\n\n")[0].split("\n")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _lightgbm_tree(entries: dict[str, str], sets: list[Any]) -> GrownTree:
    if entries.get("is_linear", "0") != "0":
        raise Unsupported("LightGBM with linear trees")
    leaves = _numbers(entries, "leaf_value", np.float64)
    n_nodes = leaves.size - 1
    kinds = _numbers(entries, "decision_type", np.int64)
    thresholds = _numbers(entries, "threshold", np.float64)
    if n_nodes == 0:
        kinds, thresholds = np.empty(0, np.int64), np.empty(0)
    is_set = (kinds & _IN_SET) > 0
    gaps = kinds >> 2
    if (gaps[~is_set] == _ZERO_IS_MISSING).any():
        raise Unsupported("LightGBM with zero_as_missing")
    # Without gaps in training, a missing value counts as 0; in a set, it goes to the right.
    as_zero = (gaps == _NO_GAPS) & (thresholds >= 0)
    as_missing = (gaps == _GAPS) & ((kinds & _MISSING_LEFT) > 0)
    missing_left = ~is_set & (as_zero | as_missing)
    in_set = np.where(is_set, thresholds + len(sets), -1).astype(np.int64)
    sets += _sets(entries)
    return GrownTree(
        _joined(_children(entries, "left_child", n_nodes), np.full(leaves.size, -1)),
        _joined(_children(entries, "right_child", n_nodes), np.full(leaves.size, -1)),
        _joined(_numbers(entries, "split_feature", np.int64)[:n_nodes], np.zeros(leaves.size, int)),
        _joined(thresholds, leaves),
        _joined(missing_left, np.zeros(leaves.size, dtype=bool)),
        _joined(in_set, np.full(leaves.size, -1)),
    )


def _joined(nodes: NDArray[Any], leaves: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([nodes, leaves])


def _children(entries: dict[str, str], name: str, n_nodes: int) -> NDArray[np.int64]:
    """Return the children of nodes; leaf k has the number -1 - k there, and follows the nodes."""
    children = _numbers(entries, name, np.int64)[:n_nodes]
    return np.where(children >= 0, children, n_nodes - 1 - children)


def _numbers(entries: dict[str, str], name: str, dtype: Any) -> NDArray[Any]:
    return np.array(entries.get(name, "").split(), dtype=dtype)


def _sets(entries: dict[str, str]) -> list[NDArray[np.uint32]]:
    if entries.get("num_cat", "0") == "0":
        return []
    words = _numbers(entries, "cat_threshold", np.uint32)
    return np.split(words, _numbers(entries, "cat_boundaries", np.int64)[1:-1])
