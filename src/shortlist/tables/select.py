"""A ranked list of exactly so many rows, with reasons for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import probing
from .._core.arrays import Rows
from .._core.arrow import pd
from .._core.formatting import counted, stated_percent
from .._core.ids import tie_keys_of
from .._core.ranking import lift
from .._core.validation import check_seed
from ..capacity import exact
from ..exceptions import TableError
from ..thresholds import count_invitations
from ..thresholds.lists import check_one_way
from ..thresholds.precision import CommonScores
from ..worth import Worth, expected_worth
from ._labels import RepeatedIds
from ._source import ReadOptions
from ._source import listed as listed_names
from .cases import CaseReader
from .columns import Feature, Place
from .model import TableModel
from .monitor import Finding
from .read import open_table
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
#: Rows that are held besides those of the list, until the last ones are dropped.
_SPARE = 1 << 16

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
    length = _Length(count, segment, entity, turnout, confidence, probe, precision, act, work)
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
    ranking = _Ranking(read, length.most_rows())
    places, how = length.places(ranking)
    listed, more = ranking.cases.take(places), dict[str, Any]()
    if reasons:
        more["reasons"] = reasons_for(model, listed.X, on_progress=on_progress)
    if entity is not None:
        more["events"] = ranking.n_events[listed.numbers]
    return _selection(ranking, listed, more | how)


def _selection(ranking: _Ranking, listed: TableRows, more: dict[str, Any]) -> Selection:
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
        numbers = Feature(name, "numeric").values(source.read()[name], place=Place(str(path)))
    if (bad := np.flatnonzero(~(numbers >= 0) | (numbers % 1 != 0))).size:
        raise TableError(
            f"The column {name!r} must hold whole numbers of at least 0; got {numbers[bad[0]]:g} "
            f"in row {bad[0] + 1} of {path}."
        )
    return [int(each) for each in numbers]


# --- who gets on the list ---


class _Ranking:
    """The cases of a table that can be on a list of `most` rows, ranked; all if that is None.

    A row that is behind enough others now is behind them at the end as well. An id that occurs more
    than once is one case, and as many tests of a promised precision as it has rows: `n_scored`
    counts rows. `notes` say what becomes of the cases.
    """

    def __init__(self, read: CaseReader, most: int | None) -> None:
        self.read, self.model, self._most = read, read.model, most
        self._parts: list[TableRows] = []
        self._n_held = self.n_scored = self._n_joined = 0
        self.n_events: Any = None  # by the number of each row
        ids = RepeatedIds()
        for cases in read:
            if cases.names is not None:
                ids.add(cases.names)
            self.add(cases)
        self.cases = self._ranked()
        once = "which takes one place of the list, with its highest score."
        self.notes = [*read.notes, *(ids.notes(read.id, once) if read.entity is None else [])]
        if self._n_joined:
            events = counted(self._n_joined, "event belongs", "events belong")
            self.notes.append(f"{events} to earlier cases: not listed.")

    def add(self, cases: TableRows) -> None:
        """Score some rows, and drop those that have no chance any more."""
        scores = np.zeros(0)
        if len(cases):
            scores = np.asarray(self.model.classifier.score_samples(cases.X), dtype=np.float64)
        self.n_scored += len(cases)
        cases = self._without_earlier(replace(cases, scores=scores))
        self._parts.append(cases)
        self._n_held += len(cases)
        if self._most is not None and self._n_held > 2 * self._most + _SPARE:
            ranked = self._ranked()
            self._parts = [ranked.take(np.arange(min(self._most, len(ranked))))]
            self._n_held = len(self._parts[0])

    def _ranked(self) -> TableRows:
        """Return the rows, the most suspicious first; each id with its highest score only."""
        cases = TableRows.joined(self._parts)
        keys = self.model.tie_keys(cases.X, cases.ids)
        order = np.lexsort((cases.numbers, keys, -lift(cases.scores)))
        names: Any = cases.names
        if cases.entities is not None:
            rule = self.read.rule  # nobody is on a list twice within the cool-down
            whole = type(rule)(window=rule.window + rule.cooldown)
            names = whole.number(cases.entities, cases.moments)
            self.n_events = np.zeros(self.read.n_read, dtype=np.int64)
            self.n_events[cases.numbers] = np.bincount(names)[names]
        if names is not None:
            order = order[~pd.Series(names[order]).duplicated().to_numpy()]
        return cases.take(order)

    def _without_earlier(self, cases: TableRows) -> TableRows:
        """Leave out events that belong to the case of an earlier list."""
        if cases.entities is None or cases.moments is None:
            return cases
        columns = (cases.entities, cases.scores, cases.moments)
        events = zip(*(column.tolist() for column in columns), strict=True)
        is_new = np.array([self.read.rule.settle(*event) is None for event in events], dtype=bool)
        self._n_joined += int((~is_new).sum())
        return cases.take(np.flatnonzero(is_new))

    def precise(self, places: Rows, precision: float) -> tuple[int, CommonScores]:
        """Return how many of some places keep a precision, and which scores they compare to."""
        first = self.cases.take(places)
        common = self.model.classifier.rule_.common_scores(by_ids=first.ids is not None)
        keys = self.model.tie_keys(first.X, first.ids)
        return common.length(first.scores, keys, self.n_scored, precision), common


@dataclass(frozen=True)
class _Length:
    """How long a list is: what :func:`select_rows` says about it, checked."""

    count: Any
    segment: str | None
    entity: str | None
    turnout: Any
    confidence: float
    probe: float
    precision: float | None
    act: float | None
    work: WorkColumns

    def __post_init__(self) -> None:
        worth = None if self.precision is None else Worth.precision(self.precision)
        check_one_way(worth, self.act, probing.check_probe(self.probe))
        if (self.count is None) != (self.work.budget is not None):
            raise TableError(
                "Say how long the list may be: count=50, or budget=480 with effort=..., but not "
                "both."
            )
        self._check_alone()
        if isinstance(self.count, Mapping) == (self.segment is None) and self.count is not None:
            raise TableError(
                "segment=... and a count for each segment belong together, as in: segment=team and "
                "count=north=20,south=30"
            )
        counts = self.count.values() if isinstance(self.count, Mapping) else np.ravel(self.count)
        if self.count is not None and min(counts, default=0) < 0:
            raise TableError(f"count must not be negative; got {min(counts)}.")

    def _check_alone(self) -> None:
        """Refuse what lists of values and of invitations cannot have."""
        others = {"segment": self.segment, "act": self.act}
        if self.invites or self.work.budget is not None:
            others |= {"probe": self.probe or None}
        if self.work.is_given:
            others |= {"precision": self.precision, "turnout": self.invites or None}
        given = [option for option, value in others.items() if value is not None]
        if given and (self.work.is_given or self.invites):
            raise TableError(
                f"{given[0]}=... cannot be combined with value=..., effort=..., worth=..., "
                "turnout=... or past numbers of slots. Make a list of its own for each."
            )

    @property
    def invites(self) -> bool:
        """Whether `count` is a number of slots, for which more cases are invited."""
        return self.turnout is not None or np.ndim(self.count) > 0

    def most_rows(self) -> int | None:
        """Return how many rows can be on the list; None if that depends on all of them."""
        of_groups = self.segment is not None or self.entity is not None
        if of_groups or self.probe or self.act is not None or self.work.is_given:
            return None
        if self.invites:
            return None if isinstance(self.turnout, str) else self._invited(self.turnout)
        return int(self.count)

    def places(self, ranking: _Ranking) -> tuple[Rows, dict[str, Any]]:
        """Return who gets on the list, and its columns that say how."""
        if self.work.is_given:
            return self._most_value(ranking)
        acted: Rows = np.arange(0)
        if self.act is not None:
            acted = np.arange(ranking.precise(np.arange(len(ranking.cases)), self.act)[0])
        places = self._cut(ranking, acted.size)
        if self.precision is not None:
            places = self._precise(ranking, places, self.precision)
        if self.invites:
            ranking.notes.append(self._about_invited(places.size))
        if probing.check_probe(self.probe):
            return _with_probes(ranking, places, self.probe)
        tiers = ["act"] * acted.size + ["review"] * places.size
        return np.concatenate([acted, places]), {} if self.act is None else {"tier": tiers}

    def _most_value(self, ranking: _Ranking) -> tuple[Rows, dict[str, Any]]:
        """Return the places of most expected value, the highest value per unit of effort first."""
        cases, p = ranking.cases, ranking.model.probabilities(ranking.cases.X)
        found = self.work.choose(p, cases.values, cases.efforts, self.count)
        worth = expected_worth(p, values=cases.values, efforts=cases.efforts)
        order = np.argsort(-worth, kind="stable")
        listed, columns = order[found.flagged[order]], dict[str, Any]()
        if probing.check_probe(self.probe):
            losses = None if cases.values is None else probing.expected_losses(p, cases.values)
            listed, columns = _with_probes(ranking, listed, self.probe, order, losses)
            gain = float(expected_worth(p, values=cases.values, efforts=None)[listed].sum())
            found = replace(found, gain=gain, gap=found.gain + found.gap - gain)
        ranking.notes.append(self.work.in_words(found))
        return listed, columns

    def _invited(self, turnout: Any) -> int:
        """Return how many cases to invite; everyone comes unless something is said."""
        name = {tuple: "history", np.ndarray: "chances"}.get(type(turnout), "rate")
        said: dict[str, Any] = {name: 1 if turnout is None else turnout}
        return count_invitations(self.count, confidence=self.confidence, **said)

    def _cut(self, ranking: _Ranking, start: int) -> Rows:
        """Return the first places of all rows, or of each segment; note where there are too few."""
        rows, count = np.arange(start, len(ranking.cases)), self.count
        if self.invites:
            by_column = isinstance(self.turnout, str)
            count = self._invited(ranking.cases.chances if by_column else self.turnout)
        ranked = {str(ranking.read.path): (rows, count)}
        if isinstance(count, Mapping):
            self._check_segments(ranking)
            own = ranking.cases.take(rows).segments
            ranked = {repr(name): (rows[own == name], most) for name, most in count.items()}
        ranking.notes.extend(
            f"{name} has only {counted(rows.size, 'case')} to list, fewer than {most:,}; all are "
            "listed."
            for name, (rows, most) in ranked.items()
            if rows.size < most
        )
        places = [rows[:most] for rows, most in ranked.values()]
        return np.sort(np.concatenate([np.zeros(0, np.intp), *places]))

    def _about_invited(self, n_invited: int) -> str:
        invited = counted(n_invited, "case is", "cases are")
        past = "a number of slots like those of the past"
        slots = past if np.ndim(self.count) else counted(self.count, "slot")
        often = "all" if self.turnout is None else "as often as turnout=... says"
        return (
            f"{invited} invited for {slots}. More come than there are slots with a probability of "
            f"at most {stated_percent(float(1 - exact(self.confidence)))}, if cases come "
            f"independently of each other, and {often}."
        )

    def _check_segments(self, ranking: _Ranking) -> None:
        known = ranking.read.segments
        unknown = [name for name in self.count if name not in known]
        if unknown:
            raise TableError(
                f"count=... names {unknown[0]!r}, which does not occur in the column "
                f"{self.segment!r} of {ranking.read.path}. Its values are "
                f"{listed_names(sorted(known))}."
            )
        unnamed = [name for name in sorted(known) if name not in self.count]
        if unnamed:
            ranking.notes.append(
                f"No place for {counted(sum(known[name] for name in unnamed), 'row')} with "
                f"{self.segment!r} = {listed_names(unnamed)}: count=... does not name them."
            )

    def _precise(self, ranking: _Ranking, places: Rows, precision: float) -> Rows:
        """Return the first of some places, so many as keep a precision; note if that is not all."""
        k, common = ranking.precise(places, precision)
        if k < places.size:
            needed = common.fewest(places.size, ranking.n_scored, precision)
            n_common = common.scores.size
            more = f" Any list needs {needed:,} of these." if n_common < needed else ""
            ranking.notes.append(
                f"The list has {k:,} of {places.size:,} places: of a longer one, less than "
                f"{stated_percent(precision)} might be rare on average, judged by {n_common:,} "
                f"calibration cases that are known to be common.{more}"
            )
        return places[:k]


def _with_probes(
    ranking: _Ranking, chosen: Rows, probe: float, order: Any = None, losses: Any = None
) -> tuple[Rows, dict[str, Any]]:
    """Give the last places to rows below the cut; they stand where their order puts them."""
    cases = ranking.cases
    order = np.arange(len(cases)) if order is None else order
    seed = probing.probe_seed(check_seed(ranking.model.classifier.random_state))
    codes = None
    if cases.segments is not None:
        codes = np.unique(cases.segments.astype(str), return_inverse=True)[1]
    drawn = probing.draw_probes(
        np.isin(np.arange(len(cases)), chosen),
        -np.argsort(order).astype(np.float64),  # the order is known, and has no ties
        lambda rows: np.zeros(rows.size),
        tie_keys_of(cases.X, cases.names, seed=seed),
        probing.check_probe(probe),
        groups=codes,
        losses=losses,
    )
    listed = order[drawn.flagged[order]]
    selected_by = np.where(drawn.is_probe[listed], probing.PROBE, probing.BY_SCORE)
    return listed, {"selected_by": selected_by, "inclusion": drawn.probabilities[listed]}
