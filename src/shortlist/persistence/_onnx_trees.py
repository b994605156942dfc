"""Ensembles of trees as one ONNX operator, with the comparisons that the libraries make."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from ..exceptions import ModelFileError
from ._onnx_extra import onnx
from ._onnx_graph import DOUBLE, FLOAT, ML, GraphBuilder

__all__ = ["add_booster", "add_forest"]

_SUM = 1
_LESS_OR_EQUAL = 0


class _Trees:
    """The nodes and leaves of all trees, numbered through."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.features: list[int] = []
        self.splits: list[float] = []
        self.children: list[tuple[int, int]] = []  # where an item goes if the comparison holds
        self.is_leaf: list[tuple[bool, bool]] = []
        self.weights: list[float] = []

    def leaf(self, weight: float) -> int:
        """Add a leaf and return its number."""
        self.weights.append(weight)
        return len(self.weights) - 1

    def node(self, feature: int, split: float) -> int:
        """Add a node whose children follow later, and return its number."""
        self.features.append(feature)
        self.splits.append(split)
        self.children.append((0, 0))
        self.is_leaf.append((False, False))
        return len(self.features) - 1

    def stump(self, weight: float) -> int:
        """Add a tree that is one leaf: a comparison with two equal ends."""
        root = self.node(0, 0.0)
        leaf = self.leaf(weight)
        self.children[root], self.is_leaf[root] = (leaf, leaf), (True, True)
        return root

    def add_to(self, graph: GraphBuilder, items: str) -> str:
        """Add the operator that sums the leaves of each row."""
        tensor = onnx.numpy_helper.from_array
        modes = np.full(len(self.features), _LESS_OR_EQUAL, dtype=np.uint8)
        return graph.add(
            "TreeEnsemble",
            items,
            domain=ML,
            n_targets=1,
            aggregate_function=_SUM,
            tree_roots=self.roots,
            nodes_featureids=self.features,
            nodes_modes=tensor(modes),
            nodes_splits=tensor(np.array(self.splits, dtype=np.float64)),
            nodes_truenodeids=[true for true, _ in self.children],
            nodes_trueleafs=[int(true) for true, _ in self.is_leaf],
            nodes_falsenodeids=[false for _, false in self.children],
            nodes_falseleafs=[int(false) for _, false in self.is_leaf],
            leaf_targetids=[0] * len(self.weights),
            leaf_weights=tensor(np.array(self.weights, dtype=np.float64)),
        )


def add_forest(graph: GraphBuilder, forest: RandomForestClassifier, items: str) -> str:
    """Add the mean over the trees of the share of rare items in the leaf of each row."""
    rare = int(np.flatnonzero(forest.classes_)[0])
    trees = _Trees()
    for estimator in forest.estimators_:
        tree = estimator.tree_
        shares = tree.value[:, 0, :]
        weights = shares[:, rare] / shares.sum(axis=1)
        trees.roots.append(_add_sklearn_tree(trees, tree, weights))
    # scikit-learn compares items in single precision with splits in double precision.
    single = graph.add("Cast", graph.add("Cast", items, to=FLOAT), to=DOUBLE)
    summed = trees.add_to(graph, single)
    return graph.add("Div", summed, graph.constant(float(len(forest.estimators_))))


def _add_sklearn_tree(trees: _Trees, tree: Any, weights: Any) -> int:
    if tree.children_left[0] == tree.children_right[0]:
        return trees.stump(float(weights[0]))
    is_leaf = tree.children_left == tree.children_right
    numbers = [
        trees.leaf(float(weights[place]))
        if is_leaf[place]
        else trees.node(int(tree.feature[place]), float(tree.threshold[place]))
        for place in range(tree.node_count)
    ]
    for place in np.flatnonzero(~is_leaf).tolist():
        ends = int(tree.children_left[place]), int(tree.children_right[place])
        trees.children[numbers[place]] = (numbers[ends[0]], numbers[ends[1]])
        trees.is_leaf[numbers[place]] = (bool(is_leaf[ends[0]]), bool(is_leaf[ends[1]]))
    return numbers[0]


def add_booster(graph: GraphBuilder, booster: Any, items: str) -> str:
    """Add LightGBM's sum of leaves."""
    trees = _Trees()
    for info in booster.dump_model()["tree_info"]:
        structure = info["tree_structure"]
        add = _add_lightgbm_stump if _is_leaf(structure) else _add_lightgbm_node
        trees.roots.append(add(trees, structure))
    return trees.add_to(graph, items)


def _add_lightgbm_stump(trees: _Trees, structure: dict[str, Any]) -> int:
    return trees.stump(structure["leaf_value"])


def _add_lightgbm_node(trees: _Trees, structure: dict[str, Any]) -> int:
    if structure["decision_type"] != "<=":
        raise ModelFileError(
            f"LightGBM's comparison {structure['decision_type']!r} cannot be exported to ONNX. "
            "Fit with --learner forest."
        )
    number = trees.node(structure["split_feature"], structure["threshold"])
    left, right = structure["left_child"], structure["right_child"]
    trees.children[number] = (_add_lightgbm_end(trees, left), _add_lightgbm_end(trees, right))
    trees.is_leaf[number] = (_is_leaf(left), _is_leaf(right))
    return number


def _add_lightgbm_end(trees: _Trees, structure: dict[str, Any]) -> int:
    if _is_leaf(structure):
        return trees.leaf(structure["leaf_value"])
    return _add_lightgbm_node(trees, structure)


def _is_leaf(structure: dict[str, Any]) -> bool:
    return "split_feature" not in structure
