"""How a table of a fit is read: which columns, labels and formats; and a view of that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core.extras import load_extra
from ..exceptions import TableError
from ._column_guesses import Guess, guess_column, is_prose, settle_decimals
from ._labels import find_labels, is_empty
from ._source import ReadOptions
from .column_format import PLAIN
from .columns import Feature, Place, is_missing
from .read import OpenTable, open_table
from .schema import TableSchema, WorkColumns

pa = load_extra("pyarrow", needed_for="Reading tables")

_MOST_ROWS = 100_000
_EXAMPLES = 3


def inspect_table(path: Path, *, reading: ReadOptions | None = None) -> dict[str, Any]:
    """Read the first 100,000 rows of a table, and return how a fit would read them.

    A column has a name, a kind (None if a model would not learn from it), the format of its values,
    examples, and the number of missing values. Notes name every decision that could have been
    another.
    """
    with open_table(path, reading=reading) as source:
        read = source.read(_MOST_ROWS + 1)
        table, is_whole = read.slice(0, _MOST_ROWS), read.num_rows <= _MOST_ROWS
        features = infer_features(source, table, chosen_columns(source))
        known = {feature.name: feature for feature in features}
        columns = [_view(table[name], name, known.get(name), source) for name in source.columns]
        seen = {"table": source.name, "n_rows": table.num_rows, "is_whole": is_whole}
        return {**seen, "columns": columns, "notes": source.take_notes()}


def _view(column: Any, name: str, feature: Feature | None, source: OpenTable) -> dict[str, Any]:
    present = column.slice(0, 1_000).drop_null().to_pylist()
    examples = list(dict.fromkeys(str(value) for value in present))[:_EXAMPLES]
    view: dict[str, Any] = {"name": name, "kind": None, "format": "", "n_missing": None}
    if feature is not None:
        values = feature.values(column, place=Place(source.name))
        view |= {"kind": feature.kind, "format": feature.format.in_words}
        view["n_missing"] = int(is_missing(values, feature.kind).sum())
    return {**view, "examples": examples}


# --- the schema of a fit ---


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
    work = work if work is not None and work.is_given else None
    weighed = {} if work is None else work.columns
    source.named(target=[target], drop=source.reading.drop)
    for option, name in {"id": id, **weighed}.items():
        source.named(target=[target], **{option: [] if name is None else [name]})
    names = [name for name in chosen_columns(source) if name not in (target, id)]
    if not names:
        raise TableError(f"{source.name} has no column besides target and id to learn from.")
    features = infer_features(source, table, names)
    place = Place(source.name)
    rare_label, labels = find_labels(table[target], target, rare, notes=source.notes, place=place)
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


def chosen_columns(source: OpenTable) -> list[str]:
    """Return the columns to learn from: those that were asked for, without those left out."""
    (wanted,) = source.named(columns=source.reading.columns)
    (dropped,) = source.named(drop=source.reading.drop)
    return [name for name in wanted or source.columns if name not in dropped]


def infer_features(source: OpenTable, table: Any, names: list[str]) -> tuple[Feature, ...]:
    """Tell the kinds of columns; what was decided about them is noted."""
    guesses, reading = {}, source.reading
    source.check_dates()
    numeric, categorical = source.named(numeric=reading.numeric, categorical=reading.categorical)
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
        if guess.is_empty:
            source.notes.append(f"{name!r} is left out. The column is empty in all rows.")
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
