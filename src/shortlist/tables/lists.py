"""What lists and decisions have in common: ids, columns carried along, exclusions, spreadsheets."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, overload

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.extras import load_extra
from .._core.probing import BY_SCORE
from ..exceptions import TableError
from ._source import OpenTable
from ._text_files import is_utf8
from .columns import MISSING_CATEGORY, as_ids, look_damaged
from .monitor import Finding
from .options import INFER_ALL, ReadOptions
from .read import open_table
from .reasons import Reason
from .schema import TableSchema
from .write import open_writer

pa = load_extra("pyarrow", needed_for="Reading tables")
load_extra("pyarrow.compute", needed_for="Reading tables")


#: Formats that spreadsheets open, and would take texts for formulas in.
_FOR_SPREADSHEETS = ("csv", "xlsx")
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?")


class CarriedColumns:
    """Columns of a table that go into the output as they are, while a model reads its own."""

    def __init__(
        self,
        source: OpenTable,
        schema: TableSchema,
        *,
        keep: Collection[str] = (),
        id: str | None = None,
        others: Collection[str] = (),
        taken: Collection[str] = (),
    ) -> None:
        self.id = schema.id if id is None else id
        if self.id is not None:
            source.require([self.id], "which id=... names" if id else "the id of the model")
        if self.id in taken:
            raise TableError(
                f"The id column is named {self.id!r}, and so is a column of the output. Rename it "
                "in the table, or name another one with id=..."
            )
        wanted = [name for name in _names(source, keep) if name != self.id]
        self.names = {name: _free(name, (*taken, self.id)) for name in wanted}
        self._read = list(dict.fromkeys([*wanted, *others, *([self.id] if self.id else [])]))
        self._inner = source
        self._latest: Any = None

    @property
    def source(self) -> OpenTable:
        """The table, for the model to read; each chunk is remembered until the next one."""
        return replace(self._inner, chunks=self._chunks)

    def _chunks(self, wanted: Collection[str], numeric: Collection[str]) -> Iterator[Any]:
        every = [*wanted, *(name for name in self._read if name not in wanted)]
        for chunk in self._inner.chunks(every, numeric):
            self._latest = chunk.select(self._read)
            yield chunk

    def column(self, name: str) -> Any:
        """Return a column of the latest chunk."""
        return self._latest[name]

    def ids(self) -> NDArray[Any] | None:
        """Return the ids of the latest chunk; None if nothing names a case."""
        return None if self.id is None else as_ids(self._latest[self.id], self.id)

    def columns(self) -> dict[str, Any]:
        """Return the columns to write of the latest chunk, by the names they get."""
        return {
            shown: _plain(self._latest[name], self.types()[shown])
            for name, shown in self.names.items()
        }

    def types(self) -> dict[str, str]:
        """Return the types of the columns to write; texts before the first chunk is read."""
        if self._latest is None:
            return dict.fromkeys(self.names.values(), "string")
        return {shown: _kind(self._latest[name].type) for name, shown in self.names.items()}


def _names(source: OpenTable, keep: Collection[str]) -> list[str]:
    """Return the columns that `keep` names; a name with a comma counts as one column first."""
    names: list[str] = []
    for given in keep:
        known = given in source.columns
        names += [given] if known else [name.strip() for name in given.split(",") if name.strip()]
    if "all" in names and "all" not in source.columns:
        return list(source.columns)
    source.require(names, "which keep=... names")
    return list(dict.fromkeys(names))


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


def _plain(column: Any, kind: str) -> list[Any]:
    if kind != "string":
        return column.to_pylist()
    return pa.compute.cast(column, pa.string()).to_pylist()


def as_texts(column: Any, name: str) -> NDArray[Any]:
    """Return a column as texts, in the form of ids and labels; missing values get a name."""
    present = ~np.asarray(pa.compute.is_null(column, nan_is_null=True).to_numpy(), dtype=bool)
    texts = np.full(len(column), MISSING_CATEGORY, dtype=object)
    texts[present] = [text.strip() for text in as_ids(column.filter(pa.array(present)), name)]
    return texts


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
    encoding = None if is_utf8(path) else reading.encoding
    said = ReadOptions(sep=reading.sep, encoding=encoding, sheet=reading.sheet, na=reading.na)
    with open_table(path, reading=said) as source:
        name = source.columns[0] if len(source.columns) == 1 else id
        source.require([name], "which is the id of the cases to leave out")
        chunks = [chunk[name] for chunk in source.chunks([name], ())]
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
        self._path, self._ids = path, np.array([_unescaped(str(id)) for id in ids], dtype=str)
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
            rows = "1 row was" if self.n_found == 1 else f"{self.n_found:,} rows were"
            notes.append(f"{rows} left out, because {self._path} has their ids.")
        if self.n_alike:
            rows = "1 row was" if self.n_alike == 1 else f"{self.n_alike:,} rows were"
            notes.append(
                f"{rows} not left out, whose ids in {id!r} of {path}, such as {self.alike!r}, "
                f"differ from those of {self._path} in leading zeros, case or spaces only. If they "
                "are the same cases, write the ids in the same way."
            )
        return notes


def _plain_ids(ids: NDArray[Any]) -> Any:
    texts = pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(pa.array(ids, pa.string())))
    return pa.compute.replace_substring_regex(texts, "^0+([0-9])", r"\1")


# --- spreadsheets ---


def spreadsheet_safe(text: str | None) -> str | None:
    """Return a text that a spreadsheet does not take for a formula: with a ' before it.

    Examples
    --------
    >>> spreadsheet_safe("=HYPERLINK(1)"), spreadsheet_safe("-12.5"), spreadsheet_safe("Ann")
    ("'=HYPERLINK(1)", '-12.5', 'Ann')
    """
    if text is None or not _FORMULA.match(text) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def _unescaped(text: str) -> str:
    """Return a text as it was before :func:`spreadsheet_safe`.

    >>> _unescaped("'=HYPERLINK(1)"), _unescaped("'quoted'")
    ('=HYPERLINK(1)', "'quoted'")
    """
    return text[1:] if text.startswith("'") and spreadsheet_safe(text[1:]) == text else text


class ListFile:
    """Writes columns to an open file, with formulas escaped where spreadsheets may open it."""

    def __init__(self, write: Any, safe: dict[str, str], types: dict[str, str], escape: bool):
        self._write, self._safe, self._types, self._escape = write, safe, types, escape
        self.n_escaped = 0

    def write(self, columns: dict[str, Any]) -> None:
        """Write some rows, given as columns."""
        self._write({self._safe[name]: self._column(name, columns[name]) for name in self._types})

    def _column(self, name: str, values: Any) -> Any:
        if not self._escape or self._types[name] != "string":
            return values
        escaped = [spreadsheet_safe(value) for value in values]
        self.n_escaped += sum(a is not b for a, b in zip(escaped, values, strict=True))
        return escaped

    @property
    def note(self) -> str | None:
        """A sentence about what was escaped; None if nothing was."""
        if not self.n_escaped:
            return None
        return (
            f"{self.n_escaped:,} cells begin with =, +, -, @ or a control character, which "
            "spreadsheets take for a formula. A ' was put before them. Files that end in .parquet "
            "or .jsonl have them as they are."
        )


@contextlib.contextmanager
def open_list(file: BinaryIO, format: str, types: dict[str, str]) -> Iterator[ListFile]:
    """Open a file for rows of a list; `types` gives the names of columns and their Arrow types."""
    escape = format in _FOR_SPREADSHEETS
    safe = {name: (spreadsheet_safe(name) or "") if escape else name for name in types}
    with open_writer(file, format, {safe[name]: types[name] for name in types}) as write:
        yield ListFile(write, safe, types, escape)


# --- lists ---

#: The columns of a list in a file, besides the id and those carried along.
LIST_COLUMNS = {
    "rank": "int64",
    "row": "int64",
    "score": "double",
    "probability": "double",
    "reasons": "string",
}
#: More columns of a list with probes: how a row got its place, and with which probability.
PROBE_COLUMNS = {"selected_by": "string", "inclusion": "double"}


@dataclass(frozen=True)
class SelectedRow:
    """A row on the list; `row` counts from 1 below the heading, `kept` are other columns.

    `selected_by` is "score" or "probe", and `inclusion` the probability of being selected.
    """

    rank: int
    row: int
    id: str | None
    score: float
    probability: float | None
    reasons: list[Reason]
    kept: dict[str, Any] = field(default_factory=dict)
    selected_by: str = BY_SCORE
    inclusion: float = 1.0


@dataclass(frozen=True)
class Selection(Sequence[SelectedRow]):
    """A list of rows, the most suspicious first, and what there is to say about it.

    Attributes
    ----------
    rows : list of SelectedRow
        The list.
    id : str or None
        The name of the column with the ids.
    kept_types : dict
        Names and types of the columns carried along.
    n_items : int
        Number of rows in the table.
    notes : list of str
        Repeated ids, full lists and other things to know.
    findings : list of Finding
        What does not fit the model card.
    has_probes : bool
        Whether a share of the places went to rows below the cut.
    """

    rows: list[SelectedRow]
    id: str | None
    kept_types: dict[str, str]
    n_items: int
    notes: list[str]
    findings: list[Finding]
    has_probes: bool = False

    @overload
    def __getitem__(self, place: int) -> SelectedRow: ...
    @overload
    def __getitem__(self, place: slice) -> list[SelectedRow]: ...
    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def types(self) -> dict[str, str]:
        """The columns of the list in a file, and their types."""
        first = {"rank": LIST_COLUMNS["rank"], "row": LIST_COLUMNS["row"]}
        named = {} if self.id is None else {self.id: "string"}
        probes = PROBE_COLUMNS if self.has_probes else {}
        return {**first, **named, **LIST_COLUMNS, **probes, **self.kept_types}

    def columns(self) -> dict[str, list[Any]]:
        """Return the list as columns, with reasons in words."""
        rows = [self.row_as_dict(row) for row in self.rows]
        columns = {name: [row[name] for row in rows] for name in self.types}
        columns["reasons"] = ["; ".join(r.in_words for r in row.reasons) for row in self.rows]
        return columns

    def row_as_dict(self, row: SelectedRow) -> dict[str, Any]:
        """Return one row with the names of the table: its id column and the columns kept."""
        first = {"rank": row.rank, "row": row.row}
        named = {} if self.id is None else {self.id: row.id}
        columns = ("score", "probability", "reasons", *(PROBE_COLUMNS if self.has_probes else ()))
        others = {name: getattr(row, name) for name in columns}
        return {**first, **named, **others, **row.kept}
