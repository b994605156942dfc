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


class GrownTree(NamedTuple):
    """A tree with its root at 0.

    `left` and `right` are the children of each node, -1 for a leaf. `value` is what a number is
    compared with, or the weight of a leaf.
    """

    left: NDArray[np.integer]
    right: NDArray[np.integer]
    feature: NDArray[np.integer]
    value: Doubles
    missing_left: NDArray[np.bool_]

    def negated(self) -> GrownTree:
        """Return the tree with the negated weights of its leaves."""
        return self._replace(value=np.where(self.left < 0, -self.value, self.value))


def sklearn_tree(tree: Any, label: int) -> GrownTree:
    """Return a decision tree, with the share of a label in each leaf."""
    return GrownTree(
        tree.children_left,
        tree.children_right,
        np.maximum(tree.feature, 0),
        np.where(tree.children_left < 0, tree.value[:, 0, label], tree.threshold),
        tree.missing_go_to_left.astype(bool),
    )


def histogram_tree(nodes: Any) -> GrownTree:
    """Return a tree of histogram-based boosting."""
    is_leaf = nodes["is_leaf"] == 1
    return GrownTree(
        np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
        np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
        nodes["feature_idx"],
        np.where(is_leaf, nodes["value"], nodes["num_threshold"]),
        nodes["missing_go_to_left"] == 1,
    )


def is_sound(left: Any, right: Any, feature: Any, n_features: int) -> bool:
    """Whether every path through a tree ends in a leaf, and only asks for columns that exist.

    Compiled code follows the numbers of a tree without looking at them again. Children come after
    their parents in every tree that was grown.
    """
    parents = np.flatnonzero(left != -1)
    children = np.stack([left[parents], right[parents]])
    columns = feature[parents]
    return bool(
        np.all((children > parents) & (children < len(left)))
        and np.all((columns >= 0) & (columns < n_features))
    )


def lightgbm_trees(booster: Any) -> list[GrownTree]:
    """Return the trees of a booster of LightGBM with one score per row."""
    head, *blocks = booster.model_to_string().split("\n\nTree=")
    if _entries(head)["num_tree_per_iteration"] != "1" or "average_output" in head.split("\n"):
        raise Unsupported("LightGBM with several scores, or an average of its trees")
    return [_lightgbm_tree(_entries(block)) for block in blocks]


def _entries(block: str) -> dict[str, str]:
    lines = block.partition("\n\n\n")[0].split("\n")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _lightgbm_tree(entries: dict[str, str]) -> GrownTree:
    if entries.get("is_linear", "0") != "0":
        raise Unsupported("LightGBM with linear trees")
    leaves = _numbers(entries, "leaf_value", np.float64)
    n_nodes = leaves.size - 1  # a single leaf may come with the description of a node
    kinds = _numbers(entries, "decision_type", np.int64)[:n_nodes]
    thresholds = _numbers(entries, "threshold", np.float64)[:n_nodes]
    gaps = kinds >> 2
    if ((kinds & _IN_SET) > 0).any():
        raise Unsupported("boosting with native categories")
    if (gaps == _ZERO_IS_MISSING).any():
        raise Unsupported("LightGBM with zero_as_missing")
    # Without gaps in training, a missing value counts as 0.
    as_zero = (gaps == _NO_GAPS) & (thresholds >= 0)
    as_missing = (gaps == _GAPS) & ((kinds & _MISSING_LEFT) > 0)
    none = np.full(leaves.size, -1)
    return GrownTree(
        np.concatenate([_children(entries, "left_child", n_nodes), none]),
        np.concatenate([_children(entries, "right_child", n_nodes), none]),
        np.concatenate([_numbers(entries, "split_feature", np.int64)[:n_nodes], none + 1]),
        np.concatenate([thresholds, leaves]),
        np.concatenate([as_zero | as_missing, none > 0]),
    )


def _children(entries: dict[str, str], name: str, n_nodes: int) -> NDArray[np.int64]:
    """Return the children of nodes; leaf k has the number -1 - k there, and follows the nodes."""
    children = _numbers(entries, name, np.int64)[:n_nodes]
    return np.where(children >= 0, children, n_nodes - 1 - children)


def _numbers(entries: dict[str, str], name: str, dtype: Any) -> NDArray[Any]:
    return np.array(entries.get(name, "").split(), dtype=dtype)
