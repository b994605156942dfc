"""The comparison of an exported graph with its model on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats
from .._core.extras import load_extra
from ..exceptions import ModelFileError
from ..tables import ReadOptions, TableModel
from ..tables.columns import MISSING_CATEGORY

onnxruntime = load_extra("onnxruntime", needed_for="Comparing with ONNX")
pd = load_extra("pandas", needed_for="Comparing with ONNX")

__all__ = [
    "OnnxComparison",
    "compare_content",
    "compare_onnx",
    "largest_difference",
    "probe_rows",
    "run_graph",
]

_N_PROBES = 2_000
_MISSING = 0.1  # share of missing values in each column


@dataclass(frozen=True)
class OnnxComparison:
    """The flags and scores of an exported graph and of its model on the same rows.

    `flagged_more` counts the rows that only the graph flags, `flagged_less` those that only the
    model flags.
    """

    n_items: int
    flagged_by_both: int
    flagged_more: int
    flagged_less: int
    largest_difference: float


def compare_onnx(model: TableModel, path: Path, data: Path) -> OnnxComparison:
    """Compare an exported graph with its model on the rows of a table.

    Parameters
    ----------
    model : TableModel
        The model that was exported.
    path : Path
        The graph, made by :func:`export_onnx`.
    data : Path
        A table of any length, with the columns that the model needs.

    Returns
    -------
    OnnxComparison
        Numbers of flags, and the largest difference between scores.
    """
    return compare_content(model, _content(path), data)


def compare_content(
    model: TableModel, content: bytes, data: Path, *, reading: ReadOptions | None = None
) -> OnnxComparison:
    """Compare a graph that has not been written to a file."""
    session = _session(content)
    counts, largest = np.zeros(4, dtype=np.int64), 0.0
    with model.schema.open(data, reading=reading) as source:
        for rows in model.schema.rows(source):
            decided = model.classifier.decide(rows.X, ids=rows.ids)
            answers = _run(session, rows.X)
            flagged, by_model = answers["flag"].ravel(), decided.flagged
            pairs = (flagged & by_model, flagged & ~by_model, ~flagged & by_model)
            counts += [len(rows.X), *(int(pair.sum()) for pair in pairs)]
            scores = model.classifier.score_samples(rows.X)
            largest = max(largest, _difference(answers, scores))
    n_items, both, more, less = counts.tolist()
    return OnnxComparison(n_items, both, more, less, largest)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from None


def probe_rows(model: TableModel) -> Any:
    """Draw artificial rows with the scale, the categories and missing values of the table."""
    rng = np.random.default_rng(0)
    columns = model.classifier.estimators_[0]["columns"]
    parts: dict[str, Any] = {}
    for part, fitted, names in columns.transformers_:
        if len(names) and part == "numbers":
            parts |= dict(zip(names, _numbers(fitted[-1], len(names), rng), strict=True))
        elif len(names) and part == "categories":
            parts |= dict(zip(names, _texts(fitted, rng), strict=True))
    return pd.DataFrame({feature.name: parts[feature.name] for feature in model.schema.features})


def _numbers(scaler: Any, n_columns: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    drawn = scaler.mean_ + scaler.scale_ * rng.standard_t(3, (_N_PROBES, scaler.mean_.size))
    drawn[rng.random(drawn.shape) < _MISSING] = np.nan
    return list(drawn.T[:n_columns])


def _texts(encoder: Any, rng: np.random.Generator) -> list[Any]:
    choices = [[*known.tolist(), MISSING_CATEGORY, "?"] for known in encoder.categories_]
    return [rng.choice(np.array(texts, dtype=object), _N_PROBES) for texts in choices]


def largest_difference(model: TableModel, content: bytes, X: Any) -> float:
    """Return the largest difference between the scores of a graph and those of its model."""
    return _difference(run_graph(content, X), model.classifier.score_samples(X))


def run_graph(content: bytes, X: Any) -> dict[str, NDArray[Any]]:
    """Run an exported graph on the columns of a frame; return its outputs by name."""
    return _run(_session(content), X)


def _difference(answers: dict[str, NDArray[Any]], scores: Floats) -> float:
    return float(np.abs(answers["score"].ravel() - scores).max(initial=0))


def _session(content: bytes) -> Any:
    try:
        return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    except Exception as error:  # the errors of onnxruntime have no common class
        raise ModelFileError(f"onnxruntime cannot run this graph: {error}") from None


def _run(session: Any, X: Any) -> dict[str, NDArray[Any]]:
    inputs = {
        column.name: X[[column.name]].to_numpy(
            dtype=object if column.type == "tensor(string)" else np.float64
        )
        for column in session.get_inputs()
    }
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))
