"""The cases of a table that a model decides about or lists: named, carried along, or left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.extras import load_extra
from ..exceptions import TableError
from ._labels import as_ids, look_damaged
from ._source import OpenTable
from .columns import MISSING_CATEGORY
from .model import TableModel
from .options import INFER_ALL, ReadOptions
from .read import open_table
from .schema import TableRows
from .write import without_escape

pd = load_extra("pandas", needed_for="Reading tables")
pa = load_extra("pyarrow", needed_for="Reading tables")
load_extra("pyarrow.compute", needed_for="Reading tables")


@dataclass(frozen=True)
class CaseRows(TableRows):
    """Rows of a table with the names of the cases, and columns to carry along.

    `numbers` are the positions of the rows in the table. `ids` break ties, and `names` name cases.
    `kept` is an Arrow table, or None.
    """

    numbers: Any = None
    names: NDArray[Any] | None = None
    segments: NDArray[Any] | None = None
    kept: Any = None
    scores: Any = None

    def carried(self) -> dict[str, list[Any]]:
        """Return the columns that are carried along."""
        return {} if self.kept is None else self.kept.to_pydict()


class CaseReader:
    """Reads the cases of an open table in chunks, without those that are to be left out.

    `keep` names columns to carry along, and `taken` those of the output. Attributes: the name of
    the `id` column, the number of rows read so far, with how many of each segment, and what was
    `excluded`.
    """

    def __init__(
        self,
        model: TableModel,
        source: OpenTable,
        *,
        keep: Collection[str] = (),
        id: str | None = None,
        exclude: Path | None = None,
        segment: str | None = None,
        taken: Collection[str] = (),
    ) -> None:
        self.id = model.schema.id if id is None else id
        if self.id is not None:
            source.require([self.id], "which id=... names" if id else "the id of the model")
        if self.id in taken:
            raise TableError(
                f"The id column is named {self.id!r}, and so is a column of the output. Rename it "
                "in the table, or name another one with id=..."
            )
        if segment is not None:
            source.require([segment], "which segment=... names")
        self._schema, self._source, self._segment = model.schema, source, segment
        wanted = [name for name in _names(source, keep) if name != self.id]
        self._kept = {name: _free(name, (*taken, self.id)) for name in wanted}
        self.excluded = None
        if exclude is not None:
            self.excluded = read_exclusions(exclude, self.id, source.reading)
        self.types = dict.fromkeys(self._kept.values(), "string")
        self.n_read = 0
        self.segments: Counter[str] = Counter()
        self._chunk: Any = None

    def __iter__(self) -> Iterator[CaseRows]:
        for rows in self._schema.rows(replace(self._source, chunks=self._chunks)):
            if len(rows.X):
                cases = self._cases(rows)
                self.n_read += len(cases)
                if self.excluded is not None and cases.names is not None:
                    cases = cases.take(np.flatnonzero(~self.excluded.found(cases.names)))
                yield cases

    def _chunks(self, wanted: Collection[str]) -> Iterator[Any]:
        """Read what the model needs and what is carried along, and remember the latest chunk."""
        others = [*self._kept, *(name for name in (self.id, self._segment) if name is not None)]
        every = list(dict.fromkeys([*wanted, *others]))
        for chunk in self._source.chunks(every):
            self._chunk = chunk
            yield chunk

    def _cases(self, rows: TableRows) -> CaseRows:
        chunk, segments = self._chunk, None
        if self._segment is not None:
            segments = as_texts(chunk[self._segment], self._segment)
            self.segments.update(segments.tolist())
        self.types = {shown: _kind(chunk[name].type) for name, shown in self._kept.items()}
        kept = {shown: _plain(chunk[name], self.types[shown]) for name, shown in self._kept.items()}
        return CaseRows(
            **vars(rows),
            numbers=np.arange(self.n_read, self.n_read + len(rows.X)),
            names=None if self.id is None else as_ids(chunk[self.id], self.id),
            segments=segments,
            kept=pa.table(kept) if kept else None,
        )

    def notes(self, path: Path) -> list[str]:
        """Say what was left out."""
        return [] if self.excluded is None else self.excluded.in_words(path, self.id)


def _names(source: OpenTable, keep: Collection[str]) -> list[str]:
    """Return the columns that `keep` names."""
    if "all" in keep and "all" not in source.columns:
        return list(source.columns)
    return source.named("keep", keep)


def _free(name: str, taken: Collection[str | None]) -> str:
    while name in taken:
        name = f"{name}_in_table"
    return name


def _kind(type: Any) -> str:
    if pa.types.is_boolean(type):
        return "bool"
    if pa.types.is_integer(type) and type != pa.uint64():
        return "int64"
    return "double" if pa.types.is_floating(type) else "string"


def _plain(column: Any, kind: str) -> Any:
    return pa.compute.cast(column, pa.string()) if kind == "string" else column


def as_texts(column: Any, name: str) -> NDArray[Any]:
    """Return a column as texts, in the form of ids and labels; missing values get a name."""
    present = ~np.asarray(pa.compute.is_null(column, nan_is_null=True).to_numpy(), dtype=bool)
    texts = np.full(len(column), MISSING_CATEGORY, dtype=object)
    texts[present] = [text.strip() for text in as_ids(column.filter(pa.array(present)), name)]
    return texts


# --- cases to leave out ---


def read_exclusions(path: Path, id: str | None, reading: ReadOptions = INFER_ALL) -> Exclusions:
    """Return the ids in a table of cases that were reviewed before.

    The table has a column with the name of the id, or only one column. What was said about the
    table of the cases holds for this one as far as it fits.
    """
    if id is None:
        raise TableError(
            f"The cases in {path} are found by their ids, and this model has no id column. Name "
            "one with id=..."
        )
    said = INFER_ALL.after(reading)
    with open_table(path, reading=said) as source:
        name = source.columns[0] if len(source.columns) == 1 else id
        source.require([name], "which is the id of the cases to leave out")
        chunks = [chunk[name] for chunk in source.chunks([name])]
    texts = [as_texts(chunk, name) for chunk in chunks]
    every = np.unique(np.concatenate([np.zeros(0, object), *texts]).astype(object))
    # A list of ids without a heading: the first id is where the heading should be.
    heading = [] if name == id else [name]
    ids = np.array([*heading, *every[every != MISSING_CATEGORY]], dtype=object)
    return Exclusions(path, ids)


class Exclusions:
    """Finds cases that were reviewed before by their ids, and counts them.

    Attributes
    ----------
    n_found : int
        How many were found.
    n_alike : int
        How many others have an id that differs in leading zeros, case or spaces only; `alike` is
        the first of them.
    """

    def __init__(self, path: Path, ids: NDArray[Any]) -> None:
        self._path, self._ids = path, np.array([without_escape(str(id)) for id in ids], dtype=str)
        self._plain = _plain_ids(self._ids)
        self.n_found = self.n_alike = 0
        self.alike = ""

    def found(self, names: NDArray[Any]) -> Mask:
        """Return which of some ids belong to cases to leave out."""
        found: Mask = np.isin(names.astype(str), self._ids)
        others = names[~found].astype(str)
        is_alike = np.array(pa.compute.is_in(_plain_ids(others), value_set=self._plain), bool)
        self.n_found += int(found.sum())
        self.n_alike += int(is_alike.sum())
        if is_alike.any():
            self.alike = self.alike or str(others[is_alike][0])
        return found

    def in_words(self, path: Path, id: str | None) -> list[str]:
        """Say how many rows of a table were left out, and which ones perhaps should have been."""
        if not (self.n_found or self.n_alike):
            return [
                f"No id of {self._path} occurs in the column {id!r} of {path}: nothing was left "
                "out. Check that both files write ids in the same way."
            ]
        notes = []
        if look_damaged(self._ids):
            notes.append(
                f"{self._path} holds ids such as 1.23E+12. A spreadsheet has shortened them, and "
                "their cases are not left out. Export it again, with ids as text."
            )
        if self.n_found:
            notes.append(f"{_rows(self.n_found)} left out, because {self._path} has their ids.")
        if self.n_alike:
            notes.append(
                f"{_rows(self.n_alike)} not left out, whose ids in {id!r} of {path}, such as "
                f"{self.alike!r}, differ from those of {self._path} in leading zeros, case or "
                "spaces only. If they are the same cases, write the ids in the same way."
            )
        return notes


def _rows(number: int) -> str:
    return "1 row was" if number == 1 else f"{number:,} rows were"


def _plain_ids(ids: NDArray[Any]) -> Any:
    texts = pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(pa.array(ids, pa.string())))
    return pa.compute.replace_substring_regex(texts, "^0+([0-9])", r"\1")
