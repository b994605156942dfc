"""A ranked list of exactly so many rows, with reasons for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask, Rows
from .._core.extras import load_extra
from .._core.hashing import tie_keys_of
from .._core.probing import BY_SCORE, PROBE, check_probe, draw_probes, probe_seed
from .._core.validation import check_seed
from ..exceptions import TableError
from ..worth import expected_worth
from ._columns import MISSING_CATEGORY
from ._lists import CarriedColumns, as_texts, read_exclusions
from ._model import TableModel
from ._reading import Reading
from ._schema import TableRows
from ._source import Source
from ._watch import Finding, Watch, date_text
from ._work import WorkColumns

pd = load_extra("pandas", needed_for="Reading tables")

__all__ = ["Reason", "SelectedRow", "Selection", "reasons_for", "select_rows"]

_MOST_REASONS = 3
_SLIGHTEST = 0.01  # of the largest effect in the row; a smaller effect is not a reason
_SHOWN = 8
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

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Reason:
    """A column that raised a score, its value, and how far the usual value would lower it."""

    column: str
    value: Any
    effect: float

    @property
    def in_words(self) -> str:
        """The column, its value, and the effect, such as ``amount = 250 (+0.31)``."""
        return f"{self.column} = {_in_words(self.value)} (+{self.effect:.2g})"


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
    reading: Reading | None = None,
    work: WorkColumns | None = None,
    on_progress: Progress | None = None,
) -> Selection:
    """Return the `count` most suspicious rows of a file, the most suspicious first.

    There are exactly `count` rows, or all rows if there are fewer. Rows with equal scores are
    chosen and ordered by a hash of their ids (or of their own values if there are no ids), never by
    their position. An id that occurs more than once takes one place, with its highest score.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : Path
        A table with the columns that the model needs; it is held in memory.
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
    reading : Reading, default=None
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
    with model.schema.open(path, reading=reading) as source:
        table = _read(
            model, source, segment=segment, keep=keep, id=id, work=work, on_progress=on_progress
        )
    notes: list[str] = []
    allowed = _not_excluded(table, exclude, path, notes)
    order = model.rank(table.rows.X, table.rows.ids, table.scores)
    order = _once_each(order[allowed[order]], table, notes)
    if work.is_given:
        _refuse_probes(probe)
        chosen = _most_value(model, table, order, count, work, notes)
        drawn = _Drawn(chosen, np.zeros(chosen.size, dtype=bool), np.ones(chosen.size))
    else:
        assert count is not None
        chosen = _cut(order, count, table, segment, path, notes)
        drawn = _with_probes(model, table, order, chosen, check_probe(probe))
    _note_copies(table, drawn.rows, notes)
    return Selection(
        _described(model, table, drawn, on_progress),
        table.id,
        table.kept_types,
        len(table.rows.X),
        notes,
        table.findings,
        probe > 0,
    )


def _check_count(
    count: int | Mapping[str, int] | None, segment: str | None, work: WorkColumns
) -> None:
    if (count is None) != (work.budget is not None):
        raise TableError(
            "Say how long the list may be: --count 50, or --budget 480 with --effort, but not both."
        )
    if work.is_given and segment is not None:
        raise TableError(
            "--segment with --value, --effort or --worth is not offered here. Use "
            "CapacityClassifier.select(..., segments=, values=, efforts=), or one table for each."
        )
    if count is None:
        return
    if isinstance(count, Mapping) == (segment is None):
        raise TableError(
            "--segment and a count for each segment belong together, as in: "
            "--segment team --count north=20,south=30"
        )
    counts = list(count.values()) if isinstance(count, Mapping) else [count]
    if min(counts, default=0) < 0:
        raise TableError(f"--count must not be negative; got {min(counts)}.")


def _refuse_probes(probe: float) -> None:
    if probe:
        raise TableError("--probe with --value, --effort or --worth is not offered.")


# --- reading ---


@dataclass(frozen=True)
class _Table:
    """All rows of a table with their scores, the ids that name them, and columns to carry along."""

    rows: TableRows
    scores: NDArray[np.float64]
    id: str | None
    names: NDArray[Any] | None
    segments: NDArray[Any] | None
    kept: dict[str, list[Any]]
    kept_types: dict[str, str]
    findings: list[Finding]
    values: NDArray[np.float64] | None = None
    efforts: NDArray[np.float64] | None = None


