"""A table that is read once and kept: the rows for the model, and other columns beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import TableError
from ..tables.schema import Feature, TableRows, TableSchema

__all__ = ["EMPTY", "KeptTable"]

#: The name of the segment of cases without one.
EMPTY = "(empty)"
# A column with more different values than this share of the rows, and than a few, has no groups.
_MOST_DIFFERENT, _FEW = 0.5, 20
# Days since 1970 of the years 1678 to 2261; 9999-12-31 and 1001-01-01 stand for something else.
_FIRST_DAY, _LAST_DAY = -106_650, 106_650


class KeptTable:
    """The chunks of an open table, with more columns than the model needs.

    Parameters
    ----------
    source : OpenTable
        What `TableSchema.open` yields; it can be read only once.
    schema : TableSchema
        The columns that the model needs.
    target : str or None
        The column with the labels; None takes the target of the fit, if it is there and not empty.
    labels : bool
        Whether labels are wanted at all.
    others : collection of str or None
        Other columns to keep.

    Attributes
    ----------
    source : OpenTable
        The same table, which can be read again.
    target : str or None
        The column with the labels; None if there are none.
    """

    def __init__(
        self,
        source: Any,
        schema: TableSchema,
        target: str | None,
        *,
        labels: bool,
        others: Collection[str | None],
    ) -> None:
        self.source, self.target = replace(source, chunks=self._read_once), target
        self._schema, self._chunks, self._origin = schema, list[Any](), source
        self._more = [name for name in others if name is not None]
        source.require(self._more, "which --segment or --time names")
        is_there = labels and target is None and schema.target in source.columns
        self._more += [schema.target] if is_there else []
        next(schema.rows(self.source, target=target), None)  # checks the columns, and reads
        if is_there and not self._is_empty(schema.target):
            self.target = schema.target

    def _read_once(self, wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        if not self._chunks:
            every = list(dict.fromkeys([*wanted, *self._more]))
            self._chunks.extend(self._origin.chunks(every, numeric))
        return iter(self._chunks)

    def _is_empty(self, column: str) -> bool:
        return all(chunk[column].null_count == chunk.num_rows for chunk in self._chunks)

    def texts(self, column: str) -> NDArray[np.str_]:
        """Return a column of segments as texts, in which whole numbers have no decimals."""
        values = (value for chunk in self._chunks for value in chunk[column].to_pylist())
        texts = np.array([_text(value) for value in values], dtype=str)
        n_different = np.unique(texts).size
        if n_different > max(_MOST_DIFFERENT * texts.size, _FEW):
            raise TableError(
                f"--segment names {column!r}, which has {n_different:,} different values in "
                f"{texts.size:,} rows. It looks like an id or a measurement. Name a column with "
                "groups of rows, such as a team or a country."
            )
        return texts

    def days(self, column: str, rows: TableRows) -> NDArray[np.float64]:
        """Return a column as days since 1970, read as the dates of the model are."""
        known = {feature.name: feature.kind for feature in self._schema.features}
        is_known = known.get(column) == "date"
        days = rows.X[column].to_numpy() if is_known else self._converted(column)
        if np.isnan(days).all():
            raise TableError(f"--time names {column!r}, but this column is empty in every row.")
        is_odd = (days < _FIRST_DAY) | (days >= _LAST_DAY + 1)
        if is_odd.any():
            raise TableError(_no_date(column, *self._value(column, int(is_odd.argmax()))))
        return days

    def _value(self, column: str, row: int) -> tuple[int, Any]:
        return row, [value for chunk in self._chunks for value in chunk[column].to_pylist()][row]

    def _converted(self, column: str) -> NDArray[np.float64]:
        schema = replace(self._schema, features=(Feature(column, "date"),), id=None)
        schema = schema.adapted(self._origin.reading)
        try:
            parts = [schema.convert(chunk).X[column] for chunk in self._chunks]
        except ValueError:
            raise TableError(_no_date(column, *self._first_other(column, schema))) from None
        return np.concatenate(parts)

    def _first_other(self, column: str, schema: TableSchema) -> tuple[int, Any]:
        """Return the first value that is not a date by itself, and its row from 0."""
        n_before = 0
        for chunk in self._chunks:
            for row in range(chunk.num_rows):
                try:
                    schema.convert(chunk.slice(row, 1))
                except ValueError:
                    return n_before + row, chunk[column][row].as_py()
            n_before += chunk.num_rows
        return 0, self._chunks[0][column][0].as_py()


def _no_date(column: str, row: int, value: Any) -> str:
    return (
        f"--time names {column!r}, but {str(value)!r} in row {row + 1} is not a date, or not one "
        "of our times. Write dates as 2024-05-31, say how they are written with --date-format, or "
        "use --segment for other groups."
    )


def _text(value: Any) -> str:
    if value is None or value != value:
        return EMPTY
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() or EMPTY
