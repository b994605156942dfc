"""What looks odd in a table: nothing that stops a fit, but worth a second look."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columns import MISSING_CATEGORY
from ._schema import Feature, Rows, TableSchema

__all__ = ["notes_on"]

_FEWEST_ROWS = 50
_NEARLY_ALL = 0.9
_MOST_VALUES = 20
_AMBIGUOUS_DATE = r"\d{1,2}/\d{1,2}/(\d{2}|\d{4})"


def notes_on(rows: Rows, schema: TableSchema) -> list[str]:
    """Return a sentence for each column that should perhaps not be learned from as it is."""
    if len(rows.X) < _FEWEST_ROWS:
        return []
    notes = [_note(rows.X[feature.name], feature, rows.is_rare) for feature in schema.features]
    return [note for note in notes if note is not None]


def _note(column: Any, feature: Feature, is_rare: NDArray[np.bool_] | None) -> str | None:
    name = feature.name
    if feature.kind == "categorical" and _looks_like_dates(column):
        return (
            f"{name!r} looks like dates, but day and month cannot be told apart; it is taken as "
            "text. Write dates as 2024-05-31."
        )
    if _names_rows(column, feature.kind):
        return (
            f"{name!r} has another value in nearly every row, and looks like an id. If it is one, "
            f"say --id {name}: it is then not learned from."
        )
    if is_rare is not None and _gives_away(column, feature.kind, is_rare):
        return (
            f"{name!r} alone tells every rare row from the others. Was it known when the decision "
            "had to be made? If not, leave it out."
        )
    return None


def _looks_like_dates(texts: Any) -> bool:
    present = texts[texts != MISSING_CATEGORY]
    return len(present) > 0 and bool(present.str.fullmatch(_AMBIGUOUS_DATE).all())


def _names_rows(column: Any, kind: str) -> bool:
    """Tell a column of names, or of running numbers, from one that describes."""
    if kind == "categorical":
        return bool(column.nunique() > _NEARLY_ALL * len(column))
    values = column.to_numpy()
    is_whole = bool(np.all(values == np.floor(values)))  # not so with gaps
    return kind == "numeric" and is_whole and bool((np.diff(values) > 0).all())


def _gives_away(column: Any, kind: str, is_rare: NDArray[np.bool_]) -> bool:
    if kind == "categorical":
        labels = column.groupby(column).ngroup().to_numpy()
        pairs = np.unique(np.column_stack([labels, is_rare]), axis=0)
        return len(pairs) == column.nunique() <= _MOST_VALUES
    values = column.to_numpy()
    rare, common = values[is_rare], values[~is_rare]
    if np.isnan(values).any():
        return False
    return bool(rare.min() > common.max() or rare.max() < common.min())
