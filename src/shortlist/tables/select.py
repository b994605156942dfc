"""A ranked list of exactly so many rows, with reasons for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.arrow import pd
from ..exceptions import TableError
from ._places import ListLength, Ranking
from ._source import ReadOptions
from .cases import CaseReader
from .columns import Feature, Place
from .model import TableModel
from .monitor import Finding
from .read import open_table, read_whole
from .reasons import reasons_for, reasons_in_words
from .schema import TableRows, WorkColumns

if TYPE_CHECKING:
    from ..online import EntityCases

#: The columns that a list may have besides the id and those carried along, and their types in a
#: file. With probes: how a row got its place, and with which probability; with tiers: which one.
_COLUMNS = {
    **dict.fromkeys(("rank", "row", "events"), "int64"),
    **dict.fromkeys(("score", "probability", "inclusion"), "double"),
    **dict.fromkeys(("reasons", "selected_by", "tier"), "string"),
}
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Selection:
    """A list of rows, the most suspicious first, and what there is to say about it.

    Attributes
    ----------
    columns : dict
        The list, column by column: `rank`, `row` (counted from 1 below the heading), the id under
        its own name, `score`, `probability` and `reasons`; with probes, `selected_by` ("score" or
        "probe") and `inclusion`, the probability of being selected; and the columns carried along.
    types : dict
        The types of these columns in a file.
    id : str or None
        The name of the column with the ids.
    n_items : int
        Number of rows in the table.
    notes : list of str
        Repeated ids, full lists and other things to know.
    findings : list of Finding
        What does not fit the model card.
    """

    columns: dict[str, list[Any]]
    types: dict[str, str]
    id: str | None
    n_items: int
    notes: list[str]
    findings: list[Finding]

    def __len__(self) -> int:
        return len(self.columns["rank"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The list, row by row."""
        return pd.DataFrame(self.columns, dtype=object).to_dict("records")

    def in_words(self) -> dict[str, list[Any]]:
        """Return the columns with reasons as texts."""
        if "reasons" not in self.columns:
            return self.columns
        return {**self.columns, "reasons": [*map(reasons_in_words, self.columns["reasons"])]}


