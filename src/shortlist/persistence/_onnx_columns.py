"""The preparation of columns as ONNX operators: the arithmetic of scikit-learn, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..tables import TableSchema
from ..tables._columns import MISSING_CATEGORY
from ..tables._extra import pandas as pd
from ._onnx_graph import DOUBLE, ML, GraphBuilder

__all__ = ["add_columns", "add_scaling"]


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
    """Fill gaps with medians, append where they were, and scale."""
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
    """Spread out each column of texts; rare and unknown ones share a column where there is one."""
    return [_one_hot(graph, encoder, place, column) for place, column in enumerate(columns)]


def _one_hot(graph: GraphBuilder, encoder: OneHotEncoder, place: int, column: str) -> str:
    known = [str(category) for category in encoder.categories_[place]]
    # An empty text is a missing one, as in a file.
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
    """Ask the encoder itself for the column of each text, and for that of an unknown one."""
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
    """Return how many columns a column of texts becomes."""
    rare = encoder.infrequent_categories_[place]
    n_rare = 0 if rare is None else len(rare)
    return len(encoder.categories_[place]) - n_rare + (n_rare > 0)
