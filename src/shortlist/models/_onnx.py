"""A blueprint as a graph of ONNX operators, in double precision throughout.

The graph repeats the arithmetic of scikit-learn step by step: numbers are filled and scaled, texts
looked up, trees walked with the comparisons of the library that grew them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.extras import load_extra
from .._core.trees import TINY, GrownTree, Unsupported
from . import blueprint
from ._columns import NAN, Feature, FeatureArrays, Vocabulary

onnx = load_extra("onnx", needed_for="Exporting to ONNX")

_DOUBLE, _FLOAT = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT
_INT64 = onnx.TensorProto.INT64
# The domain of the operators of classical machine learning.
_ML = "ai.onnx.ml"
# Versions of the operators: the first in which an ensemble of trees computes in double precision.
_OPSETS = {"": 17, _ML: 5}
_IR_VERSION = 10  # the version of these operators; newer runtimes read it, older ones cannot
_ADD_LEAVES, _LESS_OR_EQUAL = 1, 0


class Graph:
    """Nodes and constants with unique names; every value is referred to by its name."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, kind: str) -> str:
        """Add an input with one value per row, "double" or "string"."""
        self._inputs.append(_column(name, kind))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        name = self._new_name()
        node = onnx.helper.make_node(operator, inputs, [name], domain=domain, **attributes)
        self._nodes.append(node)
        return name

    def constant(self, values: ArrayLike, dtype: Any = np.float64) -> str:
        """Add a constant and return its name."""
        name = self._new_name()
        array = np.asarray(values, dtype=dtype)
        self._constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def concat(self, parts: list[str]) -> str:
        """Put columns side by side."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def mean(self, parts: list[str], divisor: int | None = None) -> str:
        """Add up values, and divide by their number or by another one."""
        divisor = len(parts) if divisor is None else divisor
        total = parts[0] if len(parts) == 1 else self.add("Sum", *parts)
        return total if divisor == 1 else self.add("Div", total, self.constant(float(divisor)))

    def output(self, name: str, value: str, kind: str) -> None:
        """Make a value an output of the graph: "double" or "bool"."""
        self._nodes.append(onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(_column(name, kind))

    def content(
        self, description: str, properties: dict[str, str], also: Sequence[str] = ()
    ) -> bytes:
        """Return the checked model as the content of a file; some values are `also` outputs."""
        outputs = [*self._outputs, *(_column(value, "double") for value in also)]
        graph = onnx.helper.make_graph(
            self._nodes, "shortlist", self._inputs, outputs, self._constants, description
        )
        model = onnx.helper.make_model(
            graph,
            producer_name="shortlist",
            ir_version=_IR_VERSION,
            opset_imports=[onnx.helper.make_opsetid(*opset) for opset in _OPSETS.items()],
        )
        onnx.helper.set_model_props(model, properties)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    def _new_name(self) -> str:
        return f"shortlist/{len(self._nodes)}/{len(self._constants)}"


def _column(name: str, kind: str) -> Any:
    element = {
        "double": onnx.TensorProto.DOUBLE,
        "string": onnx.TensorProto.STRING,
        "bool": onnx.TensorProto.BOOL,
    }[kind]
    return onnx.helper.make_tensor_value_info(name, element, [None, 1])


class ScoreGraph:
    """Adds the scores of blueprints to a graph, each list of features once.

    `inputs` are the names of the inputs of all columns; an empty text stands for `missing`.
    """

    def __init__(
        self, graph: Graph, vocabulary: Vocabulary, inputs: list[str], missing: str | None
    ) -> None:
        self._graph, self._vocabulary = graph, vocabulary
        codes = [
            self._code(inputs[column], known, NAN if missing is None else missing)
            for column, known in vocabulary.codes.items()
        ]
        self._values = graph.concat([*(inputs[k] for k in vocabulary.numbers), *codes])
        self._prepared: dict[int, str] = {}

    def score(self, node: blueprint.Node) -> str:
        """Add a score, of shape (n, 1); return its name."""
        if isinstance(node, blueprint.Asked):
            raise Unsupported(node.name)
        if isinstance(node, blueprint.Leaf):
            return _LEAVES[type(node)](self._graph, node, self._prepare(node.features))
        return _COMBINED[type(node)](self._graph, node, [self.score(part) for part in node.parts])

    # --- columns ---------------------------------------------------------------------------------

    def _code(self, column: str, known: dict[Any, int], missing: str) -> str:
        """Add the code of a text."""
        texts = {text: code for text, code in known.items() if text not in (None, NAN)}
        texts.setdefault("", known.get(missing, 0))
        code = self._graph.add(
            "LabelEncoder",
            column,
            domain=_ML,
            keys_strings=list(texts),
            values_int64s=list(texts.values()),
            default_int64=0,
        )
        return self._graph.add("Cast", code, to=_DOUBLE)

    def _prepare(self, features: list[Feature]) -> str:
        if id(features) not in self._prepared:
            self._prepared[id(features)] = self._add_features(self._vocabulary.arrays(features))
        return self._prepared[id(features)]

    def _add_features(self, features: FeatureArrays) -> str:
        graph, stages = self._graph, features.stages
        source = graph.constant(features.source, np.int64)
        values = numbers = graph.add("Gather", self._values, source, axis=1)
        for means, scales in zip(stages[::2], stages[1::2], strict=True):
            numbers = graph.add("Sub", numbers, graph.constant(means))
            numbers = graph.add("Div", numbers, graph.constant(scales))
        missing = graph.constant(features.missing)
        numbers = graph.add("Where", graph.add("IsNaN", values), missing, numbers)
        if not features.table.size:
            return numbers
        is_text = graph.constant(features.start >= 0, bool)
        codes = graph.add("Where", is_text, values, graph.constant(0.0))
        start = graph.constant(np.maximum(features.start, 0), np.int64)
        places = graph.add("Add", graph.add("Cast", codes, to=_INT64), start)
        texts = graph.add("Gather", graph.constant(features.table), places, axis=0)
        return graph.add("Where", is_text, texts, numbers)


# --- leaves --------------------------------------------------------------------------------------


def _trees(graph: Graph, node: blueprint.Trees, items: str) -> str:
    if node.rounding == "single":
        items = graph.add("Cast", graph.add("Cast", items, to=_FLOAT), to=_DOUBLE)
    elif node.rounding == "tiny":
        is_tiny = graph.add("LessOrEqual", graph.add("Abs", items), graph.constant(TINY))
        items = graph.add("Where", is_tiny, graph.constant(0.0), items)
    summed = graph.add("TreeEnsemble", items, domain=_ML, **_tree_attributes(node.trees))
    if node.start:
        summed = graph.add("Add", summed, graph.constant(node.start))
    return graph.mean([summed], node.divisor)


def _tree_attributes(trees: list[GrownTree]) -> dict[str, Any]:
    """Return all trees in the form of the operator, which numbers nodes and leaves apart."""
    columns: dict[str, list[NDArray[Any]]] = {}
    n_nodes = n_leaves = 0
    for tree in map(_with_a_node, trees):
        is_leaf = tree.left < 0
        number = np.where(is_leaf, n_leaves + np.cumsum(is_leaf), n_nodes + np.cumsum(~is_leaf)) - 1
        nodes, left, right = ~is_leaf, tree.left[~is_leaf], tree.right[~is_leaf]
        part = {
            "tree_roots": number[:1],
            "nodes_featureids": tree.feature[nodes],
            "nodes_splits": tree.value[nodes],
            "nodes_truenodeids": number[left],
            "nodes_trueleafs": is_leaf[left],
            "nodes_falsenodeids": number[right],
            "nodes_falseleafs": is_leaf[right],
            "nodes_missing_value_tracks_true": tree.missing_left[nodes],
            "leaf_weights": tree.value[is_leaf],
        }
        for name, values in part.items():
            columns.setdefault(name, []).append(values)
        n_leaves, n_nodes = n_leaves + int(is_leaf.sum()), n_nodes + int(nodes.sum())
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    tensor = onnx.numpy_helper.from_array
    return {
        **{
            name: tensor(values) if values.dtype == np.float64 else values.astype(int).tolist()
            for name, values in joined.items()
        },
        "nodes_modes": tensor(np.full(n_nodes, _LESS_OR_EQUAL, dtype=np.uint8)),
        "leaf_targetids": [0] * n_leaves,
        "n_targets": 1,
        "aggregate_function": _ADD_LEAVES,
    }


def _with_a_node(tree: GrownTree) -> GrownTree:
    """Turn a tree of one leaf into a comparison whose two results are equal."""
    if tree.left.size > 1:
        return tree
    leaf = float(tree.value[0])
    left, right = np.array([1, -1, -1]), np.array([2, -1, -1])
    values = np.array([0.0, leaf, leaf])
    return GrownTree(left, right, np.zeros(3, int), values, np.zeros(3, bool))


def _layers(graph: Graph, node: blueprint.Layers, items: str) -> str:
    operators = {"identity": "Identity", "logistic": "Sigmoid", "relu": "Relu", "tanh": "Tanh"}
    last = len(node.weights) - 1
    for place, (weights, shift) in enumerate(zip(node.weights, node.shifts, strict=True)):
        items = graph.add("MatMul", items, graph.constant(weights))
        items = graph.add("Add", items, graph.constant(shift))
        if place < last:
            items = graph.add(operators[node.activation], items)
    return items


_LEAVES: dict[type, Callable[[Graph, Any, str], str]] = {
    blueprint.Layers: _layers,
    blueprint.Trees: _trees,
}


# --- combinations --------------------------------------------------------------------------------


def _logistic(graph: Graph, node: blueprint.Logistic, parts: list[str]) -> str:
    (score,) = parts
    if node.complement:
        score = graph.add("Neg", score)
    chance = graph.add("Sigmoid", score)
    return graph.add("Sub", graph.constant(1.0), chance) if node.complement else chance


def _sum(graph: Graph, node: blueprint.Sum, parts: list[str]) -> str:
    return graph.mean(parts, node.divisor)


def _weighted(graph: Graph, node: blueprint.Weighted, parts: list[str]) -> str:
    pairs = zip(parts, node.weights.tolist(), strict=True)
    return graph.mean([graph.add("Mul", part, graph.constant(w)) for part, w in pairs], divisor=1)


def _log_odds(graph: Graph, node: blueprint.LogOdds, parts: list[str]) -> str:
    (chance,) = parts
    logs = []
    for share in (chance, graph.add("Sub", graph.constant(1.0), chance)):
        pulled = graph.add("Mul", share, graph.constant(node.pull))
        pulled = graph.add("Add", pulled, graph.constant(0.5))
        logs.append(graph.add("Log", graph.add("Div", pulled, graph.constant(node.pull + 1))))
    return graph.add("Sub", *logs)


_COMBINED: dict[type, Callable[[Graph, Any, list[str]], str]] = {
    blueprint.Logistic: _logistic,
    blueprint.LogOdds: _log_odds,
    blueprint.Sum: _sum,
    blueprint.Weighted: _weighted,
}
