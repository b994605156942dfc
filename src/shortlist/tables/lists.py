"""Lists and decisions in files: their columns, and texts that spreadsheets take for formulas."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, overload

from .._core.extras import load_extra
from .._core.probing import BY_SCORE
from .monitor import Finding
from .reasons import Reason
from .write import open_writer

pa = load_extra("pyarrow", needed_for="Writing tables")
load_extra("pyarrow.compute", needed_for="Writing tables")

#: Formats that spreadsheets open, and would take texts for formulas in.
_FOR_SPREADSHEETS = ("csv", "xlsx")
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?")


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


def without_escape(text: str) -> str:
    """Return a text as it was before :func:`spreadsheet_safe`.

    >>> without_escape("'=HYPERLINK(1)"), without_escape("'quoted'")
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
        texts = pa.array(values, pa.string())
        is_number = pa.compute.match_substring_regex(texts, f"^(?:{_NUMBER.pattern})$")
        is_formula = pa.compute.match_substring_regex(texts, f"^{_FORMULA.pattern}")
        is_formula = pa.compute.and_not(is_formula, is_number)
        self.n_escaped += pa.compute.sum(is_formula).as_py() or 0
        escaped = pa.compute.binary_join_element_wise("'", texts, "")
        return pa.compute.if_else(is_formula, escaped, texts)

    @property
    def notes(self) -> list[str]:
        """What was escaped, if anything was."""
        if not self.n_escaped:
            return []
        return [
            f"{self.n_escaped:,} cells begin with =, +, -, @ or a control character, which "
            "spreadsheets take for a formula. A ' was put before them. Files that end in .parquet "
            "or .jsonl have them as they are."
        ]


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
