"""The list for one batch: exactly so many rows, ranked, with the reasons for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.hashing import hash_ids, hash_rows
from .._core.ranking import rank
from .._core.steady import lift
from .._core.validation import check_seed
from ..capacity import Capacity
from ._columns import MISSING_CATEGORY
from ._model import TableModel
from ._read import open_source
from ._schema import all_rows

__all__ = ["Reason", "SelectedRow", "rank_rows", "select_rows"]

_MOST_REASONS = 3
_SLIGHTEST = 0.01  # of the largest effect in the row; what is slighter is no reason


@dataclass(frozen=True)
class Reason:
    """A column that raised a score: its value, and by how much the usual value would lower it."""

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


def select_rows(model: TableModel, path: Path, *, count: int) -> list[SelectedRow]:
    """Return the `count` most suspicious rows of a file, the most suspicious first.

    Exactly `count`, or all rows where there are fewer. Rows with equal scores are chosen and
    ordered by a hash of their ids (of their own values without ids), never by their place.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs; all of it is held in memory.
    count : int
        How many rows to select.

    Returns
    -------
    list of SelectedRow
        With score, probability where there is one, and the columns that raised the score.
    """
    with open_source(path) as source:
        rows = all_rows(model.schema, source)
    classifier, capacity = model.classifier, Capacity.count(count)
    flagged = np.flatnonzero(classifier.select(rows.X, capacity, ids=rows.ids))
    if flagged.size == 0:
        return []
    X = rows.X.iloc[flagged]
    ids = None if rows.ids is None else rows.ids[flagged]
    scores = np.asarray(classifier.score_samples(X), dtype=np.float64)
    probabilities = _probabilities(model, X)
    reasons = _reasons(model, X, scores)
    ranked = rank_rows(model, X, ids, scores)
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


def rank_rows(
    model: TableModel, X: Any, ids: NDArray[Any] | None, scores: NDArray[np.floating]
) -> NDArray[np.intp]:
    """Return positions, the most suspicious first, as the classifier itself breaks ties."""
    seed = check_seed(model.classifier.random_state)
    keys = hash_rows(X, seed=seed) if ids is None else hash_ids(ids, seed=seed)
    return rank(lift(scores), lambda tied: keys[tied])[0]


def _probabilities(model: TableModel, X: Any) -> NDArray[np.float64] | None:
    if not hasattr(model.classifier, "predict_proba"):
        return None
    rare = int(np.flatnonzero(model.classifier.classes_)[0])  # the labels are False and True
    return model.classifier.predict_proba(X)[:, rare]


def _reasons(model: TableModel, X: Any, scores: NDArray[np.float64]) -> list[list[Reason]]:
    """Ask for each column by how much the score falls when it takes its usual value.

    One column at a time, on the selected rows alone: cheap, the same for every learner, and true
    of the model as it is. Columns that stand in for each other may each show a small effect.
    """
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
    """Return a value as its reader knows it: a date as a date, None for what is missing."""
    if kind == "categorical":
        return None if value == MISSING_CATEGORY else value
    if value != value:
        return None
    if kind == "date":
        moment = np.datetime64(round(value * 86_400), "s")
        return str(moment.astype("datetime64[D]") if value == int(value) else moment)
    return bool(value) if kind == "boolean" else float(value)
