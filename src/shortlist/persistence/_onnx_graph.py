"""A graph of ONNX operators, built node by node, and the preparation of columns in it.

All numbers in the graph are 64-bit floats. The preparation repeats the arithmetic of scikit-learn
step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._core.extras import load_extra
from ..tables.columns import MISSING_CATEGORY
from ..tables.schema import TableSchema

onnx = load_extra("onnx", needed_for="Exporting to ONNX")
pd = load_extra("pandas", needed_for="Exporting to ONNX")

__all__ = ["DOUBLE", "FLOAT", "ML", "OPSETS", "GraphBuilder", "add_columns", "add_scaling"]

#: The types to cast to.
DOUBLE, FLOAT = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT

#: The domain of the operators of classical machine learning.
ML = "ai.onnx.ml"
#: Versions of the operators: the first in which an ensemble of trees computes in double precision.
OPSETS = {"": 17, ML: 5}
_IR_VERSION = 10  # the version of these operators; newer runtimes read it, older ones cannot


class GraphBuilder:
    """Nodes and constants with unique names; every value is referred to by its name."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, kind: str) -> str:
        """Add an input with one value per row, "double" or "string", unless it is there."""
        if name not in [column.name for column in self._inputs]:
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

    def inline(self, model: Any, source: str) -> dict[str, str]:
        """Insert the nodes of a finished model with one input; return the names of its outputs."""
        prefix = self._new_name() + "/"
        graph = onnx.compose.add_prefix_graph(model.graph, prefix)
        self._nodes.append(onnx.helper.make_node("Identity", [source], [graph.input[0].name]))
        self._nodes.extend(graph.node)
        self._constants.extend(graph.initializer)
        return {output.name.removeprefix(prefix): output.name for output in graph.output}

    def output(self, name: str, value: str, kind: str) -> None:
        """Make a value an output of the graph: "double" or "bool"."""
        self._nodes.append(onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(_column(name, kind))

    def finish(self, description: str, properties: dict[str, str]) -> Any:
        """Return the checked model."""
        graph = onnx.helper.make_graph(
            self._nodes, "shortlist", self._inputs, self._outputs, self._constants, description
        )
        model = onnx.helper.make_model(
            graph,
            producer_name="shortlist",
            ir_version=_IR_VERSION,
            opset_imports=[onnx.helper.make_opsetid(*opset) for opset in OPSETS.items()],
        )
        onnx.helper.set_model_props(model, properties)
        onnx.checker.check_model(model)
        return model

    def _new_name(self) -> str:
        return f"shortlist/{len(self._nodes)}/{len(self._constants)}"


def _column(name: str, kind: str) -> Any:
    element = {
        "double": onnx.TensorProto.DOUBLE,
        "string": onnx.TensorProto.STRING,
        "bool": onnx.TensorProto.BOOL,
    }[kind]
    return onnx.helper.make_tensor_value_info(name, element, [None, 1])


# --- preparation of columns ---


def add_columns(graph: GraphBuilder, prepared: ColumnTransformer, schema: TableSchema) -> str:
    """Add an input for each column of the table; return the matrix that the learner takes."""
    kinds = {f.name: "string" if f.kind == "categorical" else "double" for f in schema.features}
    inputs = {name: graph.input(name, kind) for name, kind in kinds.items()}
    parts = []
    for part, fitted, names in prepared.transformers_:
        if len(names) and part == "numbers":
            parts.append(_numbers(graph, fitted, [inputs[name] for name in names]))
        elif len(names) and part == "categories":
            parts += _categories(graph, fitted, [inputs[name] for name in names])
    return graph.add("Concat", *parts, axis=1)


def _numbers(graph: GraphBuilder, fitted: Any, columns: list[str]) -> str:
    """Impute medians, append the marks of missing values, and scale."""
    imputer, scaler = fitted[0], fitted[-1]
    values = graph.add("Concat", *columns, axis=1)
    absent = graph.add("IsNaN", values)
    filled = graph.add("Where", absent, graph.constant(imputer.statistics_), values)
    if imputer.indicator_.features_.size:
        places = graph.constant(imputer.indicator_.features_, np.int64)
        marks = graph.add("Cast", graph.add("Gather", absent, places, axis=1), to=DOUBLE)
        filled = graph.add("Concat", filled, marks, axis=1)
    return add_scaling(graph, scaler, filled)


def add_scaling(graph: GraphBuilder, scaler: StandardScaler, values: str) -> str:
    """Subtract the means and divide by the standard deviations."""
    centred = graph.add("Sub", values, graph.constant(scaler.mean_))
    return graph.add("Div", centred, graph.constant(scaler.scale_))


def _categories(graph: GraphBuilder, encoder: OneHotEncoder, columns: list[str]) -> list[str]:
    """One-hot encode each column of texts; rare and unknown texts share a column, if any."""
    return [_one_hot(graph, encoder, place, column) for place, column in enumerate(columns)]


def _one_hot(graph: GraphBuilder, encoder: OneHotEncoder, place: int, column: str) -> str:
    known = [str(category) for category in encoder.categories_[place]]
    # An empty text is a missing value, as in a file.
    texts, meant = [*known, ""], [*known, MISSING_CATEGORY]
    codes, unknown = _codes(encoder, place, meant)
    code = graph.add(
        "LabelEncoder",
        column,
        domain=ML,
        keys_strings=texts,
        values_int64s=codes,
        default_int64=unknown,
    )
    width = _width(encoder, place)
    hits = graph.add("Equal", code, graph.constant(np.arange(width), np.int64))
    return graph.add("Cast", hits, to=DOUBLE)


def _codes(encoder: OneHotEncoder, place: int, texts: list[str]) -> tuple[list[int], int]:
    """Return the column of each text and that of an unknown text, as the encoder assigns them."""
    row = [categories[0] for categories in encoder.categories_]
    never_seen = "".join(str(category) for category in encoder.categories_[place]) + "?"
    rows = np.array([[*row[:place], text, *row[place + 1 :]] for text in [*texts, never_seen]], "O")
    first = sum(_width(encoder, before) for before in range(place))
    block = encoder.transform(pd.DataFrame(rows, columns=encoder.feature_names_in_))[
        :, first : first + _width(encoder, place)
    ]
    codes = np.where(block.any(axis=1), block.argmax(axis=1), -1).tolist()
    return codes[:-1], codes[-1]


def _width(encoder: OneHotEncoder, place: int) -> int:
    """Return the number of encoded columns of a column of texts."""
    rare = encoder.infrequent_categories_[place]
    n_rare = 0 if rare is None else len(rare)
    return len(encoder.categories_[place]) - n_rare + (n_rare > 0)