def _read(
    model: TableModel,
    source: Source,
    *,
    segment: str | None,
    keep: Collection[str],
    id: str | None,
    work: WorkColumns,
    on_progress: Progress,
) -> _Table:
    watch, parts = Watch(model), []
    others = () if segment is None else (segment,)
    source.require(others, "which --segment names")
    for option, column in work.columns.items():
        source.require([column], f"which {option} names")
    others = (*others, *work.columns.values())
    weighed: list[list[Any]] = [[], []]
    carried = CarriedColumns(
        source,
        model.schema,
        keep=keep,
        id=id,
        others=others,
        taken={**LIST_COLUMNS, **PROBE_COLUMNS},
    )
    for rows in model.schema.rows(carried.source):
        on_progress(f"{watch.n_items:,} rows scored", 0, 0)
        if len(rows.X):
            watch.add(rows)
            scores = np.asarray(model.classifier.score_samples(rows.X), dtype=np.float64)
            segments = None if segment is None else as_texts(carried.column(segment), segment)
            parts.append((rows, scores, carried.ids(), segments, carried.columns()))
            for known, named in zip(weighed, (work.value, work.effort), strict=True):
                known.append(None if named is None else carried.column(named))
    if not parts:
        raise TableError(f"{source.name} has a heading, but no rows.")
    every, scores, names, segments, kept = zip(*parts, strict=True)
    ids = None if every[0].ids is None else np.concatenate([rows.ids for rows in every])
    return _Table(
        TableRows(pd.concat([rows.X for rows in every], ignore_index=True), ids),
        np.concatenate(scores),
        carried.id,
        None if names[0] is None else np.concatenate(names),
        None if segment is None else np.concatenate(segments),
        {name: [v for part in kept for v in part[name]] for name in carried.names.values()},
        carried.types(),
        watch.findings(),
        work.numbers("--value", weighed[0]),
        work.numbers("--effort", weighed[1]),
    )


# --- who gets on the list ---


def _not_excluded(table: _Table, exclude: Path | None, path: Path, notes: list[str]) -> Mask:
    if exclude is None:
        return np.ones(len(table.rows.X), dtype=bool)
    ids = read_exclusions(exclude, table.id)
    assert table.names is not None
    found = np.isin(table.names.astype(str), ids.astype(str))
    notes.append(excluded_in_words(int(found.sum()), exclude, path, table.id))
    return ~found


def excluded_in_words(n_found: int, exclude: Path, path: Path, id: str | None) -> str:
    """Say how many rows were left out, or that none of them was found."""
    if n_found:
        return f"{n_found:,} rows were left out, because {exclude} has their ids."
    return (
        f"No id of {exclude} occurs in the column {id!r} of {path}: nothing was left out. Check "
        "that both files write ids in the same way."
    )


def _once_each(order: Rows, table: _Table, notes: list[str]) -> Rows:
    """Let each id take one place, that of its highest score."""
    if table.names is None:
        return order
    repeated = pd.Series(table.names[order]).duplicated().to_numpy()
    if repeated.any():
        n_ids = len(set(table.names[order][repeated]))
        notes.append(
            f"{n_ids:,} ids in {table.id!r} occur more than once, in {int(repeated.sum()):,} "
            "further rows. Each takes one place of the list, with its highest score."
        )
    return order[~repeated]


def _most_value(
    model: TableModel,
    table: _Table,
    order: Rows,
    count: Any,
    work: WorkColumns,
    notes: list[str],
) -> Rows:
    """Return the rows of most expected value, the highest value per unit of effort first."""
    p = _probabilities(model, table.rows.X.iloc[order])
    if p is None:
        raise TableError(
            "--value, --effort and --worth need probabilities, and this model gives none. Fit one "
            "whose learner has them."
        )
    values = None if table.values is None else table.values[order]
    efforts = None if table.efforts is None else table.efforts[order]
    found = work.choose(np.asarray(p, dtype=np.float64), values, efforts, count)
    notes.append(work.in_words(found))
    worth = expected_worth(p, values=values, efforts=efforts)
    chosen = np.flatnonzero(found.flagged)
    return order[chosen[np.argsort(-worth[chosen], kind="stable")]]


def _cut(
    order: Rows,
    count: int | Mapping[str, int],
    table: _Table,
    segment: str | None,
    path: Path,
    notes: list[str],
) -> Rows:
    if not isinstance(count, Mapping):
        if order.size < count:
            notes.append(
                f"The list is shorter than {count:,}: {path} has only {order.size:,} cases to list."
            )
        return order[:count]
    assert table.segments is not None
    segments = table.segments[order]
    _check_segments(count, table.segments, segment, path, notes)
    places = [np.flatnonzero(segments == name)[:most] for name, most in count.items()]
    for (name, most), found in zip(count.items(), places, strict=True):
        if found.size < most:
            notes.append(
                f"{name!r} has only {found.size:,} cases to list, fewer than {most:,}; all are "
                "listed."
            )
    return order[np.sort(np.concatenate([np.zeros(0, np.intp), *places]))]


def _check_segments(
    count: Mapping[str, int],
    segments: NDArray[Any],
    segment: str | None,
    path: Path,
    notes: list[str],
) -> None:
    present = sorted(set(segments.tolist()))
    unknown = [name for name in count if name not in present]
    if unknown:
        shown = ", ".join(repr(name) for name in present[:_SHOWN])
        raise TableError(
            f"--count names {unknown[0]!r}, which does not occur in the column {segment!r} of "
            f"{path}. Its values are {shown}{', ...' if len(present) > _SHOWN else ''}."
        )
    unnamed = [name for name in present if name not in count]
    if unnamed:
        n_rows = int(np.isin(segments.astype(str), unnamed).sum())
        shown = ", ".join(repr(name) for name in unnamed[:_SHOWN])
        notes.append(
            f"{n_rows:,} rows with {segment!r} = {shown} get no place: --count does not name them."
        )


