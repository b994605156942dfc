"""A graph of ONNX operators that grows node by node. All numbers in it are 64-bit floats."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._onnx_extra import onnx

__all__ = ["DOUBLE", "FLOAT", "ML", "OPSETS", "GraphBuilder"]

#: Types to cast to.
DOUBLE, FLOAT = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT

#: The domain of the operators of classical machine learning.
ML = "ai.onnx.ml"
#: Versions of the operators: the first in which an ensemble of trees computes in double precision.
OPSETS = {"": 17, ML: 5}
_IR_VERSION = 10  # what came with these operators; newer runtimes read it, older ones cannot


class GraphBuilder:
    """Nodes and constants, each under a name of its own; values are known by their names."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, kind: str) -> str:
        """Add an input with one value per row: "double" or "string"."""
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
        """Take over the nodes of a finished model with one input; return names of its outputs."""
        prefix = self._new_name() + "/"
        graph = onnx.compose.add_prefix_graph(model.graph, prefix)
        self._nodes.append(onnx.helper.make_node("Identity", [source], [graph.input[0].name]))
        self._nodes.extend(graph.node)
        self._constants.extend(graph.initializer)
        return {output.name.removeprefix(prefix): output.name for output in graph.output}

    def output(self, name: str, value: str, kind: str) -> None:
        """Let a value leave the graph under a name: "double" or "bool"."""
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
