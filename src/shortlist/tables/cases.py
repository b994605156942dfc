"""The cases of a table that a model decides about or lists: named, carried along, or left out."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask
from .._core.arrow import pa
from .._core.ids import is_drawn
from ..exceptions import TableError
from ._labels import as_ids, look_damaged
from ._labels import as_texts as as_texts
from ._source import INFER_ALL, OpenTable, ReadOptions
from .column_format import PLAIN
from .columns import MISSING_CATEGORY, SOMEWHERE, Feature, Place
from .model import TableModel
from .monitor import DriftMonitor
from .read import open_table, table_at
from .schema import TableRows
from .write import without_escape

if TYPE_CHECKING:
    from ..online import EntityCases

#: The seconds of a day.
DAY = 86_400.0
#: Rows of a block, of the numbers that are gathered.
_BLOCK_ROWS = 1 << 20
#: Ids whose looks are compared with those of a list of exclusions.
_MOST_COMPARED = 10_000
_NUMBERS = {"int64", "double"}
#: Called with the number of rows that were read so far.
RowsRead = Callable[[int], None]


@dataclass
class CaseReader:
    """Reads the cases of a table in chunks, and compares them with the model card on the way.

    `keep` names columns to carry along, and `taken` those of the output. With `widens`, nothing is
    written before the end, and whole numbers may be followed by others. `entity` and `time` name
    columns, and `given_rule` makes events of an entity one case. Attributes: the `id`
    column, the number of rows read so far, with how many of each segment, `types` of the columns
    carried along, the `monitor` and, at the end, `notes`.
    """

    model: TableModel
    path: Path
    _: KW_ONLY
    target: str | None = None
    keep: Collection[str] = ()
    id: str | None = None
    exclude: Path | None = None
    segment: str | None = None
    turnout: str | None = None
    entity: str | None = None
    time: str | None = None
    given_rule: EntityCases | None = None
    taken: Collection[str] = ()
    widens: bool = False
    reading: ReadOptions | None = None
    on_progress: RowsRead | None = None
    n_read: int = field(default=0, init=False)
    segments: Counter[str] = field(default_factory=Counter, init=False)
    types: dict[str, str] = field(default_factory=dict, init=False)
    notes: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.id = self.model.schema.id if self.id is None else self.id
        self.path = table_at(self.path)
        self.exclude = None if self.exclude is None else table_at(self.exclude)
        self.monitor = DriftMonitor(self.model)

    @cached_property
    def rule(self) -> EntityCases:
        """What makes events one case; by default a day."""
        from ..online import EntityCases

        return self.given_rule or EntityCases(window=DAY)

    def __iter__(self) -> Iterator[TableRows]:
        schema = self.model.schema
        with schema.open(self.path, reading=self.reading) as source:
            kept, excluded = self._columns(source)
            named = (self.id, self.segment, self.turnout, self.entity, self.time)
            others = [*kept, *(name for name in named if name is not None)]
            for rows, chunk in schema.chunks(source, target=self.target, also=others):
                if not len(rows.X):
                    continue
                cases = self._cases(rows, chunk, kept)
                self.n_read += len(cases)
                self.segments.update(() if cases.segments is None else cases.segments.tolist())
                if excluded is not None:
                    cases = cases.take(np.flatnonzero(~excluded.found(cases, self.entity)))
                self.monitor.add(cases)
                yield cases
                if self.on_progress is not None:
                    self.on_progress(self.n_read)
            if not self.n_read:
                raise source.without_rows()
        if excluded is not None:
            self.notes = excluded.in_words(self.path, self.entity or self.id)

    def _columns(self, source: OpenTable) -> tuple[dict[str, str], Exclusions | None]:
        """Check the columns, and return those to carry along by name, and what to leave out."""
        if self.id is not None:
            source.require([self.id], "which id=... or the model names")
        if self.id in self.taken:
            raise TableError(
                f"The id column is named {self.id!r}, and so is a column of the output. Rename it "
                "in the table, or name another one with id=..."
            )
        for option in ("segment", "turnout", "entity", "time"):
            if (name := getattr(self, option)) is not None:
                source.require([name], f"which {option}=... names")
        wanted = [name for name in _names(source, self.keep) if name != self.id]
        kept = {name: free_name(name, (*self.taken, self.id)) for name in wanted}
        return kept, None if self.exclude is None else self._excluded(self.exclude, source.reading)

    def _excluded(self, path: Path, reading: ReadOptions) -> Exclusions | None:
        """Read what to leave out; earlier cases of entities, with scores, are left to the rule."""
        with open_table(path, reading=ReadOptions().after(reading)) as source:
            key = self.entity or self.id
            if key is None:
                raise TableError(
                    f"The cases in {path} are found by their ids, and this model has no id column. "
                    "Name one with id=..."
                )
            if self.entity and {key, "score", self.time} <= {*source.columns}:
                self._begin_earlier(source, key, str(self.time))
                return None
            name = source.columns[0] if len(source.columns) == 1 else key
            source.require([name], "which is the id of the cases to leave out")
            until = ["until"] if "until" in source.columns else []
            if until and self.time is None:
                raise TableError(
                    f"{path} has a column 'until', and the moments of the cases are not known. "
                    "Name their column with time=..."
                )
            # A list of ids without a heading: the first id is where the heading should be.
            ends = {} if name == key else {name: math.inf}
            for chunk in source.chunks([name, *until]):
                texts = as_texts(chunk[name], name).tolist()
                last = self.moments(chunk, "until").tolist() if until else [math.inf] * len(texts)
                for id, end in zip(texts, last, strict=True):
                    ends[id] = max(end, ends.get(id, -math.inf))
        return Exclusions(path, {id: end for id, end in ends.items() if id != MISSING_CATEGORY})

    def _begin_earlier(self, source: OpenTable, entity: str, time: str) -> None:
        """Let the cases of an earlier list begin, in the order of their moments."""
        for chunk in source.chunks([entity, "score", time]):
            names, moments = as_ids(chunk[entity], entity).tolist(), self.moments(chunk, time)
            scores = Feature("score", "numeric").values(chunk["score"])
            for row in np.argsort(moments, kind="stable").tolist():
                self.rule.begin(names[row], names[row], float(scores[row]), float(moments[row]))

    def moments(self, chunk: Any, name: str, place: Place = SOMEWHERE) -> Doubles:
        """Return a column of dates, or of seconds, in seconds."""
        features = {f.name: f for f in self.model.schema.features if f.kind in ("date", "numeric")}
        usual = Feature(name, "date", PLAIN.adapted(name, self.reading or INFER_ALL))
        feature = features.get(name, usual)
        values = feature.bounded(chunk[name], "time", place=place)
        return values * DAY if feature.kind == "date" else values

    def _cases(self, rows: TableRows, chunk: Any, kept: dict[str, str]) -> TableRows:
        def column(name: str | None, read: Callable[[Any, str], Any]) -> Any:
            return None if name is None else read(chunk[name], name)

        place = Place(str(self.path), self.n_read)
        carried = {
            shown: self._carried(chunk[name], name, shown, place) for name, shown in kept.items()
        }
        return replace(
            rows,
            numbers=np.arange(self.n_read, self.n_read + len(rows.X)),
            names=column(self.id, as_ids),
            segments=column(self.segment, as_texts),
            chances=column(self.turnout, partial(self._chances, place=place)),
            entities=column(self.entity, as_ids),
            moments=None if self.time is None else self.moments(chunk, self.time, place),
            kept=pa.table(carried) if carried else None,
        )

    def _chances(self, column: Any, name: str, *, place: Place) -> Doubles:
        format = PLAIN.adapted(name, self.reading or INFER_ALL)
        return Feature(name, "numeric", format).bounded(column, "turnout", place=place)

    def _carried(self, column: Any, name: str, shown: str, place: Place) -> Any:
        """Return a column to carry along with the type that its first rows have; none is rounded.

        With `widens`, whole numbers may be followed by others, and all of them are then numbers.
        """
        kind = _kind(column.type)
        first = self.types.setdefault(shown, kind)
        if self.widens and {first, kind} == _NUMBERS:
            first = self.types[shown] = "double"
        is_castable = first in ("string", kind) or {first, kind} == _NUMBERS
        with contextlib.suppress(pa.ArrowInvalid):
            if is_castable or column.null_count == len(column):
                return pa.compute.cast(column, pa.type_for_alias(first))
        raise TableError(
            f"The column {name!r}, which keep=... names, holds values of another kind from "
            f"{place.row(0)} on than before. Write all of them in one way, or leave it out."
        )


def _names(source: OpenTable, keep: Collection[str]) -> list[str]:
    """Return the columns that `keep` names."""
    if "all" in keep and "all" not in source.columns:
        return list(source.columns)
    return source.named(keep=keep)[0]


IN_TABLE = "_in_table"


def free_name(name: str, taken: Collection[str | None]) -> str:
    """Return the name of a column that is carried along, beside those of the output."""
    while name in taken:
        name += IN_TABLE
    return name


def _kind(type: Any) -> str:
    if pa.types.is_boolean(type):
        return "bool"
    if pa.types.is_integer(type) and type != pa.uint64():
        return "int64"
    return "double" if pa.types.is_floating(type) else "string"


# --- cases to leave out ---


class Exclusions:
    """Finds cases that were reviewed before by their ids, and counts them.

    Each id has an end, after which its cases are no longer left out. Other ids that differ in
    leading zeros, case or spaces only are counted as well.
    """

    def __init__(self, path: Path, ends: dict[str, float]) -> None:
        self._ends = {without_escape(id): end for id, end in ends.items()}
        self._path, self._ids = path, np.array([*self._ends], dtype=str)
        self._plain = _plain_ids(self._ids)
        self._n_found, self._alike = 0, (0, "")
        self._looks, self._is_like = _looks_of(self._ids), False

    def found(self, cases: TableRows, entity: str | None) -> Mask:
        """Return which of some cases are to be left out."""
        names: Any = cases.names if entity is None else cases.entities
        found: Mask = np.isin(names.astype(str), self._ids)
        others = names[~found].astype(str)
        if cases.moments is not None:
            ends = [self._ends.get(str(name), math.inf) for name in names.tolist()]
            found &= cases.moments < np.array(ends)
        alike = others[np.array(pa.compute.is_in(_plain_ids(others), value_set=self._plain), bool)]
        self._n_found += int(found.sum())
        self._is_like = self._is_like or bool(self._looks & _looks_of(others))
        if alike.size:
            self._alike = (self._alike[0] + alike.size, self._alike[1] or str(alike[0]))
        return found

    def in_words(self, path: Path, id: str | None) -> list[str]:
        """Say how many rows of a table were left out, and which ones perhaps should have been."""
        n_alike, alike = self._alike
        if not (self._n_found or n_alike or self._is_like):
            return [
                f"No id of {self._path} occurs in the column {id!r} of {path}, and none looks like "
                "one: nothing was left out. Check that both files write ids in the same way."
            ]
        notes = []
        if look_damaged(self._ids):
            notes.append(
                f"{self._path} holds ids such as 1.23E+12. A spreadsheet has shortened them, and "
                "their cases are not left out. Export it again, with ids as text."
            )
        if self._n_found:
            notes.append(f"{_rows(self._n_found)} left out, because {self._path} has their ids.")
        if n_alike:
            notes.append(
                f"{_rows(n_alike)} not left out, whose ids in {id!r} of {path}, such as {alike!r}, "
                f"differ from those of {self._path} in leading zeros, case or spaces only. If they "
                "are the same cases, write the ids in the same way."
            )
        return notes


def _rows(number: int) -> str:
    return "1 row was" if number == 1 else f"{number:,} rows were"


def _looks_of(ids: NDArray[Any]) -> set[str]:
    """Return how ids are written, with 0 for digits: c0000 of c1234."""
    texts = pa.array(ids[:_MOST_COMPARED], pa.string())
    return set(pa.compute.replace_substring_regex(texts, "[0-9]", "0").to_pylist())


def _plain_ids(ids: NDArray[Any]) -> Any:
    texts = pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(pa.array(ids, pa.string())))
    return pa.compute.replace_substring_regex(texts, "^0+([0-9])", r"\1")


# --- numbers of many cases ---


class Columns(contextlib.AbstractContextManager["Columns"]):
    """Gathers a few numbers of each row in a temporary file, so that memory is bounded.

    Close it after use, or open it in a `with` statement.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="shortlist-")  # noqa: SIM115
        self._dtype = np.dtype([])

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, **columns: Any) -> None:
        """Add the numbers of some rows; None stands for a column that there is not."""
        given = {name: np.asarray(each) for name, each in columns.items() if each is not None}
        if not self._dtype.names:
            self._dtype = np.dtype([(name, each.dtype) for name, each in given.items()])
        rows = np.empty(len(next(iter(given.values()))), dtype=self._dtype)
        for name, each in given.items():
            rows[name] = each
        self._file.write(rows.tobytes())

    def __contains__(self, name: str) -> bool:
        return name in (self._dtype.names or ())

    def get(self, name: str) -> NDArray[Any] | None:
        """Return the numbers of that name; None if there are none."""
        return None if name not in (self._dtype.names or ()) else self[name]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.concatenate([block[name] for block in self.blocks()])

    def blocks(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Return all columns, block by block in the order of the rows."""
        self._file.seek(0)
        while content := self._file.read(_BLOCK_ROWS * self._dtype.itemsize):
            rows = np.frombuffer(content, dtype=self._dtype)
            yield {name: np.ascontiguousarray(rows[name]) for name in self._dtype.names or ()}

    def summaries(self, kernel: Callable[[dict[str, NDArray[Any]]], Any]) -> Iterator[Any]:
        """Call a function on every block."""
        return map(kernel, self.blocks())

    def drawn(self, n_rows: int) -> dict[str, NDArray[Any]]:
        """Return the columns of about a million of these rows, drawn at random; of all if fewer."""
        parts, start = [], 0
        for block in self.blocks():
            size = next(iter(block.values())).size
            own = is_drawn(np.arange(start, start + size), n_rows)
            parts.append({name: column[own] for name, column in block.items()})
            start += size
        names = self._dtype.names or ()
        return {name: np.concatenate([part[name] for part in parts]) for name in names}
