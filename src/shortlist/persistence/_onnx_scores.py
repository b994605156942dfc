"""Fitted learners as ONNX operators, in double precision throughout.

scikit-learn's own models go through skl2onnx where its operators keep double precision. The
operators for trees and support vectors that it uses compute in single precision, so these are
written out here.
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

from ..aware import CapacityAwareLinearClassifier, CapacityAwareSVC
from ..exceptions import ModelFileError
from ._onnx_columns import add_scaling
from ._onnx_extra import skl2onnx
from ._onnx_graph import DOUBLE, ML, OPSETS, GraphBuilder
from ._onnx_trees import add_booster, add_forest

__all__ = ["add_score"]


def add_score(graph: GraphBuilder, learner: Any, items: str, n_features: int) -> str:
    """Add the score of the rare label, which is True; return its name, one value per row."""
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
    except Exception as error:  # skl2onnx has no common class for what it cannot do
        raise _unsupported(learner) from error
    kinds = {output.name: output.type.tensor_type.elem_type for output in model.graph.output}
    if kinds.get("probabilities") != DOUBLE:
        raise _unsupported(learner)
    names = graph.inline(model, items)
    rare = int(np.flatnonzero(learner.classes_)[0])
    return graph.add("Gather", names["probabilities"], graph.constant([rare], np.int64), axis=1)


def _add_forest(graph: GraphBuilder, learner: Any, items: str, n_features: int) -> str:
    return add_forest(graph, learner, items)


def _add_boosting(graph: GraphBuilder, learner: Any, items: str, n_features: int) -> str:
    return graph.add("Sigmoid", add_booster(graph, learner.booster_, items))


def _add_aware_forest(graph: GraphBuilder, learner: Any, items: str, n_features: int) -> str:
    forests = [add_forest(graph, forest, items) for forest in learner.forests_]
    weighted = zip(forests, learner.weights_.tolist(), strict=True)
    return graph.add("Sum", *(graph.add("Mul", f, graph.constant(w)) for f, w in weighted))


def _add_aware_boosting(graph: GraphBuilder, learner: Any, items: str, n_features: int) -> str:
    boosters = [add_booster(graph, booster, items) for booster in learner.boosters_]
    # One loss goes on where the other stopped; otherwise folds are averaged.
    n_averaged = 1 if learner.loss_ == "detection" else len(boosters)
    return graph.add("Div", graph.add("Sum", *boosters), graph.constant(float(n_averaged)))


def _add_svc(graph: GraphBuilder, learner: SVC, items: str, n_features: int) -> str:
    # With two classes the decision function speaks for the second, which is True.
    coefficients, vectors = learner.dual_coef_[0], learner.support_vectors_
    kernel = _kernel(graph, learner.kernel, learner._gamma, items, vectors, learner)
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
    vectors: NDArray[np.floating],
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
    # Rounding may leave the square of a tiny distance below zero.
    distances = graph.add("Max", distances, graph.constant(0.0))
    return graph.add("Exp", graph.add("Mul", distances, graph.constant(-gamma)))


def _add_aware_linear(
    graph: GraphBuilder, learner: CapacityAwareLinearClassifier, items: str, n_features: int
) -> str:
    return graph.add("MatMul", items, graph.constant(learner.coef_.T))


# By name, so that what is optional need not be there.
_BY_TYPE: dict[str, Callable[[GraphBuilder, Any, str, int], str]] = {
    RandomForestClassifier.__name__: _add_forest,
    "LGBMClassifier": _add_boosting,
    SVC.__name__: _add_svc,
    CapacityAwareLinearClassifier.__name__: _add_aware_linear,
    CapacityAwareSVC.__name__: _add_aware_svc,
    "CapacityAwareForestClassifier": _add_aware_forest,
    "CapacityAwareBoostingClassifier": _add_aware_boosting,
}


def _unsupported(learner: Any) -> ModelFileError:
    return ModelFileError(
        f"{type(learner).__name__} has no ONNX form in double precision, so that this model cannot "
        "be exported. Fit with --learner logistic, forest, boosting, svm, network, aware-linear "
        "or aware-svm."
    )
