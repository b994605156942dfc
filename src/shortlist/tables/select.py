"""A ranked list of exactly so many rows, with reasons for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._core.arrays import Rows
from .._core.extras import load_extra
from .._core.formatting import stated_percent
from .._core.ids import tie_keys_of
from .._core.probing import BY_SCORE, PROBE, check_probe, draw_probes, probe_seed
from .._core.ranking import lift
from .._core.validation import check_seed
from ..capacity import exact
from ..exceptions import TableError
from ..thresholds import count_invitations
from ..thresholds.lists import promised_precision
from ..thresholds.precision import CommonScores
from ..worth import Worth, expected_worth
from ._labels import RepeatedIds
from .cases import CaseReader, CaseRows
from .columns import Feature, Place
from .model import TableModel
from .monitor import Finding
from .options import ReadOptions
from .read import open_table
from .reasons import reasons_for, reasons_in_words
from .work import WorkColumns

pd = load_extra("pandas", needed_for="Reading tables")

#: The columns of a list besides the id and those carried along, and their types in a file.
_COLUMNS = {
    "rank": "int64",
    "row": "int64",
    "score": "double",
    "probability": "double",
    "reasons": "string",
}
#: More columns of a list with probes: how a row got its place, and with which probability.
_PROBE_COLUMNS = {"selected_by": "string", "inclusion": "double"}
_TIER_COLUMNS = {"tier": "string"}
_SHOWN = 8
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
    path: Path,
    *,
    count: int | Sequence[int] | Mapping[str, int] | None = None,
    segment: str | None = None,
    turnout: str | float | tuple[int, int] | None = None,
    confidence: float = 0.95,
    keep: Collection[str] = (),
    id: str | None = None,
    exclude: Path | None = None,
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
    path : Path
        A table with the columns that the model needs, or a folder of tables. Few more rows than the
        list has are held in memory; all of them with `probe`, `work` or `segment`.
    count : int, list of int or dict
        How many rows to select; with `segment`, how many of each segment. `None` if `work` has a
        budget. A list has the numbers of slots of past days, if the next one is not known.
    segment : str, default=None
        A column of the table with the segment of each row, such as a team.
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
    exclude : Path, default=None
        A table with the ids of cases to leave out, such as those that were reviewed before.
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
    worth = None if precision is None else Worth.precision(precision)
    promised_precision(worth, act, probe=check_probe(probe))
    _check_count(count, segment, probe, work, precision=precision, act=act)
    invites, length = turnout is not None or np.ndim(count) > 0, count  # type: ignore[arg-type]
    if invites:
        _check_invites(segment, probe, work, act)
        length = None if isinstance(turnout, str) else _invited(count, turnout, confidence)
    on_progress = on_progress or (lambda step, done, total: None)
    model = replace(model, schema=replace(model.schema, work=work if work.columns else None))
    needs_all = probe or work.is_given or isinstance(count, Mapping) or act is not None
    pool = _Pool(model, None if needs_all else length)
    read = CaseReader(
        model,
        path,
        keep=keep,
        id=id,
        exclude=exclude,
        segment=segment,
        turnout=turnout if isinstance(turnout, str) else None,
        widens=True,
        taken={**_COLUMNS, **_PROBE_COLUMNS, **_TIER_COLUMNS},
        reading=reading,
        on_progress=lambda n_rows: on_progress(f"{n_rows:,} rows scored", 0, 0),
    )
    for cases in read:
        pool.add(cases)
    once = "which takes one place of the list, with its highest score."
    notes = [*read.notes, *pool.ids.notes(read.id, once)]
    ranked = pool.ranked()
    if invites:
        length = _invited(count, ranked.chances, confidence) if length is None else length
        notes.append(_about_invited(length, count, turnout, confidence))
    more: dict[str, Any] = {}
    if work.is_given:
        places = _most_value(model, ranked, length, work, notes)
    else:
        n_acted = 0 if act is None else _length(model, ranked, act, pool.n_scored)[0]
        rest = ranked.take(np.arange(n_acted, len(ranked)))
        places = n_acted + _cut(rest, length, read, segment, path, notes)
        if act is not None:
            more = {"tier": ["act"] * n_acted + ["review"] * places.size}
            places = np.concatenate([np.arange(n_acted), places])
        if precision is not None:
            places = _precise(model, ranked, places, precision, pool.n_scored, notes)
        if check_probe(probe):
            places, more = _with_probes(model, ranked, places, probe)
    listed = ranked.take(places)
    if listed.names is None and (n_copies := int(listed.X.duplicated().sum())):
        notes.append(
            f"{n_copies:,} rows of the list are copies of other rows in all columns that the model "
            "uses, and take places of their own. If a column names the case, use id=..."
        )
    named = {} if read.id is None else {read.id: listed.names}
    columns = {
        "rank": np.arange(1, len(listed) + 1),
        "row": listed.numbers + 1,
        **named,
        "score": listed.scores,
        "probability": _probabilities(model, listed),
        **({"reasons": reasons_for(model, listed.X, on_progress=on_progress)} if reasons else {}),
        **more,
        **listed.carried(),
    }
    extra = {**_PROBE_COLUMNS, **_TIER_COLUMNS}
    types = {**_COLUMNS, **dict.fromkeys(named, "string"), **extra, **read.types}
    return Selection(
        {name: list(pd.Series(column, dtype=object)) for name, column in columns.items()},
        {name: types[name] for name in columns},
        read.id,
        read.n_read,
        notes,
        read.monitor.findings(),
    )


def _check_count(
    count: Any, segment: str | None, probe: float, work: WorkColumns, **promised: float | None
) -> None:
    if (count is None) != (work.budget is not None):
        raise TableError(
            "Say how long the list may be: count=50, or budget=480 with effort=..., but not both."
        )
    for option, given in {"segment": segment, "probe": probe or None, **promised}.items():
        if work.is_given and given is not None:
            raise TableError(
                f"{option}=... cannot be combined with value=..., effort=... or worth=... Make a "
                "list of its own for each."
            )
    if count is None:
        return
    if isinstance(count, Mapping) == (segment is None):
        raise TableError(
            "segment=... and a count for each segment belong together, as in: segment=team and "
            "count=north=20,south=30"
        )
    counts = count.values() if isinstance(count, Mapping) else np.ravel(count).tolist()
    if min(counts, default=0) < 0:
        raise TableError(f"count must not be negative; got {min(counts)}.")


def _check_invites(segment: str | None, probe: float, work: WorkColumns, act: float | None) -> None:
    if segment or probe or work.is_given or act is not None:
        raise TableError(
            "turnout=... and past numbers of slots cannot be combined with segment=..., probe=..., "
            "act=..., value=..., effort=... or worth=... Make a list of its own for each."
        )


def _invited(slots: Any, turnout: Any, confidence: float) -> int:
    """Return how many cases to invite for some slots; everyone comes unless something is said."""
    if isinstance(turnout, tuple):
        return count_invitations(slots, history=turnout, confidence=confidence)
    if isinstance(turnout, np.ndarray):
        return count_invitations(slots, chances=turnout, confidence=confidence)
    return count_invitations(slots, rate=1 if turnout is None else turnout, confidence=confidence)


def _about_invited(count: Any, slots: Any, turnout: Any, confidence: float) -> str:
    past = "a number of slots like those of the past" if np.ndim(slots) else f"{slots:,} slots"
    who = {str: f"as {turnout!r} says", tuple: "as often as before", type(None): "all"}
    return (
        f"{count:,} cases are invited for {past}. More come than there are slots with a "
        f"probability of at most {stated_percent(float(1 - exact(confidence)))}, if cases come "
        f"independently of each other, and {who.get(type(turnout), f'at a rate of {turnout}')}."
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


class _Pool:
    """Keeps the rows that can be on a list of `most` rows; all of them if that is None.

    A row that is behind enough others now is behind them at the end as well.
    """

    def __init__(self, model: TableModel, most: Any) -> None:
        self._model, self._most = model, most
        self._parts: list[CaseRows] = []
        self._n_held = self.n_scored = 0
        self.ids = RepeatedIds()

    def add(self, cases: CaseRows) -> None:
        """Look at some rows."""
        if cases.names is not None:
            self.ids.add(cases.names)
        scores = np.zeros(0)
        if len(cases):
            scores = np.asarray(self._model.classifier.score_samples(cases.X), dtype=np.float64)
        self._parts.append(replace(cases, scores=scores))
        self._n_held += len(cases)
        self.n_scored += len(cases)
        if self._most is not None and self._n_held > 2 * self._most + _SPARE:
            ranked = self.ranked()
            self._parts = [ranked.take(np.arange(min(self._most, len(ranked))))]
            self._n_held = len(self._parts[0])

    def ranked(self) -> CaseRows:
        """Return the rows, the most suspicious first; each id with its highest score only."""
        cases = CaseRows.joined(self._parts)
        keys = self._model.tie_keys(cases.X, cases.ids)
        order = np.lexsort((cases.numbers, keys, -lift(cases.scores)))
        if cases.names is not None:
            order = order[~pd.Series(cases.names[order]).duplicated().to_numpy()]
        return cases.take(order)


def _most_value(
    model: TableModel, cases: CaseRows, count: Any, work: WorkColumns, notes: list[str]
) -> Rows:
    """Return the places of most expected value, the highest value per unit of effort first."""
    p = model.probabilities(cases.X)
    found = work.choose(p, cases.values, cases.efforts, count)
    notes.append(work.in_words(found))
    worth = expected_worth(p, values=cases.values, efforts=cases.efforts)
    chosen = np.flatnonzero(found.flagged)
    return chosen[np.argsort(-worth[chosen], kind="stable")]


def _cut(
    cases: CaseRows,
    count: Any,
    read: CaseReader,
    segment: str | None,
    path: Path,
    notes: list[str],
) -> Rows:
    """Return the first places of all rows, or of each segment; note where there are too few."""
    ranked = {str(path): (np.arange(len(cases)), count)}
    if isinstance(count, Mapping):
        _check_segments(count, read.segments, segment, path, notes)
        ranked = {repr(n): (np.flatnonzero(cases.segments == n), k) for n, k in count.items()}
    notes += [
        f"{name} has only {rows.size:,} cases to list, fewer than {most:,}; all are listed."
        for name, (rows, most) in ranked.items()
        if rows.size < most
    ]
    places = [rows[:most] for rows, most in ranked.values()]
    return np.sort(np.concatenate([np.zeros(0, np.intp), *places]))


def _precise(
    model: TableModel,
    cases: CaseRows,
    places: Rows,
    precision: float,
    n_scored: int,
    notes: list[str],
) -> Rows:
    """Return the first of some places, so many as keep a precision; note if that is not all.

    An id that occurs more than once has one place of the list, and as many tests as rows.
    """
    k, common = _length(model, cases.take(places), precision, n_scored)
    if k < places.size:
        needed, n_common = common.fewest(places.size, n_scored, precision), common.scores.size
        more = f" Any list needs {needed:,} of these." if n_common < needed else ""
        notes.append(
            f"The list has {k:,} of {places.size:,} places: of a longer one, less than "
            f"{stated_percent(precision)} might be rare on average, judged by {n_common:,} "
            f"calibration cases that are known to be common.{more}"
        )
    return places[:k]


def _length(
    model: TableModel, first: CaseRows, precision: float, n_scored: int
) -> tuple[int, CommonScores]:
    """Return how many of the first rows of a ranking keep a precision, and what they compare to."""
    common = model.classifier.rule_.common_scores(by_ids=first.ids is not None)
    keys = model.tie_keys(first.X, first.ids)
    return common.length(first.scores, keys, n_scored, precision), common


def _check_segments(
    count: Mapping[str, int],
    segments: Counter[str],
    segment: str | None,
    path: Path,
    notes: list[str],
) -> None:
    unknown = [name for name in count if name not in segments]
    if unknown:
        raise TableError(
            f"count=... names {unknown[0]!r}, which does not occur in the column {segment!r} of "
            f"{path}. Its values are {_shown(sorted(segments))}."
        )
    unnamed = [name for name in sorted(segments) if name not in count]
    if unnamed:
        n_rows = sum(segments[name] for name in unnamed)
        notes.append(
            f"{n_rows:,} rows with {segment!r} = {_shown(unnamed)} get no place: count=... does "
            "not name them."
        )


def _shown(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")


def _with_probes(
    model: TableModel, cases: CaseRows, chosen: Rows, probe: float
) -> tuple[Rows, dict[str, Any]]:
    """Give the last places to rows below the cut; they stand where their scores put them."""
    seed = probe_seed(check_seed(model.classifier.random_state))
    keys = tie_keys_of(cases.X, cases.names, seed=seed)
    codes = None
    if cases.segments is not None:
        codes = np.unique(cases.segments.astype(str), return_inverse=True)[1]
    drawn = draw_probes(
        np.isin(np.arange(len(cases)), chosen),
        -np.arange(len(cases), dtype=np.float64),  # the order is known, and has no ties
        lambda rows: np.zeros(rows.size),
        keys,
        check_probe(probe),
        groups=codes,
    )
    listed = np.flatnonzero(drawn.flagged)
    selected_by = np.where(drawn.is_probe[listed], PROBE, BY_SCORE)
    return listed, {"selected_by": selected_by, "inclusion": drawn.probabilities[listed]}


def _probabilities(model: TableModel, listed: CaseRows) -> Any:
    if not model.gives_probabilities or not len(listed):
        return [None] * len(listed)
    return model.probabilities(listed.X)
