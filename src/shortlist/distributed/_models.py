"""Scores and decisions of a model about blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.extras import load_extra
from ..classifier import CapacityDecisionMixin
from ..exceptions import TableError
from ..tables import TableModel, count_columns
from ._engine import Engine, RowKernel, as_columns, table_schema

__all__ = ["ColumnCounts", "DecidedRows", "ModelRows", "plan_rows"]

#: What a model can say about a row, and the type of each column. If several models decide, the
#: score is that of all models, as in lists, and `score` beside `flagged` that of the one decider.
SAID = {"score": "double", "decided": "double", "flagged": "bool", "is_rare": "bool"}


class _Rows(NamedTuple):
    """A block in the form that a model takes."""

    X: Any
    ids: NDArray[Any] | None
    segments: NDArray[Any] | None
    is_rare: Mask | None


@dataclass(frozen=True)
class ModelRows:
    """A model, and the columns that it reads from a table.

    Parameters
    ----------
    model : TableModel or CapacityClassifier
        Fitted. A classifier must have been fitted on a data frame, whose column names it knows.
    id : str or None
        The column with the ids. A table model breaks ties as its own commands do: by its id column,
        or by the values of the row. A classifier takes these ids; without any, the values of the
        row.
    segment : str, default=None
        The column with the segments, for a model with capacities of segments.
    target : str, default=None
        The column with the labels, where they are needed.
    """

    model: Any
    id: str | None
    segment: str | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.model, TableModel):
            return
        if not isinstance(self.model, CapacityDecisionMixin):
            raise TypeError(
                f"model must be a TableModel (from shortlist.persistence.load_model) or a fitted "
                f"CapacityClassifier; got {type(self.model).__name__}."
            )
        if not hasattr(self.model, "feature_names_in_"):
            raise TableError(
                "The classifier does not know the names of its columns. Fit it on a data frame."
            )

    @property
    def classifier(self) -> Any:
        """The classifier."""
        return self.model.classifier if isinstance(self.model, TableModel) else self.model

    @property
    def features(self) -> list[str]:
        """The columns that the classifier takes."""
        if isinstance(self.model, TableModel):
            return [feature.name for feature in self.model.schema.features]
        return [str(name) for name in self.model.feature_names_in_]

    @property
    def needs(self) -> list[str]:
        """All columns that are read to decide."""
        own = self.model.schema.id if isinstance(self.model, TableModel) else None
        others = [self.id, own, self.segment, self.target]
        return list(dict.fromkeys([*self.features, *(name for name in others if name)]))

    def take(self, block: Any) -> _Rows:
        """Convert an Arrow table."""
        segments = None if self.segment is None else as_columns(block, [self.segment])[self.segment]
        if isinstance(self.model, TableModel):
            rows = self.model.schema.convert(block, target=self.target)
            return _Rows(rows.X, rows.ids, segments, rows.is_rare)
        ids = None if self.id is None else as_columns(block, [self.id])[self.id]
        X = block.select(self.features).to_pandas()
        return _Rows(X, ids, segments, self._labels(block))

    def _labels(self, block: Any) -> Mask | None:
        if self.target is None:
            return None
        labels = as_columns(block, [self.target])[self.target]
        return np.asarray(labels == self.model.rare_label_, dtype=bool)


@dataclass(frozen=True)
class DecidedRows:
    """Turns rows into what a model says about them, beside columns that are kept."""

    rows: ModelRows
    kept: list[str]
    said: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return list(dict.fromkeys([*self.rows.needs, *self.kept]))

    def __call__(self, block: Any) -> Any:
        """Return kept columns, and those that the model adds."""
        pa = load_extra("pyarrow", needed_for="Scoring a large table")
        added = self._say(block)
        table = block.select(self.kept)
        for name in self.said:
            table = table.append_column(name, pa.array(added[name], pa.type_for_alias(SAID[name])))
        return table

    def _say(self, block: Any) -> dict[str, Any]:
        rows = self.rows.take(block)
        if self.said == ("score",):
            scores = self.rows.classifier.score_samples(rows.X)
            return {"score": np.asarray(scores, dtype=np.float64)}
        decided = self.rows.classifier.decide(rows.X, ids=rows.ids, segments=rows.segments)
        scores = np.asarray(decided.scores, dtype=np.float64)
        said = {"score": scores, "decided": scores, "flagged": decided.flagged}
        if "decided" in self.said and len(self.rows.classifier.calibrations_) > 1:
            said["score"] = np.asarray(self.rows.classifier.score_samples(rows.X), dtype=np.float64)
        return {**said, "is_rare": rows.is_rare}


@dataclass(frozen=True)
class ColumnCounts:
    """Counts the values of a block in the bins of the model card."""

    rows: ModelRows

    def __call__(self, block: Any) -> list[tuple[int, ...]]:
        """Return the counts of each column."""
        return count_columns(self.rows.model.card.profiles, self.rows.take(block).X)


def plan_rows(
    engine: Engine, table: Any, rows: ModelRows, *, said: tuple[str, ...], kept: list[str]
) -> tuple[RowKernel, Any]:
    """Return the kernel that decides about a table and the schema of its answer, after checks.

    Missing columns and workers with other versions are errors, before anything is computed.
    """
    types = engine.column_types(table)
    missing = [name for name in [*rows.needs, *kept] if name not in types]
    if missing:
        raise TableError(
            f"The table has no column {', '.join(map(repr, missing))}, which the model or the call "
            f"needs; its columns are {', '.join(map(repr, types))}."
        )
    engine.check_versions(table)
    schema = table_schema(engine, table, kept=kept, added={name: SAID[name] for name in said})
    return DecidedRows(rows, kept, said), schema
