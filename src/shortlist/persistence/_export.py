"""The decision of a model as an ONNX file, which runs where there is no Python.

**What is guaranteed.** The graph computes in double precision, and its threshold lies above the
model's own by a margin of about 1e-9 of the largest calibration score. So a row that the graph
flags is flagged by the model, as long as their scores differ by less than the margin; a row within
the margin of the threshold is left out. The export computes both on rows made up from what the
columns look like, and fails if their scores differ by more than a quarter of the margin.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .. import __version__
from .._core.atomic import write_whole
from .._core.validation import check_option
from ..exceptions import ModelFileError
from ..tables import TableModel
from ._manifest import make_manifest
from ._onnx_check import OnnxComparison, compare_content, largest_difference, probe_rows
from ._onnx_columns import add_columns
from ._onnx_graph import GraphBuilder
from ._onnx_scores import add_score

__all__ = ["EXPORT_TIES", "OnnxExport", "export_onnx"]

#: What to do with rows that tie with the threshold: as the model does, or leave them out.
EXPORT_TIES = ("as-fitted", "exclude")
_OUTPUTS = ("score", "flag", "probability")
_MARGIN = 2.0**-30  # about 1e-9


@dataclass(frozen=True)
class OnnxExport:
    """What was exported.

    Attributes
    ----------
    inputs : dict
        Name of each input, and its type: "double" or "string".
    outputs : list of str
        "score", "flag", and "probability" where the model has one.
    threshold : float
        A row is flagged when its score is strictly above.
    margin : float
        By how much that is more than the model's own threshold.
    largest_difference : float
        Between the scores of graph and model, on rows that were made up to compare them.
    comparison : OnnxComparison or None
        Of graph and model, on the rows of a table that was given for that.
    """

    inputs: dict[str, str]
    outputs: list[str]
    threshold: float
    margin: float
    largest_difference: float
    comparison: OnnxComparison | None = None


def export_onnx(
    model: TableModel, path: Path, *, ties: str = "as-fitted", check: Path | None = None
) -> OnnxExport:
    """Write the decision of a model to an ONNX file: whole, or not at all.

    The graph takes one input per column, each of shape (n, 1): texts for categories (an empty one
    is missing), and 64-bit floats for numbers (NaN is missing), 1 and 0 for true and false,
    and days since 1970-01-01 in UTC for dates. It gives the score, the flag and, where the
    model has one, the probability.

    Parameters
    ----------
    model : TableModel
        Fitted; see :func:`~shortlist.tables.fit_table`.
    path : Path
        Where to write.
    ties : {"as-fitted", "exclude"}, default="as-fitted"
        A model may flag some of the rows that tie with its threshold, by a hash, which
        ONNX cannot compute: "as-fitted" then fails, and "exclude" leaves these rows out.
    check : Path, default=None
        A table on which the graph is compared with the model before it is written; it must not
        flag a row that the model does not flag.

    Returns
    -------
    OnnxExport
        Inputs, outputs, the threshold, and how closely the scores agree.
    """
    check_option("ties", ties, EXPORT_TIES)
    _check_ties(model, ties)
    _check_names(model)
    graph = GraphBuilder()
    prepared, learner = _parts(model)
    n_features = len(prepared.get_feature_names_out())
    score = add_score(graph, learner, add_columns(graph, prepared, model.schema), n_features)
    threshold, margin = _raised_threshold(model)
    outputs = _add_outputs(graph, model, score, threshold)
    built = graph.finish(_description(model), _properties(model, threshold, margin))
    content = built.SerializeToString()
    difference = _compared(model, content, margin)
    comparison = None if check is None else _checked(model, content, check)
    with write_whole(path) as file:
        file.write(content)
    inputs = {f.name: "string" if f.kind == "categorical" else "double" for f in _features(model)}
    return OnnxExport(inputs, outputs, threshold, margin, difference, comparison)


def _check_ties(model: TableModel, ties: str) -> None:
    calibration = model.classifier.calibration_
    if ties == "as-fitted" and calibration.ties == "hash" and calibration.tie_key > 0:
        raise ModelFileError(
            "This model flags some of the rows that tie with its threshold by a hash, which ONNX "
            "cannot compute. Export with ties='exclude' (--ties exclude): such rows are then not "
            "flagged, so that fewer are flagged, never more."
        )


def _check_names(model: TableModel) -> None:
    taken = [feature.name for feature in _features(model) if feature.name in _OUTPUTS]
    if taken:
        raise ModelFileError(
            f"The column {taken[0]!r} has the name of an output. Rename it, and fit again."
        )


def _parts(model: TableModel) -> tuple[Any, Any]:
    estimator = model.classifier.estimator_
    if not isinstance(estimator, Pipeline) or list(estimator.named_steps) != ["columns", "learner"]:
        raise ModelFileError("Only models that were made by fit can be exported to ONNX.")
    return estimator["columns"], estimator["learner"]


def _raised_threshold(model: TableModel) -> tuple[float, float]:
    """Return a threshold that no rounding of a score reaches from below the model's own."""
    value = float(model.classifier.threshold_)
    if math.isinf(value):
        return value, 0.0
    scores = model.classifier.calibration_scores_
    largest = max(abs(value), float(np.abs(scores[np.isfinite(scores)]).max(initial=0)))
    raised = float(np.nextafter(value + _MARGIN * largest, np.inf))
    return raised, raised - value


def _add_outputs(graph: GraphBuilder, model: TableModel, score: str, threshold: float) -> list[str]:
    graph.output("score", score, "double")
    graph.output("flag", graph.add("Greater", score, graph.constant(threshold)), "bool")
    if model.classifier.response_method_ != "predict_proba":
        return ["score", "flag"]
    graph.output("probability", score, "double")
    return list(_OUTPUTS)


def _compared(model: TableModel, content: bytes, margin: float) -> float:
    """Return by how much the scores of graph and model differ at most, if it is little enough."""
    difference = largest_difference(model, content, probe_rows(model))
    if difference > margin / 4 and margin > 0:
        raise ModelFileError(
            f"The scores of the exported graph differ by up to {difference:.1e} from the model's, "
            f"more than a quarter of the margin of {margin:.1e} that its threshold is raised by. "
            "Nothing was written. Fit with another learner."
        )
    return difference


def _checked(model: TableModel, content: bytes, data: Path) -> OnnxComparison:
    comparison = compare_content(model, content, data)
    if comparison.flagged_more:
        raise ModelFileError(
            f"The exported graph flags {comparison.flagged_more} of {comparison.n_items} rows that "
            "the model does not flag. Nothing was written. Fit with another learner."
        )
    return comparison


def _description(model: TableModel) -> str:
    classifier = model.classifier
    return (
        f"Flags where the score is strictly above a threshold that keeps a capacity of "
        f"{classifier.capacity_fraction_:.4g} of all rows, promised as {classifier.guarantee!r}."
    )


def _properties(model: TableModel, threshold: float, margin: float) -> dict[str, str]:
    return {
        "shortlist_version": __version__,
        "threshold": repr(threshold),
        "margin": repr(margin),
        "model": json.dumps(json.loads(make_manifest(model))),
    }


def _features(model: TableModel) -> Any:
    return model.schema.features