def _note_copies(table: _Table, chosen: Rows, notes: list[str]) -> None:
    if table.names is not None or not chosen.size:
        return
    copies = int(table.rows.X.iloc[chosen].duplicated().sum())
    if copies:
        notes.append(
            f"{copies:,} rows of the list are copies of other rows in all columns that the model "
            "uses, and take places of their own. If a column names the case, use --id."
        )


class _Drawn(NamedTuple):
    """The rows of a list, which of them are probes, and how likely each was selected."""

    rows: Rows
    is_probe: Mask
    inclusion: NDArray[np.floating]


def _with_probes(
    model: TableModel, table: _Table, order: Rows, chosen: Rows, probe: Fraction
) -> _Drawn:
    """Give the last places to rows below the cut; they stand where their scores put them."""
    seed = probe_seed(check_seed(model.classifier.random_state))
    X, ids = table.rows.X, table.names
    keys = tie_keys_of(X, ids, seed=seed)
    codes = None
    if table.segments is not None:
        codes = np.unique(table.segments[order].astype(str), return_inverse=True)[1]
    places = -np.arange(order.size, dtype=np.float64)  # the order is known, and has no ties
    drawn = draw_probes(
        np.isin(order, chosen),
        places,
        lambda rows: np.zeros(rows.size),
        lambda rows: keys(order[rows]),
        probe,
        groups=codes,
    )
    listed = drawn.flagged
    return _Drawn(order[listed], drawn.is_probe[listed], drawn.probabilities[listed])


# --- what is said about each ---


def _described(
    model: TableModel, table: _Table, drawn: _Drawn, on_progress: Progress
) -> list[SelectedRow]:
    chosen = drawn.rows
    if not chosen.size:
        return []
    X, scores = table.rows.X.iloc[chosen], table.scores[chosen]
    probabilities = _probabilities(model, X)
    reasons = reasons_for(model, X, scores, on_progress=on_progress)
    return [
        SelectedRow(
            rank=place + 1,
            row=row + 1,
            id=None if table.names is None else str(table.names[row]),
            score=float(scores[place]),
            probability=None if probabilities is None else float(probabilities[place]),
            reasons=reasons[place],
            kept={name: values[row] for name, values in table.kept.items()},
            selected_by=PROBE if drawn.is_probe[place] else BY_SCORE,
            inclusion=float(drawn.inclusion[place]),
        )
        for place, row in enumerate(chosen.tolist())
    ]


def _probabilities(model: TableModel, X: Any) -> NDArray[np.float64] | None:
    if not hasattr(model.classifier, "predict_proba"):
        return None
    rare = int(np.flatnonzero(model.classifier.classes_)[0])  # the labels are False and True
    return model.classifier.predict_proba(X)[:, rare]


def reasons_for(
    model: TableModel,
    X: Any,
    scores: NDArray[np.float64],
    *,
    on_progress: Progress | None = None,
) -> list[list[Reason]]:
    """Measure for each column how much the score falls if it takes its usual value.

    Columns are changed one at a time, in these rows only. This is cheap, works for every learner,
    and describes the model itself. Columns that can replace each other may each show a small
    effect.

    Parameters
    ----------
    model : TableModel
        Fitted.
    X : data frame
        The rows, in the form that the model takes.
    scores : ndarray
        Their scores by this model.
    on_progress : callable, default=None
        Called with the current step, the number of finished steps and the total number.

    Returns
    -------
    list of list of Reason
        For each row the columns that raised its score most, at most three.
    """
    features = model.schema.features
    effects = np.zeros((len(X), len(features)))
    for number, feature in enumerate(features):
        if on_progress is not None:
            on_progress(f"reasons: {feature.name}", number, len(features))
        changed = model.classifier.score_samples(_with_usual(X, model, feature.name))
        effects[:, number] = scores - changed
    largest = np.argsort(-effects, axis=1, kind="stable")[:, :_MOST_REASONS]
    return [
        [
            Reason(
                features[column].name,
                _shown(X.iloc[row, column], features[column].kind),
                float(effects[row, column]),
            )
            for column in largest[row].tolist()
            if effects[row, column] > _SLIGHTEST * effects[row].max(initial=0)
        ]
        for row in range(len(X))
    ]


def _with_usual(X: Any, model: TableModel, column: str) -> Any:
    return X.assign(**{column: model.reference[column]})


def _shown(value: Any, kind: str) -> Any:
    """Return a value in the form of the table: a date as a date, None if it is missing."""
    if kind == "categorical":
        return None if value == MISSING_CATEGORY else value
    if value != value:
        return None
    if kind == "date":
        return date_text(value)
    return bool(value) if kind == "boolean" else float(value)


def _in_words(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
