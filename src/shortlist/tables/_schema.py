"""The columns of a table: their names and kinds, and which are target and id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask, Rows
from .._core.extras import load_extra
from ..exceptions import TableError
from ._columns import MISSING_CATEGORY, as_ids, as_labels, as_values, kind_of
from ._formats import Source, open_source
from ._reading import NOTHING_SAID, Reading

pd = load_extra("pandas", needed_for="Reading tables")

__all__ = ["Feature", "TableRows", "TableSchema", "infer_schema", "reference_values"]

_MOST_LABELS = 50


@dataclass(frozen=True)
class Feature:
    """A column that a model uses: its name and its kind.

    The kinds are "numeric", "categorical", "date" and "boolean".
    """

    name: str
    kind: str


@dataclass(frozen=True)
class TableRows:
    """Rows of a table, in the form that a model takes.

    Attributes
    ----------
    X : data frame
        The features.
    ids : ndarray or None
        The ids, if the schema names an id column.
    is_rare : ndarray of bool or None
        Whether each row has the rare label, if labels were read.
    """

    X: Any
    ids: NDArray[Any] | None = None
    is_rare: Mask | None = None

    def take(self, places: Rows) -> TableRows:
        """Return the rows at some positions."""
        ids = None if self.ids is None else self.ids[places]
        is_rare = None if self.is_rare is None else self.is_rare[places]
        return TableRows(self.X.iloc[places], ids, is_rare)


@dataclass(frozen=True)
class TableSchema:
    """The columns that a model was fitted on.

    Attributes
    ----------
    features : tuple of Feature
        The columns that the model uses. They never include the target or the id.
    target : str
        The column with the labels.
    rare_label : str
        The label to look for, as text.
    id : str or None
        The column that identifies a row. Ties are broken by it.
    reading : Reading
        What the user said about the file when the model was fitted.
    """

    features: tuple[Feature, ...]
    target: str
    rare_label: str
    id: str | None = None
    reading: Reading = NOTHING_SAID

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and texts."""
        return asdict(self) | {
            "features": [asdict(feature) for feature in self.features],
            "reading": self.reading.to_json(),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> TableSchema:
        """Read what :meth:`to_json` wrote."""
        features = tuple(Feature(**feature) for feature in content["features"])
        reading = Reading.from_json(content["reading"])
        return cls(features, content["target"], content["rare_label"], content["id"], reading)

    def open(self, path: Path, *, reading: Reading | None = None) -> AbstractContextManager[Source]:
        """Open a later file, which is read as the table of the fit was.

        Parameters
        ----------
        path : Path
            A table.
        reading : Reading, default=None
            What the user says about this file; it goes before what was said at the fit.

        Returns
        -------
        context manager
            It gives a source for :meth:`rows` and :meth:`read`.
        """
        return open_source(path, reading=(reading or NOTHING_SAID).after(self.reading))

    def adapted(self, reading: Reading) -> TableSchema:
        """Return this schema for values about which the user says more than at the fit.

        Parameters
        ----------
        reading : Reading
            What the user says; it goes before what was said at the fit.

        Returns
        -------
        TableSchema
        """
        return replace(self, reading=reading.after(self.reading))

    def rows(self, source: Source, *, target: str | None = None) -> Iterator[TableRows]:
        """Read the rows of an open table in chunks, with labels if `target` names their column.

        Missing columns raise an error immediately, before the first chunk is read.

        Parameters
        ----------
        source : Source
            What :func:`open_source` yields.
        target : str, default=None
            The column with the labels.

        Returns
        -------
        iterator of TableRows
        """
        wanted = [feature.name for feature in self.features]
        source.require(wanted, "which the model needs")
        if self.id is not None:
            source.require([self.id], "which is the id that the model was fitted with")
            wanted.append(self.id)
        if target is not None:
            source.require([target], "which --target names")
            wanted += [] if target in wanted else [target]
        numeric = {f.name for f in self.features if f.kind == "numeric"} - {target, self.id}
        return (self.convert(chunk, target=target) for chunk in source.chunks(wanted, numeric))

    def read(self, source: Source, *, target: str | None = None) -> TableRows:
        """Read all rows of an open table at once; a table without rows raises an error.

        Parameters
        ----------
        source, target
            As for :meth:`rows`.

        Returns
        -------
        TableRows
        """
        chunks = list(self.rows(source, target=target))
        if not chunks:
            raise TableError(f"{source.name} has a heading, but no rows.")
        return TableRows(
            pd.concat([rows.X for rows in chunks], ignore_index=True),
            _joined([rows.ids for rows in chunks]),
            _joined([rows.is_rare for rows in chunks]),
        )

    def convert(self, table: Any, *, target: str | None = None) -> TableRows:
        """Convert an Arrow table to rows for the model."""
        X = pd.DataFrame({f.name: _column(table[f.name], f) for f in self.features}, copy=False)
        ids = None if self.id is None else as_ids(table[self.id], self.id)
        if target is None:
            return TableRows(X, ids)
        return TableRows(X, ids, as_labels(table[target], target) == self.rare_label)


def _column(values: Any, feature: Feature) -> Any:
    """Return a column of a frame, of a type that encoders know in all versions of pandas."""
    dtype = object if feature.kind == "categorical" else np.float64
    return pd.Series(as_values(values, feature.kind, feature.name), dtype=dtype)


def _joined(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def infer_schema(
    source: Source, table: Any, *, target: str, id: str | None = None, rare: str | None = None
) -> TableSchema:
    """Infer the kinds of all columns, and which label is rare."""
    source.require([target], "which --target names")
    if id is not None:
        source.require([id], "which --id names")
    if id == target:
        raise TableError(f"--id and --target both name {target!r}. They must be different columns.")
    names = _chosen(source, target, id)
    if not names:
        raise TableError(f"{source.name} has no column besides target and id to learn from.")
    features = tuple(Feature(name, _kind(table[name], name)) for name in names)
    rare_label = _rare_label(table[target], target, rare)
    return TableSchema(features, target, rare_label, id, source.reading)


def _chosen(source: Source, target: str, id: str | None) -> list[str]:
    """Return the columns to learn from: those that were asked for, without those left out."""
    reading = source.reading
    wanted = reading.names("columns", source.columns, source.name) or source.columns
    dropped = reading.names("drop", source.columns, source.name)
    if target in dropped:
        raise TableError(f"--drop and --target both name {target!r}. The labels are needed.")
    return [name for name in wanted if name not in (target, id, *dropped)]


def _kind(column: Any, name: str) -> str:
    try:
        return kind_of(column)
    except TableError as error:
        raise TableError(f"Column {name!r}: {error}") from None


def _rare_label(column: Any, target: str, rare: str | None) -> str:
    labels, counts = np.unique(as_labels(column, target), return_counts=True)
    shown = ", ".join(repr(label) for label in labels[:8]) + (", ..." if labels.size > 8 else "")
    if labels.size < 2:
        raise TableError(
            f"The target {target!r} has only one class, {shown}. A model needs examples of rare "
            "and of other cases. Check the file, or name another column."
        )
    if labels.size > _MOST_LABELS and rare is None:
        raise TableError(
            f"The target {target!r} has {labels.size} different values ({shown}). It looks like "
            "a measurement, not a label. Name the column with the labels, or use --rare."
        )
    if rare is None:
        return str(labels[np.argmin(counts)])
    if rare not in labels:
        raise TableError(f"--rare {rare} does not occur in {target!r}; its labels are {shown}.")
    return rare


def reference_values(X: Any, schema: TableSchema) -> dict[str, Any]:
    """Return the usual value of each column: the median, or the most frequent category."""
    return {f.name: _usual(X[f.name], f.kind) for f in schema.features}


def _usual(column: Any, kind: str) -> Any:
    if kind == "categorical":
        counts = column.value_counts()
        return str(counts.index[0]) if len(counts) else MISSING_CATEGORY
    middle = column.median()
    # There is nothing half-way between false and true.
    return float(np.floor(middle)) if kind == "boolean" and middle == middle else float(middle)
