"""How a table would be read, before any fit: kinds, formats, examples, missing values, notes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .columns import Feature, Place, is_missing
from .options import ReadOptions
from .read import OpenTable, open_table
from .schema import chosen_columns, infer_features

_MOST_ROWS = 100_000
_EXAMPLES = 3


@dataclass(frozen=True)
class ColumnView:
    """A column as a model would get it; `kind` is None if a model would not learn from it."""

    name: str
    kind: str | None
    format: str
    examples: list[str]
    n_missing: int | None


@dataclass(frozen=True)
class TableView:
    """The columns of a table, and every decision about them that could have been another."""

    table: str
    n_rows: int
    is_whole: bool
    columns: list[ColumnView]
    notes: list[str]


def inspect_table(path: Path, *, reading: ReadOptions | None = None) -> TableView:
    """Read the first 100,000 rows of a table, and return how a fit would read them."""
    with open_table(path, reading=reading) as source:
        read = source.read(_MOST_ROWS + 1)
        table, is_whole = read.slice(0, _MOST_ROWS), read.num_rows <= _MOST_ROWS
        features = infer_features(source, table, chosen_columns(source))
        known = {feature.name: feature for feature in features}
        columns = [_view(table[name], name, known.get(name), source) for name in source.columns]
        return TableView(source.name, table.num_rows, is_whole, columns, source.take_notes())


def _view(column: Any, name: str, feature: Feature | None, source: OpenTable) -> ColumnView:
    present = column.slice(0, 1_000).drop_null().to_pylist()
    examples = list(dict.fromkeys(str(value) for value in present))[:_EXAMPLES]
    if feature is None:
        return ColumnView(name, None, "", examples, None)
    place = Place(source.name)
    values = feature.values(column, place=place)
    n_missing = int(is_missing(values, feature.kind).sum())
    return ColumnView(name, feature.kind, feature.format.in_words, examples, n_missing)
