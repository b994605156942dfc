"""A ranked list of exactly so many rows, with reasons for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..capacity import Capacity
from ._columns import MISSING_CATEGORY
from ._model import TableModel
from ._reading import Reading

__all__ = ["Reason", "SelectedRow", "explain_rows", "select_rows"]

_MOST_REASONS = 3
_SLIGHTEST = 0.01  # of the largest effect in the row; a smaller effect is not a reason


@dataclass(frozen=True)
class Reason:
    """A column that raised a score, its value, and how far the usual value would lower it."""

    column: str
    value: Any
    effect: float


@dataclass(frozen=True)
class SelectedRow:
    """A row on the list; `row` counts from 1 below the heading."""

    rank: int
    row: int
    id: str | None
    score: float
    probability: float | None
    reasons: list[Reason]


def select_rows(
    model: TableModel, path: Path, *, count: int, reading: Reading | None = None
) -> list[SelectedRow]:
    """Return the `count` most suspicious rows of a file, the most suspicious first.

    There are exactly `count` rows, or all rows if there are fewer. Rows with equal scores are
    chosen and ordered by a hash of their ids (or of their own values if there are no ids), never by
    their position.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs; it is held in memory.
    count : int
        How many rows to select.
    reading : Reading, default=None
        What to know about this file; `None` reads it as the table of the fit.

    Returns
    -------
    list of SelectedRow
        With the score, the probability if the learner has one, and the columns that raised the
        score.
    """
    with model.schema.open(path, reading=reading) as source:
        rows = model.schema.read(source)
    classifier, capacity = model.classifier, Capacity.count(count)
    flagged = np.flatnonzero(classifier.select(rows.X, capacity, ids=rows.ids))
    if flagged.size == 0:
        return []
    listed = rows.take(flagged)
    X, ids = listed.X, listed.ids
    scores = np.asarray(classifier.score_samples(X), dtype=np.float64)
    probabilities = _probabilities(model, X)
    reasons = explain_rows(model, X, scores)
    ranked = model.rank(X, ids, scores)
    return [
        SelectedRow(
            rank=place + 1,
            row=int(flagged[chosen]) + 1,
            id=None if ids is None else str(ids[chosen]),
            score=float(scores[chosen]),
            probability=None if probabilities is None else float(probabilities[chosen]),
            reasons=reasons[chosen],
        )
        for place, chosen in enumerate(ranked.tolist())
    ]


def _probabilities(model: TableModel, X: Any) -> NDArray[np.float64] | None:
    if not hasattr(model.classifier, "predict_proba"):
        return None
    rare = int(np.flatnonzero(model.classifier.classes_)[0])  # the labels are False and True
    return model.classifier.predict_proba(X)[:, rare]


def explain_rows(
    model: TableModel, X: Any, scores: NDArray[np.float64] | None = None
) -> list[list[Reason]]:
    """Measure for each column how much the score falls if it takes its usual value.

    Columns are changed one at a time, in the given rows only. This is cheap, works for every
    learner, and describes the model itself. Columns that can replace each other may each show a
    small effect.

    Parameters
    ----------
    model : TableModel
        Fitted.
    X : data frame
        The rows.
    scores : ndarray, default=None
        Their scores, if they are known.

    Returns
    -------
    list of lists of Reason
        For each row the columns that raised its score, at most three, the largest effect first.
    """
    if scores is None:
        scores = np.asarray(model.classifier.score_samples(X), dtype=np.float64)
    effects = np.column_stack(
        [
            scores - model.classifier.score_samples(_with_usual(X, model, feature.name))
            for feature in model.schema.features
        ]
    )
    features = model.schema.features
    largest = np.argsort(-effects, axis=1, kind="stable")[:, :_MOST_REASONS]
    return [
        [
            Reason(
                features[column].name,
                _shown(X.iloc[row, column], features[column].kind),
                float(effects[row, column]),
            )
            for column in largest[row].tolist()
            if effects[row, column] > _SLIGHTEST * effects[row].max(initial=0)
        ]
        for row in range(len(X))
    ]


def _with_usual(X: Any, model: TableModel, column: str) -> Any:
    return X.assign(**{column: model.reference[column]})


def _shown(value: Any, kind: str) -> Any:
    """Return a value in the form of the table: a date as a date, None if it is missing."""
    if kind == "categorical":
        return None if value == MISSING_CATEGORY else value
    if value != value:
        return None
    if kind == "date":
        moment = np.datetime64(round(value * 86_400), "s")
        return str(moment.astype("datetime64[D]") if value == int(value) else moment)
    return bool(value) if kind == "boolean" else float(value)
