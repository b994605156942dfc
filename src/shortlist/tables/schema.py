"""The columns of a table: their names and kinds, and which are target and id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask, Rows
from .._core.extras import load_extra
from ..exceptions import TableError
from ._inference import Guess, guess_column, is_prose, settle_decimals
from ._labels import RepeatedIds, as_ids, find_labels, is_empty, is_rare_label
from ._source import OpenTable
from .column_format import MISSING_CATEGORY, PLAIN
from .columns import SOMEWHERE, Feature, Place, is_missing
from .options import INFER_ALL, ReadOptions
from .read import open_table
from .work import WorkColumns

pa = load_extra("pyarrow", needed_for="Reading tables")
pd = load_extra("pandas", needed_for="Reading tables")


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
    values, efforts : ndarray or None
        What each row is worth if it is rare, and how much work it takes, if the schema says so.
    """

    X: Any
    ids: NDArray[Any] | None = None
    is_rare: Mask | None = None
    values: Doubles | None = None
    efforts: Doubles | None = None

    def __len__(self) -> int:
        return len(self.X)

    def take(self, places: Rows) -> Self:
        """Return the rows at some positions."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        taken = {name: v if v is None else v.take(places) for name, v in every.items()}
        return type(self)(**taken)

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Put rows together."""
        columns = {name.name: [getattr(part, name.name) for part in parts] for name in fields(cls)}
        return cls(**{name: _joined(values) for name, values in columns.items()})

    def of_columns(self, features: tuple[Feature, ...]) -> TableRows:
        """Return the rows with some of their columns."""
        return replace(self, X=self.X[[feature.name for feature in features]])


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
    reading : ReadOptions
        What the user said about the file when the model was fitted.
    labels : tuple of str
        The labels that the target had then.
    work : WorkColumns or None
        The columns with values and efforts, if the model was fitted with them.
    """

    features: tuple[Feature, ...]
    target: str
    rare_label: str
    id: str | None = None
    reading: ReadOptions = INFER_ALL
    labels: tuple[str, ...] = ()
    work: WorkColumns | None = None

    def open(
        self, path: Path, *, reading: ReadOptions | None = None
    ) -> AbstractContextManager[OpenTable]:
        """Open a later file, which is read as the table of the fit was."""
        return open_table(path, reading=(reading or INFER_ALL).after(self.reading))

    def adapted(self, reading: ReadOptions) -> TableSchema:
        """Return this schema for values about which the user says more than at the fit."""
        features = [replace(f, format=f.format.adapted(f.name, reading)) for f in self.features]
        return replace(self, features=tuple(features))

    def rows(self, source: OpenTable, *, target: str | None = None) -> Iterator[TableRows]:
        """Read the rows of an open table in chunks, with labels if `target` names their column.

        Missing columns raise an error immediately, before the first chunk is read.
        """
        wanted = [feature.name for feature in self.features]
        source.require(wanted, "which the model needs")
        source.check_dates()
        if self.id is not None:
            source.require([self.id], "which is the id that the model was fitted with")
            wanted.append(self.id)
        if target is not None:
            source.require([target], "the column with the labels (target=...)")
            wanted.append(target)
        for option, name in self._work.columns.items():
            source.require([name], f"which {option}=... names")
            wanted.append(name)
        wanted = list(dict.fromkeys(wanted))
        return self.adapted(source.reading)._converted(source, wanted, target)

    def _converted(
        self, source: OpenTable, wanted: list[str], target: str | None
    ) -> Iterator[TableRows]:
        n_before, n_empty, first_empty, ids = 0, 0, "", RepeatedIds()
        for chunk in source.chunks(wanted):
            place = Place(source.name, n_before)
            rows = self.convert(chunk, target=target, place=place)
            empty = _empty_rows(rows.X, self.features)
            if len(empty):
                first_empty = first_empty or place.row(int(empty[0]))
                n_empty += len(empty)
            if target is not None and rows.ids is not None:
                ids.add(rows.ids)
            yield rows
            n_before += chunk.num_rows
        if n_empty:
            source.notes.append(
                f"{'1 row holds' if n_empty == 1 else f'{n_empty:,} rows hold'} no value of any "
                f"column that the model learned from, first {first_empty}. Such rows count as "
                "cases. If they are not, remove them."
            )
        consequence = (
            "and count as cases of their own. If they are the same cases, keep one row of each: "
            "results look surer than they are."
        )
        source.notes.extend(ids.notes(self.id, consequence))

    def read(self, source: OpenTable, *, target: str | None = None) -> TableRows:
        """Read all rows of an open table at once; a table without rows raises an error."""
        chunks = list(self.rows(source, target=target))
        if not chunks:
            raise source.without_rows()
        return TableRows.joined(chunks)

    @property
    def _work(self) -> WorkColumns:
        return self.work or WorkColumns()

    def convert(
        self, table: Any, *, target: str | None = None, place: Place = SOMEWHERE
    ) -> TableRows:
        """Convert an Arrow table to rows for the model; `place` says where it comes from."""
        # Encoders know these types in all versions of pandas.
        columns = {
            f.name: pd.Series(f.values(table[f.name], place=place), dtype=f.dtype)
            for f in self.features
        }
        X = pd.DataFrame(columns, copy=False)
        ids = None if self.id is None else as_ids(table[self.id], self.id, place=place)
        values, efforts = self._values_and_efforts(table, place)
        if target is None:
            return TableRows(X, ids, None, values, efforts)
        labels = (target, self.rare_label, self.labels)
        is_rare = is_rare_label(table[target], *labels, place=place)
        return TableRows(X, ids, is_rare, values, efforts)

    def _values_and_efforts(self, table: Any, place: Place) -> list[Doubles | None]:
        work = self._work
        formats = {name: PLAIN.adapted(name, self.reading) for name in work.columns.values()}
        formats |= {f.name: f.format for f in self.features if f.kind == "numeric"}
        return [
            None if name is None else work.numbers(option, table[name], formats[name], place)
            for option, name in (("value", work.value), ("effort", work.effort))
        ]


def _empty_rows(X: Any, features: tuple[Feature, ...]) -> Rows:
    """Return the places of rows without any value to learn from; they are seldom cases."""
    is_empty = np.full(len(X), len(features) > 1)
    for feature in features:
        if is_empty.any():
            is_empty &= is_missing(X[feature.name].to_numpy(), feature.kind)
    return np.flatnonzero(is_empty)


def _joined(parts: list[Any]) -> Any:
    if parts[0] is None:
        return None
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if isinstance(parts[0], pa.Table):
        return pa.concat_tables(parts, promote_options="permissive")
    return pd.concat(parts, ignore_index=True)


def infer_schema(
    source: OpenTable,
    table: Any,
    *,
    target: str,
    id: str | None = None,
    rare: str | None = None,
    work: WorkColumns | None = None,
) -> TableSchema:
    """Infer the kinds of all columns, and which label is rare."""
    source.require([target], "which target=... names")
    if id is not None:
        source.require([id], "which id=... names")
    if id == target:
        raise TableError(f"id=... and target=... both name {target!r}. Name different columns.")
    names = [name for name in chosen_columns(source, target) if name not in (target, id)]
    if not names:
        raise TableError(f"{source.name} has no column besides target and id to learn from.")
    features = infer_features(source, table, names)
    place = Place(source.name)
    rare_label, labels = find_labels(table[target], target, rare, notes=source.notes, place=place)
    if work is not None and not work.is_given:
        work = None
    for option, name in () if work is None else work.columns.items():
        source.require([name], f"which {option}=... names")
        if name in (target, id):
            raise TableError(
                f"{option}=... names {name!r}, the {'target' if name == target else 'id'}. It must "
                "be a column of its own."
            )
    return TableSchema(features, target, rare_label, id, source.reading, labels, work)


def only_labelled(table: Any, target: str, source: OpenTable) -> Any:
    """Return the rows of a table that have a label; how many are left out is noted."""
    source.require([target], "which target=... names")
    is_known = ~is_empty(table[target])
    n_known, n_rows = int(is_known.sum()), len(is_known)
    if not n_known:
        raise TableError(
            f"The column {target!r} is empty in all {n_rows:,} rows. Name another one."
        )
    if n_known < n_rows:
        source.notes.append(
            f"{n_rows - n_known:,} of {n_rows:,} rows have no label in {target!r} and are left out."
        )
    return table.filter(pa.array(is_known))


def chosen_columns(source: OpenTable, target: str | None = None) -> list[str]:
    """Return the columns to learn from: those that were asked for, without those left out."""
    reading = source.reading
    wanted = source.named("columns", reading.columns) or source.columns
    dropped = source.named("drop", reading.drop)
    if target in dropped:
        raise TableError(f"drop=... and target=... both name {target!r}. The labels are needed.")
    return [name for name in wanted if name not in dropped]


def infer_features(source: OpenTable, table: Any, names: list[str]) -> tuple[Feature, ...]:
    """Tell the kinds of columns; what was decided about them is noted."""
    guesses, reading = {}, source.reading
    source.check_dates()
    categorical = source.named("categorical", reading.categorical)
    numeric = source.named("numeric", reading.numeric)
    both = [name for name in categorical if name in numeric]
    if both:
        raise TableError(f"categorical=... and numeric=... both name {both[0]!r}. Use one of them.")
    for name in names:
        format = PLAIN.adapted(name, reading)
        if name in categorical:
            guesses[name] = Guess("categorical", replace(format, codes=True, date_format=None))
            continue
        try:
            guess = guess_column(table[name], name, format=format, numeric=name in numeric)
        except TableError as error:
            source.notes.append(f"{name!r} is left out. {error}")
            continue
        if dict(reading.date_formats()).get(name) not in (None, guess.format.date_format):
            raise TableError(
                f"date_format='{name}=...' does not fit the column {name!r}, which holds "
                f"{table[name].drop_null()[0].as_py()!r}, for example. Use the format of its "
                "values."
            )
        if guess.kind == "categorical" and is_prose(table[name]):
            source.notes.append(
                f"{name!r} holds free text and is left out. To learn from it as categories, use "
                f"categorical={name!r}"
            )
            continue
        guesses[name] = guess
    if not guesses:
        raise TableError(f"{source.name} has no column that a model can learn from.")
    settled = settle_decimals(guesses, decimal=reading.decimal, sep=source.sep)
    for guess in settled.values():
        source.notes.extend(guess.notes)
    return tuple(Feature(name, guess.kind, guess.format) for name, guess in settled.items())


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
