"""A ranked list of exactly so many rows, with reasons for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask, Rows
from .._core.extras import load_extra
from .._core.hashing import tie_keys_of
from .._core.probing import BY_SCORE, PROBE, check_probe, draw_probes, probe_seed
from .._core.validation import check_seed
from ..exceptions import TableError
from ..worth import expected_worth
from ._pool import Cases, Pool
from ._repeats import Repeated
from ._source import OpenTable
from .lists import (
    LIST_COLUMNS,
    PROBE_COLUMNS,
    CarriedColumns,
    Exclusions,
    SelectedRow,
    Selection,
    as_texts,
    read_exclusions,
)
from .model import TableModel
from .monitor import DriftMonitor, Finding
from .options import ReadOptions
from .reasons import reasons_for
from .work import WorkColumns

pd = load_extra("pandas", needed_for="Reading tables")

_SHOWN = 8

Progress = Callable[[str, int, int], None]


def select_rows(
    model: TableModel,
    path: Path,
    *,
    count: int | Mapping[str, int] | None = None,
    segment: str | None = None,
    keep: Collection[str] = (),
    id: str | None = None,
    exclude: Path | None = None,
    probe: float = 0,
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
        A table with the columns that the model needs, or a folder of tables. No more rows than the
        list has are held in memory; all of them with `probe` or `work`, and with segments of cases
        that have ids.
    count : int or dict
        How many rows to select; with `segment`, how many of each segment. `None` if `work` has a
        budget.
    segment : str, default=None
        A column of the table with the segment of each row, such as a team.
    keep : collection of str, default=()
        Columns of the table to carry along; ``["all"]`` takes all of them.
    id : str, default=None
        The column that names a case; `None` takes the id of the model.
    exclude : Path, default=None
        A table with the ids of cases to leave out, such as those that were reviewed before.
    probe : float, default=0
        Share of the places for rows below the cut, drawn at random; in each segment of its own.
        See :func:`missed_in_table`.
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
        A sequence of rows with the score, the probability if the learner has one, and the columns
        that raised the score; and notes.
    """
    work = (work or WorkColumns()).for_list(model.schema.work)
    _check_count(count, segment, work)
    on_progress = on_progress or (lambda step, done, total: None)
    wanted = _Wanted(count, segment, keep, id, exclude, probe > 0, work)
    with model.schema.open(path, reading=reading) as source:
        table = _read(model, source, wanted, on_progress)
    notes = _notes(table, path)
    if work.is_given:
        _refuse_probes(probe)
        chosen = _most_value(model, table, count, work, notes)
        drawn = _Drawn(chosen, np.zeros(chosen.size, dtype=bool), np.ones(chosen.size))
    else:
        assert count is not None
        chosen = _cut(table, count, segment, path, notes)
        drawn = _with_probes(model, table.cases, chosen, check_probe(probe))
    listed = table.cases.take(drawn.rows)
    _note_copies(listed, notes)
    return Selection(
        _described(model, listed, drawn, on_progress),
        table.id,
        table.kept_types,
        table.n_items,
        notes,
        table.findings,
        probe > 0,
    )


def _check_count(
    count: int | Mapping[str, int] | None, segment: str | None, work: WorkColumns
) -> None:
    if (count is None) != (work.budget is not None):
        raise TableError(
            "Say how long the list may be: count=50, or budget=480 with effort=..., but not both."
        )
    if work.is_given and segment is not None:
        raise TableError(
            "segment=... cannot be combined with value=..., effort=... or worth=... Use one table "
            "for each segment."
        )
    if count is None:
        return
    if isinstance(count, Mapping) == (segment is None):
        raise TableError(
            "segment=... and a count for each segment belong together, such as 20 for north and 30 "
            "for south."
        )
    counts = list(count.values()) if isinstance(count, Mapping) else [count]
    if min(counts, default=0) < 0:
        raise TableError(f"count must not be negative; got {min(counts)}.")


def _refuse_probes(probe: float) -> None:
    if probe:
        raise TableError("probe=... cannot be combined with value=..., effort=... or worth=...")


# --- reading ---


class _Wanted(NamedTuple):
    """What was asked for."""

    places: int | Mapping[str, int] | None
    segment: str | None
    keep: Collection[str]
    id: str | None
    exclude: Path | None
    has_probes: bool
    work: WorkColumns

    def most(self, has_names: bool) -> int | Mapping[str, int] | None:
        """Return how many rows can be on the list, if the other rows are not needed.

        An id takes one place in all segments together, that of its highest score, which may be in
        a segment that is full.
        """
        needs_all = self.has_probes or self.work.is_given
        return None if needs_all or (self.segment is not None and has_names) else self.places


