"""What a model expects of a table: its columns, their kinds, and what they are used for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import TableError
from ._columns import MISSING_CATEGORY, as_ids, as_labels, as_values, kind_of
from ._extra import pandas as pd
from ._read import Source

__all__ = ["Feature", "Rows", "TableSchema", "all_rows", "infer_schema", "reference_values"]


@dataclass(frozen=True)
class Feature:
    """A column that the model may use: its name and kind."""

    name: str
    kind: str


@dataclass(frozen=True)
class Rows:
    """Rows ready for a model: features, ids, and whether each is rare where labels were read."""

    X: Any
    ids: NDArray[Any] | None = None
    is_rare: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class TableSchema:
    """The columns that a model was fitted on.

    Attributes
    ----------
    features : tuple of Feature
        What the model uses. Neither the target nor the id is ever among them.
    target : str
        The column with the labels.
    rare_label : str
        The label that is looked for, as text.
    id : str or None
        The column that names a row, for breaking ties and for finding it again.
    """

    features: tuple[Feature, ...]
    target: str
    rare_label: str
    id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and texts."""
        return asdict(self) | {"features": [asdict(feature) for feature in self.features]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> TableSchema:
        """Read what :meth:`to_json` wrote."""
        features = tuple(Feature(**feature) for feature in content["features"])
        return cls(features, content["target"], content["rare_label"], content["id"])

    def rows(self, source: Source, *, target: str | None = None) -> Iterator[Rows]:
        """Read the rows of a source in chunks, with labels if `target` names their column.

        Columns that are not there are complained of at once, before the first chunk is read.
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

    def convert(self, table: Any, *, target: str | None = None) -> Rows:
        """Turn an Arrow table into rows for the model."""
        X = pd.DataFrame({f.name: _column(table[f.name], f) for f in self.features}, copy=False)
        ids = None if self.id is None else as_ids(table[self.id], self.id)
        if target is None:
            return Rows(X, ids)
        return Rows(X, ids, as_labels(table[target], target) == self.rare_label)


def _column(values: Any, feature: Feature) -> Any:
    """Make a column of a frame, in types that encoders know in all versions of pandas."""
    dtype = object if feature.kind == "categorical" else np.float64
    return pd.Series(as_values(values, feature.kind, feature.name), dtype=dtype)


def all_rows(schema: TableSchema, source: Source, *, target: str | None = None) -> Rows:
    """Read all rows of a source at once; there must be some."""
    chunks = list(schema.rows(source, target=target))
    if not chunks:
        raise TableError(f"{source.name} has a heading, but no rows.")
    return Rows(
        pd.concat([rows.X for rows in chunks], ignore_index=True),
        _joined([rows.ids for rows in chunks]),
        _joined([rows.is_rare for rows in chunks]),
    )


def _joined(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def infer_schema(
    source: Source, table: Any, *, target: str, id: str | None = None, rare: str | None = None
) -> TableSchema:
    """Learn the kinds of all columns, and which label is rare."""
    source.require([target], "which --target names")
    if id is not None:
        source.require([id], "which --id names")
    if id == target:
        raise TableError(f"--id and --target both name {target!r}. They must be two columns.")
    names = [name for name in source.columns if name not in (target, id)]
    if not names:
        raise TableError(f"{source.name} has no column besides target and id to learn from.")
    features = tuple(Feature(name, _kind(table[name], name)) for name in names)
    return TableSchema(features, target, _rare_label(table[target], target, rare), id)


def _kind(column: Any, name: str) -> str:
    try:
        return kind_of(column)
    except TableError as error:
        raise TableError(f"Column {name!r}: {error}") from None


_MOST_LABELS = 50


def _rare_label(column: Any, target: str, rare: str | None) -> str:
    labels, counts = np.unique(as_labels(column, target), return_counts=True)
    shown = ", ".join(repr(label) for label in labels[:8]) + (", ..." if labels.size > 8 else "")
    if labels.size < 2:
        raise TableError(
            f"The target {target!r} has only one class, {shown}. A model needs examples of the "
            "rare cases and of the others: check the file, or name another column."
        )
    if labels.size > _MOST_LABELS and rare is None:
        raise TableError(
            f"The target {target!r} has {labels.size} different values ({shown}), and looks like "
            "a measurement rather than a label. Name the column with the labels, or use --rare."
        )
    if rare is None:
        return str(labels[np.argmin(counts)])
    if rare not in labels:
        raise TableError(f"--rare {rare} does not occur in {target!r}; its labels are {shown}.")
    return rare


def reference_values(X: Any, schema: TableSchema) -> dict[str, Any]:
    """Return what is usual in each column: the median, or the most frequent category."""
    return {f.name: _usual(X[f.name], f.kind) for f in schema.features}


def _usual(column: Any, kind: str) -> Any:
    if kind == "categorical":
        counts = column.value_counts()
        return str(counts.index[0]) if len(counts) else MISSING_CATEGORY
    middle = column.median()
    # A whole number that occurs: half-way between false and true there is nothing.
    return float(np.floor(middle)) if kind == "boolean" and middle == middle else float(middle)
