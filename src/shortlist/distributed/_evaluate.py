"""What a model finds in a labelled table of any size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import TableError
from ..metrics.counted import count_rows
from ..tables import TableModel
from ..tables.measure import Evaluation, evaluation_of
from ..tables.rules import BY_DEFAULT
from ._models import ModelRows, plan_rows
from .engine import Columns, Engine, on_arrays

__all__ = ["measure_model"]

_RANKED, _SEEN = ("lifted", "key", "is_rare"), ("is_asked", "is_known")


def measure_model(
    engine: Engine,
    model: Any,
    table: Any,
    *,
    id: str | None,
    target: str | None = None,
    segment: str | None = None,
) -> Evaluation:
    """Measure a model on a labelled table with any engine."""
    rows = ModelRows(model, id, segment, _target(model, target))
    if rows.classifier.capacity.kind == "effort":
        raise TableError(
            "The capacity of this model is a budget of work, which an engine does not measure. Use "
            "shortlist.tables.evaluate_table, which reads files and folders, too."
        )
    rules, known = {"flagged": "this model"}, None
    if isinstance(model, TableModel):
        rules, known = {**rules, "by_default": BY_DEFAULT}, model.fingerprints
    said = (*_RANKED, *rules, *(() if known is None else _SEEN))
    kernel, schema = plan_rows(engine, table, rows, said=said, kept=[])
    with engine.kept_rows(table, kernel, schema) as decided:
        counted = count_rows(on_arrays(engine, decided, [*_RANKED, *rules]), rules)
        _check_classes(counted.n_rare, counted.n_items, str(rows.target))
        seen = None
        if known is not None:
            seen = known.seen_of(sum(on_arrays(engine, decided, [*_SEEN])(_count_seen)))
    capacity = model.flag_capacity if isinstance(model, TableModel) else model.capacity
    return replace(evaluation_of(counted, capacity, rules), seen=seen)


def _count_seen(columns: Columns) -> NDArray[np.int64]:
    asked, known = (columns[name] for name in _SEEN)
    return np.array([asked.size, np.count_nonzero(asked), np.count_nonzero(known)])


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