@dataclass
class _Table:
    """The rows that can be on the list, the most suspicious first, and counts of all rows."""

    cases: Cases
    id: str | None
    kept_types: dict[str, str]
    findings: list[Finding]
    n_items: int
    excluded: Exclusions | None
    repeated: Repeated
    segments: Counter[str]
    work: dict[str, Doubles | None] = field(default_factory=dict)


def _read(model: TableModel, source: OpenTable, wanted: _Wanted, on_progress: Progress) -> _Table:
    carried = _carried(model, source, wanted)
    excluded = None
    if wanted.exclude is not None:
        excluded = read_exclusions(wanted.exclude, carried.id, source.reading)
    monitor, pool = DriftMonitor(model), Pool(model, wanted.most(carried.id is not None))
    segments: Counter[str] = Counter()
    weighed = _Weighed(wanted.work)
    for rows in model.schema.rows(carried.source):
        on_progress(f"{monitor.n_items:,} rows scored", 0, 0)
        if not len(rows.X):
            continue
        numbers = np.arange(monitor.n_items, monitor.n_items + len(rows.X))
        monitor.add(rows)
        weighed.add(carried)
        cases = _cases(model, rows, numbers, carried, wanted.segment)
        if cases.segments is not None:
            segments.update(cases.segments.tolist())
        pool.add(cases.take(_allowed(cases, excluded)))
    if not monitor.n_items:
        raise TableError(f"{source.name} has a heading, but no rows.")
    found = (carried.id, carried.types(), monitor.findings(), monitor.n_items, excluded)
    return _Table(pool.ranked(), *found, pool.repeated, segments, weighed.numbers())


def _carried(model: TableModel, source: OpenTable, wanted: _Wanted) -> CarriedColumns:
    others = () if wanted.segment is None else (wanted.segment,)
    source.require(others, "which segment=... names")
    for option, column in wanted.work.columns.items():
        source.require([column], f"which {option}=... names")
    return CarriedColumns(
        source,
        model.schema,
        keep=wanted.keep,
        id=wanted.id,
        others=(*others, *wanted.work.columns.values()),
        taken={**LIST_COLUMNS, **PROBE_COLUMNS},
    )


def _cases(
    model: TableModel, rows: Any, numbers: Rows, carried: CarriedColumns, segment: str | None
) -> Cases:
    scores = np.asarray(model.classifier.score_samples(rows.X), dtype=np.float64)
    kept = {name: pd.Series(values, dtype=object) for name, values in carried.columns().items()}
    return Cases(
        rows.X,
        scores,
        numbers,
        rows.ids,
        carried.ids(),
        None if segment is None else as_texts(carried.column(segment), segment),
        pd.DataFrame(kept, index=range(numbers.size)),
    )


class _Weighed:
    """Gathers the columns with values and efforts."""

    def __init__(self, work: WorkColumns) -> None:
        self._work = work
        self._parts: dict[str, list[Any]] = {option: [] for option in work.columns}

    def add(self, carried: CarriedColumns) -> None:
        for option, name in self._work.columns.items():
            self._parts[option].append(carried.column(name))

    def numbers(self) -> dict[str, Doubles | None]:
        return {option: self._work.numbers(option, parts) for option, parts in self._parts.items()}


# --- who gets on the list ---


def _allowed(cases: Cases, excluded: Exclusions | None) -> Rows:
    if excluded is None:
        return np.arange(len(cases))
    assert cases.names is not None
    return np.flatnonzero(~excluded.found(cases.names))


def _notes(table: _Table, path: Path) -> list[str]:
    notes = [] if table.excluded is None else table.excluded.in_words(path, table.id)
    n_ids, n_rows, is_exact = table.repeated
    if n_ids:
        notes.append(
            f"{'' if is_exact else 'At least '}{n_ids:,} ids in {table.id!r} occur more than once, "
            f"in {n_rows:,} further rows. Each takes one place of the list, with its highest score."
        )
    return notes


def _most_value(
    model: TableModel, table: _Table, count: Any, work: WorkColumns, notes: list[str]
) -> Rows:
    """Return the places of most expected value, the highest value per unit of effort first."""
    p = _probabilities(model, table.cases.X)
    if p is None:
        raise TableError(
            "value=..., effort=... and worth=... need probabilities, and this model gives none. "
            "Fit one whose learner has them."
        )
    values, efforts = (
        None if column is None else column[table.cases.numbers]
        for column in (table.work.get("value"), table.work.get("effort"))
    )
    found = work.choose(np.asarray(p, dtype=np.float64), values, efforts, count)
    notes.append(work.in_words(found))
    worth = expected_worth(p, values=values, efforts=efforts)
    chosen = np.flatnonzero(found.flagged)
    return chosen[np.argsort(-worth[chosen], kind="stable")]


