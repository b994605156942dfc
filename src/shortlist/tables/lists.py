"""Lists of rows: what is on them, and their columns in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .._core.probing import BY_SCORE
from .monitor import Finding
from .reasons import Reason

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
class Selection:
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

    def __iter__(self) -> Iterator[SelectedRow]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> SelectedRow:
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
