"""Scores and decisions of a model about blocks of rows, and what they find."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask
from .._core.arrow import pa
from .._core.ids import tie_keys_of
from .._core.ranking import lift
from ..classifier import CapacityClassifier
from ..exceptions import TableError
from ..metrics.counted import count_rows
from ..tables import TableModel
from ..tables.measure import Evaluation, evaluation_of
from ..tables.rules import BY_DEFAULT
from ..tables.schema import TableRows
from ..thresholds import Decisions
from .engine import Columns, Engine, Plan, as_columns, check_present, on_arrays, table_schema

_PACKAGES = ("shortlist", "numpy", "sklearn")
#: What a model can say about a row, and the type of each column. If several models decide, a score
#: alone is that of all of them, as in lists, and `score` beside `flagged` that of the one decider.
SAID = {
    **dict.fromkeys(("score", "lifted", "key"), "double"),
    **dict.fromkeys(("flagged", "by_default", "is_rare", "is_asked", "is_known"), "bool"),
}
_RANKED, _SEEN = ("lifted", "key", "is_rare"), ("is_asked", "is_known")


class _SameVersions:
    """Is unpickled before the model, and raises an error where packages have other versions."""

    def __reduce__(self) -> Any:
        return _check_versions, (_versions(),)


def _versions() -> dict[str, str]:
    return {name: str(importlib.import_module(name).__version__) for name in _PACKAGES}


def _check_versions(elsewhere: dict[str, str]) -> _SameVersions:
    """Raise an error if a model comes from a process with other versions than this one."""
    other = {name: version for name, version in _versions().items() if version != elsewhere[name]}
    if other:
        said = ", ".join(f"{name} {other[name]} instead of {elsewhere[name]}" for name in other)
        raise TableError(
            f"A worker of the cluster has {said}. Scores may differ, and the model may not load. "
            "Install the same versions on all workers."
        )
    return _SameVersions()


@dataclass(frozen=True)
class ModelRows:
    """A model, and the columns that it reads from a table.

    It travels with the versions of its packages, which are compared before the model is loaded. A
    classifier must have been fitted on a data frame, whose column names it knows. A table model
    breaks ties as its own commands do: by its id column, or by the values of the row. A classifier
    takes the ids of `id`; without any, the values of the row.
    """

    versions: _SameVersions = field(init=False, default_factory=lambda: _SameVersions())
    model: Any
    id: str | None
    segment: str | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.model, TableModel):
            return
        if not isinstance(self.model, CapacityClassifier):
            raise TypeError(
                f"model must be a TableModel (from shortlist.tables.load_model) or a fitted "
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
        work = self.model.schema.work if isinstance(self.model, TableModel) else None
        weighed = () if work is None else work.columns.values()
        others = [self.id, own, self.segment, self.target, *weighed]
        return list(dict.fromkeys([*self.features, *(name for name in others if name)]))

    def take(self, block: Any) -> TableRows:
        """Convert an Arrow table."""
        if isinstance(self.model, TableModel):
            return self.model.schema.convert(block, target=self.target)
        X = block.select(self.features).to_pandas()
        return TableRows(X, self._column(block, self.id), self._labels(block))

    def decide(self, block: Any, rows: TableRows) -> Decisions:
        """Decide about rows as the model's own commands do."""
        if isinstance(self.model, TableModel) and self.segment is None:
            return self.model.decide(rows)
        segments = self._column(block, self.segment)
        return self.classifier.decide(rows.X, ids=rows.ids, segments=segments)

    def scores(self, rows: TableRows) -> Floats:
        """Return what lists rank by."""
        if isinstance(self.model, TableModel):
            return self.model.list_scores(rows)
        return np.asarray(self.classifier.score_samples(rows.X))

    def keys(self, rows: TableRows) -> Floats:
        """Return what orders rows with equal scores."""
        seed = self.classifier.rule_.terms.seed
        return tie_keys_of(rows.X, rows.ids, seed=seed)(np.arange(len(rows.X)))

    @staticmethod
    def _column(block: Any, name: str | None) -> Any:
        return None if name is None else as_columns(block, [name])[name]

    def _labels(self, block: Any) -> Mask | None:
        labels = self._column(block, self.target)
        return None if labels is None else np.asarray(labels == self.model.rare_label_, dtype=bool)


