"""The decision of a model as an ONNX file, which runs without Python.

**Guarantee.** The graph computes in double precision, and its threshold lies above the model's own
by a margin of about 1e-9 of the largest calibration score. The model therefore flags every row that
the graph flags, as long as their scores differ by less than the margin; rows within the margin of
the threshold are not flagged. The export compares both on artificial rows with the distributions of
the columns, and raises an error if scores differ by more than a quarter of the margin.

A model of several folds picks the one that decides by a hash, which ONNX cannot compute. The graph
flags a row only if the models of all folds do, so that again the model flags it, too.
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
from ..tables import ReadOptions, TableModel
from ..tables.model_file import manifest_of
from ._onnx_compare import OnnxComparison, compare_content, largest_difference, probe_rows
from ._onnx_graph import GraphBuilder, add_columns
from ._onnx_learners import add_score

__all__ = ["OnnxExport", "export_onnx"]

# How to treat rows that tie with the threshold: as the model does, or never flag them.
_TIES = ("as-fitted", "exclude")
_OUTPUTS = ("score", "flag", "probability")
_MARGIN = 2.0**-30  # about 1e-9


@dataclass(frozen=True)
class OnnxExport:
    """An exported graph.

    Attributes
    ----------
    inputs : dict
        Name and type of each input: "double" or "string".
    outputs : list of str
        "score", "flag", and "probability" if the model has one.
    threshold : float
        A row is flagged if its score is strictly above; of several folds, the mean of their
        thresholds, each of which applies to the score of its own fold.
    margin : float
        The difference to the model's own threshold.
    largest_difference : float
        The largest difference between the scores of graph and model, on artificial rows.
    comparison : OnnxComparison or None
        The comparison of graph and model on the rows of a table, if one was given.
    """

    inputs: dict[str, str]
    outputs: list[str]
    threshold: float
    margin: float
    largest_difference: float
    comparison: OnnxComparison | None = None


def export_onnx(
    model: TableModel,
    path: Path,
    *,
    ties: str = "as-fitted",
    check: Path | None = None,
    reading: ReadOptions | None = None,
) -> OnnxExport:
    """Write the decision of a model to an ONNX file; an error leaves no unfinished file.

    The graph takes one input per column, each of shape (n, 1): texts for categories (an empty text
    is missing) and 64-bit floats for all others (NaN is missing). True and false are 1 and 0, dates
    are days since 1970-01-01 in UTC. The outputs are the score, the flag and, if the model has one,
    the probability.

    Parameters
    ----------
    model : TableModel
        Fitted; see :func:`~shortlist.tables.fit_table`.
    path : Path
        Where to write.
    ties : {"as-fitted", "exclude"}, default="as-fitted"
        A model can flag some of the rows that tie with its threshold, chosen by a hash, which ONNX
        cannot compute. "as-fitted" then raises an error; "exclude" does not flag these rows.
    check : Path, default=None
        A table on which to compare the graph with the model before it is written. If the graph
        flags a row that the model does not flag, an error is raised.
    reading : ReadOptions, default=None
        What to know about that table; `None` reads it as the table of the fit.

    Returns
    -------
    OnnxExport
        Inputs, outputs, the threshold, and how closely the scores agree.
    """
    check_option("ties", ties, _TIES)
    _check_no_work(model)
    _check_ties(model, ties)
    _check_names(model)
    graph = GraphBuilder()
    scores = [_add_model(graph, model, estimator) for estimator in model.classifier.estimators_]
    thresholds, margin = _raised_thresholds(model)
    outputs = _add_outputs(graph, model, scores, thresholds)
    threshold = float(np.mean(thresholds))
    built = graph.finish(_description(model), _properties(model, threshold, margin))
    content = built.SerializeToString()
    difference = _compared(model, content, margin)
    comparison = None if check is None else _checked(model, content, check, reading)
    with write_whole(path) as file:
        file.write(content)
    inputs = {f.name: "string" if f.kind == "categorical" else "double" for f in _features(model)}
    return OnnxExport(inputs, outputs, threshold, margin, difference, comparison)


def _check_ties(model: TableModel, ties: str) -> None:
    calibrations = model.classifier.calibrations_
    hashed = any(each.ties == "hash" and each.tie_key > 0 for each in calibrations)
    if ties == "as-fitted" and hashed:
        raise ModelFileError(
            "This model flags some of the rows that tie with its threshold, chosen by a hash. ONNX "
            "cannot compute it. Export with ties='exclude' (--ties exclude): such rows are not "
            "flagged then. Fewer rows are flagged, never more."
        )


def _check_no_work(model: TableModel) -> None:
    if model.schema.work is not None:
        raise ModelFileError(
            "This model weighs values, efforts or a worth, which a graph in ONNX does not. Fit one "
            "without --value, --effort and --worth, or decide with: shortlist flag."
        )


def _check_names(model: TableModel) -> None:
    taken = [feature.name for feature in _features(model) if feature.name in _OUTPUTS]
    if taken:
        raise ModelFileError(
            f"The column {taken[0]!r} has the name of an output. Rename it and fit again."
        )


def _add_model(graph: GraphBuilder, model: TableModel, estimator: Any) -> str:
    """Add the score by one of the models; return its name."""
    if not isinstance(estimator, Pipeline) or list(estimator.named_steps) != ["columns", "learner"]:
        raise ModelFileError(
            "Only models of a single learner can be exported. Fit with --learner logistic, forest, "
            "boosting, svm, network, aware-linear or aware-svm."
        )
    prepared, learner = estimator["columns"], estimator["learner"]
    n_features = len(prepared.get_feature_names_out())
    return add_score(graph, learner, add_columns(graph, prepared, model.schema), n_features)


def _raised_thresholds(model: TableModel) -> tuple[list[float], float]:
    """Return thresholds that rounding cannot lift a score across, and their margin."""
    values = [float(each.value) for each in model.classifier.calibrations_]
    if not all(map(math.isfinite, values)):
        return values, 0.0
    scores = model.classifier.calibration_scores_
    finite = np.abs(scores[np.isfinite(scores)]).max(initial=0)
    largest = max(*map(abs, values), float(finite))
    raised = [float(np.nextafter(value + _MARGIN * largest, np.inf)) for value in values]
    return raised, min(high - low for high, low in zip(raised, values, strict=True))


def _add_outputs(
    graph: GraphBuilder, model: TableModel, scores: list[str], thresholds: list[float]
) -> list[str]:
    """Add the mean score, and the flag where every score is above its own threshold."""
    mean = scores[0]
    if len(scores) > 1:
        mean = graph.add("Div", graph.add("Sum", *scores), graph.constant(float(len(scores))))
    compared = scores if len(thresholds) == len(scores) else [mean]
    flags = [
        graph.add("Greater", score, graph.constant(threshold))
        for score, threshold in zip(compared, thresholds, strict=True)
    ]
    flag = flags[0]
    for other in flags[1:]:
        flag = graph.add("And", flag, other)
    graph.output("score", mean, "double")
    graph.output("flag", flag, "bool")
    if model.classifier.response_method_ != "predict_proba":
        return ["score", "flag"]
    graph.output("probability", mean, "double")
    return list(_OUTPUTS)


def _compared(model: TableModel, content: bytes, margin: float) -> float:
    """Return the largest difference between scores; raise an error if it is too large."""
    difference = largest_difference(model, content, probe_rows(model))
    if difference > margin / 4 and margin > 0:
        raise ModelFileError(
            f"The scores of the exported graph differ by up to {difference:.1e} from the model's, "
            f"more than a quarter of the margin of {margin:.1e} by which its threshold is raised. "
            "Nothing was written. Fit with another learner."
        )
    return difference


def _checked(
    model: TableModel, content: bytes, data: Path, reading: ReadOptions | None
) -> OnnxComparison:
    comparison = compare_content(model, content, data, reading=reading)
    if comparison.flagged_more:
        raise ModelFileError(
            f"The exported graph flags {comparison.flagged_more} of {comparison.n_items} rows that "
            "the model does not flag. Nothing was written. Fit with another learner."
        )
    return comparison


def _description(model: TableModel) -> str:
    classifier = model.classifier
    return (
        "Flags rows whose score is strictly above a threshold. The capacity is "
        f"{classifier.capacity_fraction_:.4g} of all rows, the guarantee {classifier.guarantee!r}."
    )


def _properties(model: TableModel, threshold: float, margin: float) -> dict[str, str]:
    return {
        "shortlist_version": __version__,
        "threshold": repr(threshold),
        "margin": repr(margin),
        "model": json.dumps(manifest_of(model)),
    }


def _features(model: TableModel) -> Any:
    return model.schema.features
