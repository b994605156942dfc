"""The columns of a table: their names and kinds, and which are target and id."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask, Rows
from .._core.arrow import pa, pd
from ..exceptions import TableError
from ._labels import as_ids, is_rare_label
from ._source import INFER_ALL, OpenTable, ReadOptions
from .column_format import MISSING_CATEGORY, PLAIN
from .columns import BOUNDS, SOMEWHERE, Feature, Place, RepeatedIds, is_missing
from .read import open_table

_ERRORS = (KeyError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class WorkColumns:
    """Which columns hold values and efforts, what may be spent, and what a slot must be worth.

    A model that was fitted with such columns keeps them, without a budget: that is its capacity.

    Attributes
    ----------
    value, effort : str or None
        Columns of the table: what a case is worth if it is rare, and how much work it takes.
    budget : float or None
        How much work may be spent on the list, in the unit of `effort`.
    worth : float or None
        The least expected value per unit of effort for which a slot is used.
    unit : str
        What efforts are counted in, for messages.
    max_effort : float or None
        For a fit: the most work that a case can take. `None` takes the most in the table; later
        cases that take more are never flagged.
    """

    value: str | None = None
    effort: str | None = None
    budget: float | None = None
    worth: float | None = None
    unit: str = "units"
    max_effort: float | None = None

    def __post_init__(self) -> None:
        for option in ("budget", "worth", "max_effort"):
            number = getattr(self, option)
            if number is not None and not 0 <= number < float("inf"):
                raise TableError(f"{option} must be a number of at least 0; got {number}.")

    @property
    def is_given(self) -> bool:
        """Whether there is anything to weigh."""
        return (self.value, self.effort, self.worth) != (None, None, None)

    def after(self, kept: WorkColumns | None) -> WorkColumns:
        """Return this with everything that is not said here taken from a model."""
        every = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        said: dict[str, Any] = {n: given for n, (given, usual) in every.items() if given != usual}
        return replace(kept or self, **said)

    def for_list(self, kept: WorkColumns | None) -> WorkColumns:
        """Return this for a list: with a model's columns, and its efforts if there is a budget."""
        merged = self.after(kept)
        if self.effort is None and self.budget is None:
            merged = replace(merged, effort=None)
        if (merged.effort is None) != (merged.budget is None):
            raise TableError(
                "effort=... and budget=... belong together, as in: effort='minutes_needed', "
                "budget=480"
            )
        return merged

    @property
    def columns(self) -> dict[str, str]:
        """The columns to read, by what they hold."""
        named = {"value": self.value, "effort": self.effort}
        return {option: name for option, name in named.items() if name is not None}


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
    numbers, names, segments, chances, entities, moments, kept, scores
        Of cases that are decided about or listed: the positions of the rows in the table, ids that
        name the cases, their segments and probabilities to come, whose events they are and when
        these happened (in seconds), an Arrow table of columns to carry along, and scores.
    """

    X: Any
    ids: NDArray[Any] | None = None
    is_rare: Mask | None = None
    values: Doubles | None = None
    efforts: Doubles | None = None
    numbers: Any = None
    names: NDArray[Any] | None = None
    segments: NDArray[Any] | None = None
    chances: Doubles | None = None
    entities: NDArray[Any] | None = None
    moments: Doubles | None = None
    kept: Any = None
    scores: Any = None

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

    def carried(self) -> dict[str, list[Any]]:
        """Return the columns that are carried along."""
        return {} if self.kept is None else self.kept.to_pydict()

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
        return (rows for rows, _ in self.chunks(source, target=target))

    def chunks(
        self, source: OpenTable, *, target: str | None = None, also: Collection[str] = ()
    ) -> Iterator[tuple[TableRows, Any]]:
        """Read the rows as :meth:`rows`, each with its chunk, which has other columns as well."""
        names = [feature.name for feature in self.features]
        wanted = names if self.id is None else [*names, self.id]
        source.require(wanted, "which the model needs")
        source.check_dates()
        for option, name in self._work.columns.items():
            source.require([name], f"which {option}=... names")
            wanted = [*wanted, name]
        if target is not None:
            source.require([target], "the column with the labels (target=...)")
            wanted = [*wanted, target]
        wanted = list(dict.fromkeys([*wanted, *also]))
        return self.adapted(source.reading)._converted(source, wanted, target)

    def _converted(
        self, source: OpenTable, wanted: list[str], target: str | None
    ) -> Iterator[tuple[TableRows, Any]]:
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
            yield rows, chunk
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
            None
            if name is None
            else Feature(name, "numeric", formats[name]).bounded(table[name], option, place=place)
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


# --- single rows, from lines and requests ---


class RowParser:
    """Parses rows for a model: each value becomes what a column of a table would make of it.

    >>> kinds = {"amount": "numeric", "opened": "date", "by": "categorical"}
    >>> features = tuple(Feature(name, kind) for name, kind in kinds.items())
    >>> parser = RowParser(TableSchema(features, target="fraud", rare_label="yes"))
    >>> parser.values({"amount": "12.5", "opened": "2024-05-31", "by": " web "})
    (12.5, 19874.0, 'web')
    """

    def __init__(self, schema: TableSchema, reading: ReadOptions = INFER_ALL) -> None:
        self._features = schema.adapted(reading).features
        self._columns = [(feature.name, feature.read) for feature in self._features]
        weights = {} if schema.work is None else schema.work.columns
        self._weights = {option: Feature(name, "numeric") for option, name in weights.items()}

    def values(self, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values of the model's columns, or raise an error that names the column."""
        try:
            return tuple([read(fields[name]) for name, read in self._columns])
        except _ERRORS:  # which of them?
            for feature in self._features:
                _check(fields, feature)
            raise

    def weights(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value and the effort of a case, as far as the model weighs them."""
        return {
            option: _weight(fields.get(feature.name), option, feature)
            for option, feature in self._weights.items()
        }

    def frame(self, rows: Sequence[Sequence[Any]]) -> Any:
        """Return parsed rows as a data frame for the model."""
        return pd.DataFrame(
            {
                feature.name: pd.Series([row[place] for row in rows], dtype=feature.dtype)
                for place, feature in enumerate(self._features)
            }
        )


def _check(fields: Mapping[str, Any], feature: Feature) -> None:
    """Raise an error if this column is missing, or cannot be parsed."""
    if feature.name not in fields:
        raise ValueError(
            f"The column {feature.name!r} is missing. Write null if its value is unknown."
        )
    try:
        feature.read(fields[feature.name])
    except _ERRORS:
        raise ValueError(feature.complaint(fields[feature.name], "got")) from None


def _weight(given: Any, option: str, feature: Feature) -> float:
    least, most, bounds = BOUNDS[option]
    try:
        number: float = feature.read(given)
        if least <= number <= most:
            return number
    except _ERRORS:
        pass
    shown = "nothing" if given is None else f"{given!r:.80}"
    raise ValueError(
        f"{feature.name!r}, which {option}=... names, must be a number {bounds}; got {shown}."
    )
