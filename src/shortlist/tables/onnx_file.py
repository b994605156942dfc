"""The decision of a table model as an ONNX file."""

from __future__ import annotations

import json
from pathlib import Path

from .._core.files import write_whole
from ..exceptions import ModelFileError
from ..models.onnx_export import (
    WEIGHS_WORK,
    OnnxComparison,
    OnnxExport,
    OnnxGraph,
    build_graph,
    check_never_more,
)
from ._source import ReadOptions
from .columns import MISSING_CATEGORY
from .model import TableModel
from .model_file import manifest_of


def export_model(
    model: TableModel,
    path: Path,
    *,
    check: Path | None = None,
    reading: ReadOptions | None = None,
) -> tuple[OnnxExport, OnnxComparison | None]:
    """Write the decision of a model to an ONNX file, compared with the model on a table first."""
    if model.schema.work is not None:
        raise ModelFileError(WEIGHS_WORK)
    about = {"model": json.dumps(manifest_of(model))}
    content, exported = build_graph(
        model.classifier, model.probe_rows(), missing=MISSING_CATEGORY, about=about
    )
    compared = None
    if check is not None:
        compared = compare_table(model, OnnxGraph(content), check, reading=reading)
        check_never_more(compared)
    with write_whole(path) as file:
        file.write(content)
    return exported, compared


def compare_table(
    model: TableModel, graph: OnnxGraph, data: Path, *, reading: ReadOptions | None = None
) -> OnnxComparison:
    """Compare a graph with its model on a table of any length."""
    compared = OnnxComparison()
    with model.schema.open(data, reading=reading) as source:
        for rows in model.schema.rows(source):
            compared += graph.compare(model.classifier, rows.X, ids=rows.ids)
    return compared