@dataclass(frozen=True)
class _DecidedRows:
    """Turns rows into what a model says about them, beside columns that are kept."""

    rows: ModelRows
    kept: list[str]
    said: tuple[str, ...]

    def __call__(self, block: Any) -> Any:
        """Return kept columns, and those that the model adds."""
        added, table = self._say(block), block.select(self.kept)
        for name in self.said:
            values = np.asarray(added[name], dtype=np.float64 if SAID[name] == "double" else bool)
            table = table.append_column(name, pa.array(values))
        return table

    def _say(self, block: Any) -> dict[str, Any]:
        rows = self.rows.take(block)
        if self.said == ("score",):
            return {"score": self.rows.scores(rows)}
        decided = self.rows.decide(block, rows)
        said = {"score": decided.scores, "flagged": decided.flagged, "is_rare": rows.is_rare}
        if "lifted" in self.said:  # as lists rank, by all models
            several = len(self.rows.classifier.calibrations_) > 1
            scores = self.rows.scores(rows) if several else decided.scores
            said |= {"lifted": lift(np.asarray(scores)), "key": self.rows.keys(rows)}
        if "by_default" in self.said:
            said["by_default"] = self.rows.model.predict(rows.X)
        if "is_known" in self.said:
            known = self.rows.model.fingerprints
            hashes = known.hashes_of(rows)
            said |= {"is_asked": hashes < known.cutoff, "is_known": np.isin(hashes, known.hashes)}
        return said


def plan_rows(
    engine: Engine, table: Any, rows: ModelRows, *, said: tuple[str, ...], kept: list[str]
) -> Plan:
    """Return how a model decides about the rows of a table."""
    columns = list(dict.fromkeys([*rows.needs, *kept]))
    check_present(engine.column_types(table), columns)
    schema = table_schema(engine, table, kept=kept, added={name: SAID[name] for name in said})
    return Plan(table, columns, _DecidedRows(rows, kept, said), schema)


# --- what a model finds ---


def measure_model(
    engine: Engine, table: Any, rows: ModelRows, find: float | None = None
) -> Evaluation:
    """Measure a model on a labelled table of any size, with any engine."""
    model, known = rows.model, None
    if rows.classifier.capacity.kind == "effort":
        raise TableError(
            "The capacity of this model is a budget of work, which an engine does not measure. Use "
            "shortlist.tables.evaluate_table, which reads files and folders, too."
        )
    rules, capacity = {"flagged": "this model"}, rows.classifier.capacity
    if isinstance(model, TableModel):
        rules, known = {**rules, "by_default": BY_DEFAULT}, model.fingerprints
    said = (*_RANKED, *rules, *(() if known is None else _SEEN))
    with engine.kept_rows(plan_rows(engine, table, rows, said=said, kept=[])) as decided:
        counted = count_rows(on_arrays(engine, decided, [*_RANKED, *rules]), rules)
        seen = sum(on_arrays(engine, decided, [*_SEEN])(_count_seen)) if known else 0
    if counted.n_rare in (0, counted.n_items):
        raise TableError(
            f"The column {rows.target!r} has {counted.n_rare:,} rare rows of {counted.n_items:,}. "
            "Evaluation needs rare rows and others. Check the target and its labels."
        )
    measured = evaluation_of(counted, capacity, rules, find=find)
    return replace(measured, seen=None if known is None else known.seen_of(np.asarray(seen)))


def _count_seen(columns: Columns) -> NDArray[np.int64]:
    asked, known = (columns[name] for name in _SEEN)
    return np.array([asked.size, np.count_nonzero(asked), np.count_nonzero(known)])