def select_rows(
    model: TableModel,
    path: Any,
    *,
    count: int | Sequence[int] | Mapping[str, int] | None = None,
    segment: str | None = None,
    entity: str | None = None,
    time: str | None = None,
    rule: EntityCases | None = None,
    turnout: str | float | tuple[int, int] | None = None,
    confidence: float = 0.95,
    keep: Collection[str] = (),
    id: str | None = None,
    exclude: Any = None,
    probe: float = 0,
    precision: float | None = None,
    reasons: bool = True,
    act: float | None = None,
    reading: ReadOptions | None = None,
    work: WorkColumns | None = None,
    on_progress: Progress | None = None,
) -> Selection:
    """Return the `count` most suspicious rows of a file, the most suspicious first.

    There are exactly `count` rows, or all rows if there are fewer. Rows with equal scores are
    chosen and ordered by a hash of their ids (or of their own values if there are no ids), never by
    their position. An id that occurs more than once takes one place, with its highest score. For
    :func:`shortlist.select`, on one machine or many, every row is a case of its own.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path, str or data frame
        A table with the columns that the model needs, or a folder of tables. Few more rows than the
        list has are held in memory; all of them with `probe`, `work` or `segment`.
    count : int, list of int or dict
        How many rows to select; with `segment`, how many of each segment. `None` if `work` has a
        budget. A list has the numbers of slots of past days, if the next one is not known.
    segment : str, default=None
        A column of the table with the segment of each row, such as a team.
    entity : str, default=None
        A column that says whose event a row is, such as a customer. The events of one entity are
        one case: it takes one place, with its highest score (and the effort of that event), and a
        column `events` counts them.
    time : str, default=None
        A column with the moments of the rows: dates, or seconds. Cases of an entity then last as
        long as the window and the cool-down of `rule`, and exclusions may end.
    rule : EntityCases, default=None
        What makes events one case; `None` has a window of a day. Cases that began with `exclude`
        are not listed again within its window and cool-down, unless the score rises.
    turnout : str, float or tuple of int, default=None
        How often an invited case comes, if `count` is the number of slots: a column with the
        probability of each row, a probability, or how many came and how many were invited. The list
        is then longer than the number of slots.
    confidence : float, default=0.95
        With `turnout` or past numbers: more cases come than there are slots with a probability of
        at most ``1 - confidence``. See :func:`~shortlist.thresholds.count_invitations`.
    keep : collection of str, default=()
        Columns of the table to carry along; ``["all"]`` takes all of them.
    id : str, default=None
        The column that names a case; `None` takes the id of the model.
    exclude : Path, str or data frame, default=None
        A table with the ids of cases to leave out, such as those that were reviewed before; of
        entities, if there is an `entity`. A column `until` ends an exclusion. An earlier list, with
        the columns `entity`, `time` and ``"score"``, has cases to which `rule` applies.
    probe : float, default=0
        Share of the places for rows below the cut, drawn at random; in each segment of its own.
        Their outcomes say what is missed (``shortlist evaluate --reviews``).
    precision : float, default=None
        The share of the list that is rare, at least, on average: on a quiet day the list is
        shorter than `count`, and a note says why. It needs a model with calibration rows that were
        held out, or that was recalibrated with labels. Not with `probe`, values or efforts.
    reasons : bool, default=True
        Whether to measure what raised the score of each row, which takes longer the more columns
        there are.
    act : float, default=None
        Put rows to act on at once before the list, of which at least this share is rare on average,
        such as 0.9, however many they are. They take no places of `count`, and a column `tier` says
        "act" or "review". It needs what `precision` needs.
    reading : ReadOptions, default=None
        What to know about this file; `None` reads it as the table of the fit.
    work : WorkColumns, default=None
        Columns with values and efforts, a budget, and what a slot must be worth. The list then has
        the largest expected value, and is ordered by value * probability / effort.
    on_progress : callable, default=None
        Called with the current step, the number of finished steps and the total number.

    Returns
    -------
    Selection
        Columns and rows with the score, the probability if the learner has one, and the columns
        that raised the score; and notes.
    """
    work = (work or WorkColumns()).for_list(model.schema.work)
    length = ListLength(count, segment, entity, turnout, confidence, probe, precision, act, work)
    on_progress = on_progress or (lambda step, done, total: None)
    model = replace(model, schema=replace(model.schema, work=work if work.columns else None))
    read = CaseReader(
        model,
        path,
        keep=keep,
        id=id,
        exclude=exclude,
        segment=segment,
        turnout=turnout if isinstance(turnout, str) else None,
        entity=entity,
        time=time,
        given_rule=rule,
        widens=True,
        taken=_COLUMNS,
        reading=reading,
        on_progress=lambda n_rows: on_progress(f"{n_rows:,} rows scored", 0, 0),
    )
    ranking = Ranking(read, length.most_rows())
    places, how = length.places(ranking)
    listed, more = ranking.cases.take(places), dict[str, Any]()
    if reasons:
        more["reasons"] = reasons_for(model, listed.X, on_progress=on_progress)
    if entity is not None:
        more["events"] = ranking.n_events[listed.numbers]
    return _selection(ranking, listed, more | how)


def _selection(ranking: Ranking, listed: TableRows, more: dict[str, Any]) -> Selection:
    """Return a list with its further columns, and with notes."""
    read, model, notes = ranking.read, ranking.model, ranking.notes
    if listed.names is None and (n_copies := int(listed.X.duplicated().sum())):
        notes.append(
            f"{n_copies:,} rows of the list are copies of other rows in all columns that the model "
            "uses, and take places of their own. If a column names the case, use id=..."
        )
    has_probabilities = model.gives_probabilities and len(listed) > 0
    named = {} if read.id is None else {read.id: listed.names}
    columns = {
        "rank": np.arange(1, len(listed) + 1),
        "row": listed.numbers + 1,
        **named,
        "score": listed.scores,
        "probability": model.probabilities(listed.X) if has_probabilities else [None] * len(listed),
        **more,
        **listed.carried(),
    }
    types = {**_COLUMNS, **dict.fromkeys(named, "string"), **read.types}
    return Selection(
        {name: list(pd.Series(column, dtype=object)) for name, column in columns.items()},
        {name: types[name] for name in columns},
        read.id,
        read.n_read,
        notes,
        read.monitor.findings(),
    )


def read_slots(path: Path) -> list[int]:
    """Return past numbers of slots: the only column of a table, or the one named slots."""
    with open_table(path) as source:
        name = source.columns[0] if len(source.columns) == 1 else "slots"
        source.require([name], "the numbers of slots on past days")
        numbers = Feature(name, "numeric").values(read_whole(source)[name], place=Place(str(path)))
    if (bad := np.flatnonzero(~(numbers >= 0) | (numbers % 1 != 0))).size:
        raise TableError(
            f"The column {name!r} must hold whole numbers of at least 0; got {numbers[bad[0]]:g} "
            f"in row {bad[0] + 1} of {path}."
        )
    return [int(each) for each in numbers]
