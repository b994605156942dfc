"""Fitted trees of several libraries in one form, and packed to be walked fast.

A packed node takes 16 bytes, and its two children are neighbours: a large forest takes one read
from memory per level of each tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import Doubles, Rows

#: `code` is twice the place of the number that is compared, plus 1 if a missing one goes left.
NODE = np.dtype([("value", np.float64), ("code", np.int32), ("left", np.int32)])
#: LightGBM takes what is not larger for 0.
TINY = float(np.float32(1e-35))
# Loading the compiled code takes as long as so many walks of a row through a tree.
_FEW_WALKS = 20_000


class Unsupported(Exception):
    """A model, or part of it, for which there is no blueprint; the message names it."""


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
    described = booster.dump_model()
    if described["num_tree_per_iteration"] != 1 or described["average_output"]:
        raise Unsupported("LightGBM with several scores, or an average of its trees")
    return [_lightgbm_tree(each["tree_structure"]) for each in described["tree_info"]]


def _lightgbm_tree(root: dict[str, Any]) -> GrownTree:
    """Number the nodes level by level."""
    nodes, rows = [root], []
    for node in nodes:
        if "leaf_coeff" in node:
            raise Unsupported("LightGBM with linear trees")
        if "split_feature" not in node:
            rows.append((-1, -1, 0, node["leaf_value"], False))
            continue
        gaps = node["missing_type"]
        if node["decision_type"] != "<=" or gaps == "Zero":
            raise Unsupported("LightGBM with native categories, or with zero_as_missing")
        # Without gaps in training, a missing value counts as 0.
        split = node["threshold"] * (np.inf if abs(node["threshold"]) == 1e300 else 1)  # no JSON
        left = split >= 0 if gaps == "None" else node["default_left"]
        rows.append((len(nodes), len(nodes) + 1, node["split_feature"], split, left))
        nodes += [node["left_child"], node["right_child"]]
    return GrownTree(*map(np.array, zip(*rows, strict=True)))


# --- packed trees --------------------------------------------------------------------------------


def packed(trees: list[GrownTree], firsts: list[int]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the nodes of all trees, and their roots; the features of a tree begin at its first."""
    sizes = [tree.left.size for tree in trees]
    nodes = np.empty(sum(sizes), dtype=NODE)
    roots = np.cumsum([0, *sizes])[:-1].astype(np.int64)
    for root, tree, first in zip(roots.tolist(), trees, firsts, strict=True):
        order = _level_by_level(tree)
        own, left = nodes[root : root + order.size], tree.left[order]
        is_inner = left >= 0
        own["value"] = tree.value[order]
        own["code"] = (tree.feature[order] + first) * 2 + tree.missing_left[order]
        own["left"] = np.where(is_inner, root - 1 + 2 * np.cumsum(is_inner), -1)
    return nodes, roots


def _level_by_level(tree: GrownTree) -> Rows:
    """Return the nodes of a tree from the root down, the two children of a node together."""
    levels = [np.zeros(1, dtype=np.intp)]
    while levels[-1].size:
        inner = levels[-1][tree.left[levels[-1]] >= 0]
        levels.append(np.column_stack([tree.left[inner], tree.right[inner]]).ravel())
    return np.concatenate(levels)


def unpacked(nodes: NDArray[Any], roots: NDArray[np.int64]) -> list[GrownTree]:
    """Return packed trees one by one."""
    trees = []
    for root, own in zip(roots.tolist(), np.split(nodes, roots[1:]), strict=True):
        # A child of another tree is no leaf: as child 0, it leads back, and no check accepts it.
        left = np.where(own["left"] < 0, -1, np.maximum(own["left"] - root, 0))
        right = np.where(left < 0, -1, left + 1)
        code = own["code"]
        trees.append(GrownTree(left, right, code >> 1, own["value"], (code & 1) == 1))
    return trees


def mean_leaves(nodes: NDArray[Any], roots: NDArray[np.int64], X: Doubles) -> Doubles:
    """Return the mean over all trees for each row; a few walks need no compiled code."""
    sums = np.zeros(len(X))
    if roots.size * len(X) > _FEW_WALKS:
        from .walks import add_leaves

        add_leaves(nodes, roots, np.zeros(roots.size, dtype=np.int64), X, sums[None])
        return sums / roots.size
    for root in roots.tolist():  # in their order, as the compiled code adds them
        at, going = np.full(len(X), root), np.arange(len(X))
        while going.size:
            here = nodes[at[going]]
            going, here = going[here["left"] >= 0], here[here["left"] >= 0]
            asked = X[going, here["code"] >> 1]
            goes_right = np.where(np.isnan(asked), here["code"] & 1 == 0, asked > here["value"])
            at[going] = here["left"] + goes_right
        sums += nodes["value"][at]
    return sums / roots.size