def _cut(
    table: _Table,
    count: int | Mapping[str, int],
    segment: str | None,
    path: Path,
    notes: list[str],
) -> Rows:
    n_cases = len(table.cases)
    if not isinstance(count, Mapping):
        if n_cases < count:
            notes.append(
                f"The list is shorter than {count:,}: {path} has only {n_cases:,} cases to list."
            )
        return np.arange(min(count, n_cases))
    assert table.cases.segments is not None
    _check_segments(count, table.segments, segment, path, notes)
    places = [np.flatnonzero(table.cases.segments == name)[:k] for name, k in count.items()]
    for (name, most), found in zip(count.items(), places, strict=True):
        if found.size < most:
            notes.append(
                f"{name!r} has only {found.size:,} cases to list, fewer than {most:,}; all are "
                "listed."
            )
    return np.sort(np.concatenate([np.zeros(0, np.intp), *places]))


def _check_segments(
    count: Mapping[str, int],
    segments: Counter[str],
    segment: str | None,
    path: Path,
    notes: list[str],
) -> None:
    present = sorted(segments)
    unknown = [name for name in count if name not in present]
    if unknown:
        shown = ", ".join(repr(name) for name in present[:_SHOWN])
        raise TableError(
            f"count=... names {unknown[0]!r}, which does not occur in the column {segment!r} of "
            f"{path}. Its values are {shown}{', ...' if len(present) > _SHOWN else ''}."
        )
    unnamed = [name for name in present if name not in count]
    if unnamed:
        n_rows = sum(segments[name] for name in unnamed)
        shown = ", ".join(repr(name) for name in unnamed[:_SHOWN])
        notes.append(
            f"{n_rows:,} rows with {segment!r} = {shown} get no place: count=... does not name "
            "them."
        )


def _note_copies(listed: Cases, notes: list[str]) -> None:
    if listed.names is not None or not len(listed):
        return
    copies = int(listed.X.duplicated().sum())
    if copies:
        notes.append(
            f"{copies:,} rows of the list are copies of other rows in all columns that the model "
            "uses, and take places of their own. If a column names the case, use id=..."
        )


class _Drawn(NamedTuple):
    """The places of a list, which of them are probes, and how likely each was selected."""

    rows: Rows
    is_probe: Mask
    inclusion: NDArray[np.floating]


def _with_probes(model: TableModel, cases: Cases, chosen: Rows, probe: Fraction) -> _Drawn:
    """Give the last places to rows below the cut; they stand where their scores put them."""
    seed = probe_seed(check_seed(model.classifier.random_state))
    keys = tie_keys_of(cases.X, cases.names, seed=seed)
    codes = None
    if cases.segments is not None:
        codes = np.unique(cases.segments.astype(str), return_inverse=True)[1]
    places = -np.arange(len(cases), dtype=np.float64)  # the order is known, and has no ties
    drawn = draw_probes(
        np.isin(np.arange(len(cases)), chosen),
        places,
        lambda rows: np.zeros(rows.size),
        keys,
        probe,
        groups=codes,
    )
    listed = np.flatnonzero(drawn.flagged)
    return _Drawn(listed, drawn.is_probe[listed], drawn.probabilities[listed])


# --- what is said about each ---


def _described(
    model: TableModel, listed: Cases, drawn: _Drawn, on_progress: Progress
) -> list[SelectedRow]:
    if not len(listed):
        return []
    probabilities = _probabilities(model, listed.X)
    reasons = reasons_for(model, listed.X, listed.scores, on_progress=on_progress)
    kept = {name: listed.kept[name].tolist() for name in listed.kept.columns}
    return [
        SelectedRow(
            rank=place + 1,
            row=row + 1,
            id=None if listed.names is None else str(listed.names[place]),
            score=float(listed.scores[place]),
            probability=None if probabilities is None else float(probabilities[place]),
            reasons=reasons[place],
            kept={name: values[place] for name, values in kept.items()},
            selected_by=PROBE if drawn.is_probe[place] else BY_SCORE,
            inclusion=float(drawn.inclusion[place]),
        )
        for place, row in enumerate(listed.numbers.tolist())
    ]


def _probabilities(model: TableModel, X: Any) -> NDArray[np.float64] | None:
    if not hasattr(model.classifier, "predict_proba"):
        return None
    rare = int(np.flatnonzero(model.classifier.classes_)[0])  # the labels are False and True
    return model.classifier.predict_proba(X)[:, rare]
