"""How a table of a fit is read: columns, labels and formats; and what looks odd in it."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from .._core.arrays import Mask
from .._core.arrow import pa
from .._core.ids import repeats_of
from ..exceptions import TableError
from ._column_guesses import Guess, guess_column, is_prose, settle_decimals
from ._labels import find_labels, is_empty, look_damaged
from ._source import ReadOptions
from .column_format import PLAIN
from .columns import MISSING_CATEGORY, Feature, Place, is_missing, is_of_nines, shown_value
from .read import OpenTable, open_table, read_whole
from .schema import TableRows, TableSchema, WorkColumns

_MOST_ROWS = 100_000
_EXAMPLES = 3


def inspect_table(path: Path, *, reading: ReadOptions | None = None) -> dict[str, Any]:
    """Read the first 100,000 rows of a table, and return how a fit would read them.

    A column has a name, a kind (None if a model would not learn from it), the format of its values,
    examples, and the number of missing values. Notes name every decision that could have been
    another.
    """
    with open_table(path, reading=reading) as source:
        read = read_whole(source, _MOST_ROWS + 1)
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


# --- what looks odd: leaks, ids, free text, and rows that occur twice ---

_FEWEST_ROWS = 50
_NEARLY_ALL = 0.9
_MOST_VALUES = 20
#: A single column that puts so large a share of pairs of a rare and another row in order is odd.
_TOO_GOOD = 0.99
#: Of the filled rows of a column, so large a share may not be rare by chance.
_TOO_PURE = 0.9
_FEWEST_FILLED = 5
_MOST_LEARNED = 32
_WORDS_OF_A_SENTENCE = 3
_MOST_TWINS = 3
_NEARLY_EMPTY = 0.03
_FEWEST_COPIES = 2


def notes_on(rows: TableRows, schema: TableSchema) -> list[str]:
    """Return a sentence for each thing that the model should perhaps not learn from as it is."""
    notes = _about_repeats(rows, schema)
    if len(rows.X) < _FEWEST_ROWS:
        return notes
    found = [_note(rows.X[each.name], each, rows.is_rare, schema.id) for each in schema.features]
    return notes + [note for note in found if note is not None]


def notes_on_times(column: Any, feature: Feature) -> list[str]:
    """Say that rows may count as the latest or the earliest because their time is missing."""
    value = _stand_in(column, feature.kind)
    if value is None:
        return []
    place = "latest" if value == column.max() else "earliest"
    return [
        f"{_seen_apart(column, feature.name, feature.kind, value)} With time=..., these rows are "
        f"the {place}. If that means missing, leave them out."
    ]


def _note(column: Any, feature: Feature, is_rare: Mask | None, id: str | None) -> str | None:
    name, kind = feature.name, feature.kind
    leak = None if is_rare is None else _leak(column, kind, is_rare)
    if leak is not None:
        return (
            f"LEAK? {name!r} {leak}. If it is known only afterwards, the model is useless on new "
            f"cases: leave it out with drop={name!r}"
        )
    n_filled = int(_is_filled(column, kind).sum())
    if 0 < n_filled < _NEARLY_EMPTY * len(column):
        return (
            f"{name!r} is filled in {n_filled:,} of {len(column):,} rows only. If it does not "
            f"belong to the table, leave it out: drop={name!r}"
        )
    stand_in = _stand_in(column, kind)
    if stand_in is not None:
        seen = _seen_apart(column, name, kind, stand_in)
        return f"{seen} If that means missing, use na='{shown_value(stand_in, kind)}'"
    if _identifies_rows(column, kind):
        remedy = f"If it is one, use id={name!r} to exclude it from learning; otherwise "
        return (
            f"{name!r} has a different value in nearly every row and looks like an id. "
            f"{remedy if id is None else 'To leave it out, use '}drop={name!r}"
        )
    twins = _twins(column) if kind == "categorical" else ()
    if twins:
        return (
            f"{name!r} holds {' and '.join(map(repr, twins))}, which count as different values. If "
            "they are the same, write them in the same way."
        )
    if kind == "categorical" and column.nunique() > 3 * _MOST_LEARNED:
        what = "free text" if _is_prose(column) else f"{column.nunique():,} different texts"
        return (
            f"{name!r} holds {what}. At most the {_MOST_LEARNED} most frequent values are learned "
            f"from. If it holds numbers, use numeric={name!r}; to leave it out, drop={name!r}"
        )
    return None


# --- leaks ---


def _leak(column: Any, kind: str, is_rare: Mask) -> str | None:
    """Return what gives the rare rows away, in words; None if nothing does."""
    is_filled = _is_filled(column, kind)
    for mask, word in ((is_filled, "filled"), (~is_filled, "empty")):
        if _is_pure(mask, is_rare):
            n_rare, n = int((mask & is_rare).sum()), int(mask.sum())
            only = "only" if n_rare == n else "nearly only"
            return f"is {word} {only} for rare rows ({n_rare:,} of {n:,})"
    order = _order(column, kind, is_rare)
    if order > _TOO_GOOD:
        nearly = "" if order == 1 else "nearly "
        return f"alone separates {nearly}all rare rows from the others"
    return None


def _is_filled(column: Any, kind: str) -> Mask:
    if kind == "categorical":
        return np.asarray(column != MISSING_CATEGORY)
    return ~np.isnan(column.to_numpy())


def _is_pure(mask: Mask, is_rare: Mask) -> bool:
    """Return whether rows of a kind are nearly all rare, and the others are not."""
    n, n_rare = int(mask.sum()), int((mask & is_rare).sum())
    share = float(is_rare.mean())
    if n_rare < _FEWEST_FILLED or n == mask.size or share > 0.5:
        return False
    return n_rare >= _TOO_PURE * n and n_rare / n > 2 * share


def _order(column: Any, kind: str, is_rare: Mask) -> float:
    """Return the share of pairs of a rare and another row that the column puts in order."""
    values = column.to_numpy()
    if kind == "categorical":
        if column.nunique() > _MOST_VALUES:
            return 0.5
        codes = column.groupby(column).ngroup().to_numpy()
        values = (np.bincount(codes, is_rare) / np.bincount(codes))[codes]
    known = ~np.isnan(values)
    is_rare = is_rare[known]
    if min(is_rare.sum(), (~is_rare).sum()) < _FEWEST_FILLED:
        return 0.5
    sides = values[known][is_rare], values[known][~is_rare]
    n_above = mannwhitneyu(*sides, method="asymptotic").statistic
    share = float(n_above / (sides[0].size * sides[1].size))
    return max(share, 1 - share)


# --- values that stand for a missing one ---


def _stand_in(column: Any, kind: str) -> float | None:
    """Return a repeated value that lies apart from all others, such as -999 or the year 9999."""
    if kind not in ("numeric", "date"):
        return None
    values, counts = np.unique(column.dropna().to_numpy(), return_counts=True)
    if values.size < _FEWEST_FILLED + 1:
        return None
    fewest = max(_FEWEST_FILLED, 0.01 * len(column))
    for place, others in ((0, values[1:]), (-1, values[:-1])):
        value = float(values[place])
        apart = float(np.abs(others - value).min()) > others[-1] - others[0]
        nines = kind == "numeric" and is_of_nines(value) and (value > 0 or others[0] >= 0)
        if counts[place] >= fewest and value != 0 and (apart or nines):
            return value
    return None


def _seen_apart(column: Any, name: str, kind: str, value: float) -> str:
    return (
        f"{name!r} is {shown_value(value, kind)} in {int((column == value).sum()):,} of "
        f"{len(column):,} rows, apart from all other values."
    )


# --- ids and texts ---


def _identifies_rows(column: Any, kind: str) -> bool:
    """Return whether a column holds names or running numbers."""
    if kind == "categorical":
        return bool(column.nunique() > _NEARLY_ALL * len(column)) and not _is_prose(column)
    values = column.to_numpy()
    is_whole = bool(np.all(values == np.floor(values)))  # False if a value is missing
    return kind == "numeric" and is_whole and bool((np.diff(values) > 0).all())


def _twins(column: Any) -> list[str]:
    """Return values that differ only in case, spaces, or how their letters are encoded."""
    by_key: dict[str, list[str]] = {}
    for value in column.unique().tolist():
        plain = unicodedata.normalize("NFKC", " ".join(value.split())).casefold()
        by_key.setdefault(plain, []).append(value)
    return next((values[:_MOST_TWINS] for values in by_key.values() if len(values) > 1), [])


def _is_prose(column: Any) -> bool:
    return bool(column.str.count(" ").median() >= _WORDS_OF_A_SENTENCE)


# --- rows that occur twice ---


def _about_repeats(rows: TableRows, schema: TableSchema) -> list[str]:
    notes = [] if rows.is_rare is None else _about_copies(rows.X, rows.is_rare)
    if rows.ids is None:
        return notes
    n_repeated = len(rows.ids) - len(set(rows.ids.tolist()))
    if n_repeated:
        notes.append(
            f"The id {schema.id!r} is not unique: {n_repeated:,} of {len(rows.ids):,} rows repeat "
            "one. If they are the same case, keep one row of each: a case that trains and tests "
            "the model makes it look too good. If they are different cases of one customer, say, "
            f"use group={schema.id!r} instead of id=... In a list, an id takes one place."
        )
    if look_damaged(rows.ids):
        notes.append(
            f"The id {schema.id!r} holds numbers such as 1.23E+12. A spreadsheet has shortened "
            "them, and different cases may share one. Export the table again, with ids as text."
        )
    return notes


def _about_copies(X: Any, is_rare: Mask) -> list[str]:
    """Say how many rows repeat others as one case, and how to say what belongs together."""
    repeats = repeats_of(X, is_rare)
    if not repeats.matter or repeats.n_repeated < _FEWEST_COPIES:
        return []
    return [
        f"{repeats.n_repeated:,} of {len(X):,} rows are copies of others, in all columns and in "
        "their label. Equal rows count as one case: they are in the same fold, so that no model is "
        "measured on a copy of what it has learned from. If a column tells which rows belong "
        "together, name it: group=..."
    ]
