"""What a model finds in a labelled table of any size: M, intervals, curve and drift."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import TableError
from ..metrics.counted import count_rows
from ..tables import TableModel
from ..tables.drift import (
    ColumnProfile,
    chances_of_flags,
    compare_columns,
    judge_shifts,
    verdict_on,
)
from ..tables.fingerprints import SeenRows
from ..tables.measure import Evaluation, evaluation_of
from ..tables.rules import default_name
from ._models import ColumnCounts, ModelRows, plan_rows
from .engine import Columns, Engine, on_arrays

__all__ = ["Drift", "LargeEvaluation", "measure_model"]

_COLUMNS = ("score", "lifted", "key", "is_rare")


@dataclass(frozen=True)
class Drift:
    """How the rows differ from the calibration rows.

    Attributes
    ----------
    score : dict
        Counts of the scores in tenths of the calibration scores, stability index and p-value.
    columns : list of dict
        The same for each column of the model card; empty without one.
    verdict : str
        What this says.
    chance_of_as_many, chance_of_as_few : float
        Of so many or so few flags, if the rows were like those of the calibration.
    """

    score: dict[str, Any]
    columns: list[dict[str, Any]]
    verdict: str
    chance_of_as_many: float
    chance_of_as_few: float


@dataclass(frozen=True)
class LargeEvaluation(Evaluation):
    """An :class:`~shortlist.tables.Evaluation`, and the drift of the same rows."""

    drift: Drift | None = None


@dataclass(frozen=True)
class _CountScores:
    """Counts scores in bins."""

    profile: ColumnProfile

    def __call__(self, columns: Columns) -> NDArray[np.int64]:
        return np.array(self.profile.count(columns["score"]), dtype=np.int64)


def measure_model(
    engine: Engine,
    model: Any,
    table: Any,
    *,
    id: str | None,
    target: str | None = None,
    segment: str | None = None,
) -> LargeEvaluation:
    """Measure a model on a labelled table with any engine."""
    target = _target(model, target)
    if isinstance(model, TableModel) and model.classifier.capacity.kind == "effort":
        raise TableError(
            "The capacity of this model is a budget of work, which an engine does not measure. Use "
            "shortlist.tables.evaluate_table, which reads files and folders, too."
        )
    rows = ModelRows(model, id, segment, target)
    rules = {"flagged": "this model"}
    if isinstance(model, TableModel):
        rules["by_default"] = default_name(model)
    kernel, schema = plan_rows(engine, table, rows, said=(*_COLUMNS, *rules), kept=[])
    calibration = np.asarray(rows.classifier.calibration_scores_, dtype=np.float64)
    profile = ColumnProfile.from_values("score", "numeric", calibration)
    with engine.kept_rows(table, kernel, schema) as decided:
        scores = _total(on_arrays(engine, decided, ["score"])(_CountScores(profile)))
        names = [name for name in schema.names if name != "score"]
        counted = count_rows(on_arrays(engine, decided, names), rules)
    _check_classes(counted.n_rare, counted.n_items, target)
    capacity = model.flag_capacity if isinstance(model, TableModel) else model.capacity
    columns, seen = _column_counts(engine, table, rows)
    (score,) = compare_columns((profile,), [tuple(scores)])
    judge_shifts([score, *columns])
    chances = chances_of_flags(
        rows.classifier.calibrations_, counted.n_items, counted.flags("flagged")[0]
    )
    drift = Drift(score, columns, verdict_on(score, columns), *chances)
    measured = evaluation_of(counted, capacity, rules)
    return LargeEvaluation(**{**vars(measured), "seen": seen}, drift=drift)


def _total(counts: Iterable[NDArray[np.int64]]) -> list[int]:
    return np.sum(list(counts), axis=0).tolist()


def _target(model: Any, target: str | None) -> str:
    if target is None and isinstance(model, TableModel):
        return model.schema.target
    if target is None:
        raise TableError("Name the column with the labels: target=...")
    return target


def _check_classes(n_rare: int, n_items: int, target: str) -> None:
    if n_items == 0:
        raise TableError("The table has no rows.")
    if n_rare in (0, n_items):
        raise TableError(
            f"The column {target!r} has {n_rare:,} rare rows of {n_items:,}. Evaluation needs rare "
            "rows and others. Check the target and its labels."
        )


def _column_counts(
    engine: Engine, table: Any, rows: ModelRows
) -> tuple[list[dict[str, Any]], SeenRows | None]:
    """Return the drift of the columns, and how many rows the model has seen before."""
    if not isinstance(rows.model, TableModel):
        return [], None
    card, known = rows.model.card, rows.model.fingerprints
    profiles = () if card is None else card.profiles
    if not profiles and known is None:
        return [], None
    answers = engine.summaries(table, rows.needs, ColumnCounts(rows, profiles))
    *counts, seen = (_total(each) for each in zip(*answers, strict=True))
    shifts = compare_columns(profiles, [tuple(each) for each in counts])
    return shifts, None if known is None else known.seen_of(np.array(seen))
