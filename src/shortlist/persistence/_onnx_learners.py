"""Fitted learners as ONNX operators, in double precision throughout.

scikit-learn's models are converted by skl2onnx if its operators keep double precision. Its
operators for trees and support vectors compute in single precision; these models are converted
here. To add a learner, add a function to `_BY_TYPE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .._core.extras import load_extra
from ..aware import (
    CapacityAwareBoostingClassifier,
    CapacityAwareForestClassifier,
    CapacityAwareLinearClassifier,
    CapacityAwareSVC,
)
from ..exceptions import ModelFileError
from ._onnx_graph import DOUBLE, FLOAT, ML, OPSETS, GraphBuilder, add_scaling

onnx = load_extra("onnx", needed_for="Exporting to ONNX")
skl2onnx = load_extra("skl2onnx", needed_for="Exporting to ONNX")

__all__ = ["add_score"]

_SUM = 1
_LESS_OR_EQUAL = 0


def add_score(graph: GraphBuilder, learner: Any, items: str, n_features: int) -> str:
    """Add the score of the rare label, which is True; return the name of the score."""
    if isinstance(learner, Pipeline):
        *steps, learner = (step for _, step in learner.steps)
        for step in steps:
            if not isinstance(step, StandardScaler):
                raise _unsupported(learner)
            items = add_scaling(graph, step, items)
    add = _BY_TYPE.get(type(learner).__name__, _add_by_skl2onnx)
    return add(graph, learner, items, n_features)


def _add_by_skl2onnx(graph: GraphBuilder, learner: Any, items: str, n_features: int) -> str:
    kind = skl2onnx.common.data_types.DoubleTensorType([None, n_features])
    try:
        model = skl2onnx.to_onnx(
            learner,
            initial_types=[("items", kind)],
            options={"zipmap": False},
            target_opset={**OPSETS, ML: 3},
        )
    except Exception as error:  # the errors of skl2onnx have no common class
        raise _unsupported(learner) from error
    kinds = {output.name: output.type.tensor_type.elem_type for output in model.graph.output}
    if kinds.get("probabilities") != DOUBLE:
        raise _unsupported(learner)
    names = graph.inline(model, items)
    rare = int(np.flatnonzero(learner.classes_)[0])
    return graph.add("Gather", names["probabilities"], graph.constant([rare], np.int64), axis=1)


def _add_svc(graph: GraphBuilder, learner: SVC, items: str, n_features: int) -> str:
    gamma = 1 / learner.n_features_in_ if learner.gamma == "auto" else learner.gamma
    if isinstance(gamma, str):  # scikit-learn does not publish the number that "scale" stands for
        raise _unsupported(learner)
    # With two classes, the decision function is the score of the second, which is True.
    coefficients, vectors = learner.dual_coef_[0], learner.support_vectors_
    kernel = _kernel(graph, learner.kernel, gamma, items, vectors, learner)
    summed = graph.add("MatMul", kernel, graph.constant(coefficients[:, np.newaxis]))
    return graph.add("Add", summed, graph.constant(learner.intercept_))


def _add_aware_svc(
    graph: GraphBuilder, learner: CapacityAwareSVC, items: str, n_features: int
) -> str:
    vectors, coefficients = learner.support_vectors_, learner.dual_coef_
    kernel = _kernel(graph, learner.kernel, learner.gamma_, items, vectors, learner)
    return graph.add("MatMul", kernel, graph.constant(coefficients[:, np.newaxis]))


def _kernel(
    graph: GraphBuilder,
    name: str,
    gamma: float,
    items: str,
    vectors: NDArray[np.float64],
    learner: Any,
) -> str:
    """Add the kernel between items and support vectors."""
    products = graph.add("MatMul", items, graph.constant(vectors.T))
    if name == "linear":
        return products
    if name != "rbf":
        raise _unsupported(learner)
    squares = graph.add("ReduceSumSquare", items, axes=[1], keepdims=1)
    both = graph.add("Add", squares, graph.constant((vectors**2).sum(axis=1)))
    twice = graph.add("Mul", products, graph.constant(2.0))
    distances = graph.add("Sub", both, twice)
    # Rounding can make the square of a tiny distance negative.
    distances = graph.add("Max", distances, graph.constant(0.0))
    return graph.add("Exp", graph.add("Mul", distances, graph.constant(-gamma)))


def _add_aware_linear(
    graph: GraphBuilder, learner: CapacityAwareLinearClassifier, items: str, n_features: int
) -> str:
    return graph.add("MatMul", items, graph.constant(learner.coef_.T))


def _add_forest(
    graph: GraphBuilder, learner: RandomForestClassifier, items: str, n_features: int
) -> str:
    """Add the mean over the trees of the share of rare items in the leaf of each row."""
    rare = int(np.flatnonzero(learner.classes_)[0])
    trees = _Trees()
    for estimator in learner.estimators_:
        tree = estimator.tree_
        shares = tree.value[:, 0, :]
        weights = shares[:, rare] / shares.sum(axis=1)
        trees.roots.append(_add_sklearn_tree(trees, tree, weights))
    # scikit-learn compares items in single precision with splits in double precision.
    single = graph.add("Cast", graph.add("Cast", items, to=FLOAT), to=DOUBLE)
    summed = trees.add_to(graph, single)
    return graph.add("Div", summed, graph.constant(float(len(learner.estimators_))))


def _add_aware_forest(
    graph: GraphBuilder, learner: CapacityAwareForestClassifier, items: str, n_features: int
) -> str:
    forests = [_add_forest(graph, forest, items, n_features) for forest in learner.forests_]
    weighted = zip(forests, learner.weights_.tolist(), strict=True)
    return graph.add("Sum", *(graph.add("Mul", f, graph.constant(w)) for f, w in weighted))


def _add_boosting(graph: GraphBuilder, learner: Any, items: str, n_features: int) -> str:
    return graph.add("Sigmoid", _add_booster(graph, learner.booster_, items))


def _add_aware_boosting(
    graph: GraphBuilder, learner: CapacityAwareBoostingClassifier, items: str, n_features: int
) -> str:
    boosters = [_add_booster(graph, booster, items) for booster in learner.boosters_]
    # With this loss, one booster continues the other; otherwise the boosters of folds are averaged.
    n_averaged = 1 if learner.loss_ == "detection" else len(boosters)
    return graph.add("Div", graph.add("Sum", *boosters), graph.constant(float(n_averaged)))


# By name, because LightGBM is optional.
_BY_TYPE: dict[str, Callable[[GraphBuilder, Any, str, int], str]] = {
    RandomForestClassifier.__name__: _add_forest,
    "LGBMClassifier": _add_boosting,
    SVC.__name__: _add_svc,
    CapacityAwareLinearClassifier.__name__: _add_aware_linear,
    CapacityAwareSVC.__name__: _add_aware_svc,
    CapacityAwareForestClassifier.__name__: _add_aware_forest,
    CapacityAwareBoostingClassifier.__name__: _add_aware_boosting,
}


def _unsupported(learner: Any) -> ModelFileError:
    return ModelFileError(
        f"{type(learner).__name__} has no ONNX form in double precision, so this model cannot be "
        "exported. Fit with --learner logistic, forest, boosting, svm, network, aware-linear or "
        "aware-svm."
    )


# --- ensembles of trees as one operator ---


class _Trees:
    """The nodes and leaves of all trees, numbered consecutively."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.features: list[int] = []
        self.splits: list[float] = []
        self.children: list[
            tuple[int, int]
        ] = []  # where an item goes if the comparison is true or false
        self.is_leaf: list[tuple[bool, bool]] = []
        self.weights: list[float] = []

    def leaf(self, weight: float) -> int:
        """Add a leaf and return its number."""
        self.weights.append(weight)
        return len(self.weights) - 1

    def node(self, feature: int, split: float) -> int:
        """Add a node whose children are set later, and return its number."""
        self.features.append(feature)
        self.splits.append(split)
        self.children.append((0, 0))
        self.is_leaf.append((False, False))
        return len(self.features) - 1

    def stump(self, weight: float) -> int:
        """Add a tree of one leaf: a comparison whose two results are equal."""
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


def _add_booster(graph: GraphBuilder, booster: Any, items: str) -> str:
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
