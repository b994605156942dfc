"""The cases of a report: read, scored, decided and ranked; and cut at every number of flags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Doubles, Mask, Rows
from .._core.binomial import proportion_interval
from ..capacity import Capacity
from ..exceptions import TableError
from ..tables import ReadOptions, TableModel
from ..tables.fingerprints import SeenRows
from ..tables.measure import check_counts
from ..tables.model import labels_of
from ..tables.money import fill_in_order
from ..tables.rules import curve_of, interval_of_flags
from ..tables.schema import TableRows, TableSchema
from ._kept import KeptTable

__all__ = [
    "NEAR",
    "Cases",
    "cut_table",
    "neighbours",
    "read_cases",
    "spread_cuts",
]

#: Number of cases that are named on either side of a cut.
NEAR = 8
# Up to this number of flags, every cut can be chosen; with more flags, only some of them.
_MOST_CUTS = 1_000
_SPREAD_CUTS = 400
_REACH = 4  # times the capacity
_FEWEST = 20
_LONGEST_ID = 80


@dataclass(frozen=True)
class Cases:
    """Cases with their scores and flags; all arrays are in the order of the file.

    Attributes
    ----------
    X : data frame
        Features.
    ids : ndarray or None
        Ids of the cases.
    target : str or None
        The column with the labels; None if there are none.
    is_rare : ndarray of bool or None
        Labels, if they are known.
    scores, flagged : ndarray
        Scores, and the decisions of the calibrated rule.
    decided_scores : ndarray
        The scores that the rule compared with its thresholds. They differ from `scores` where one
        model of several decides about a case, and `scores` is the mean of all of them.
    order : ndarray of int
        Positions, the most suspicious first.
    seen : SeenRows or None
        How many of the cases trained or calibrated the model; None if that is not known.
    segments : ndarray of str or None
        The segment of each case, if they were asked for.
    days : ndarray or None
        The moment of each case in days since 1970, if it was asked for; NaN where it is empty.
    values, efforts : ndarray or None
        What each case is worth if it is rare, and how much work it takes, if that is known.
    """

    X: Any
    ids: NDArray[Any] | None
    target: str | None
    is_rare: Mask | None
    scores: NDArray[np.float64]
    flagged: Mask
    decided_scores: NDArray[np.float64]
    order: Rows
    seen: SeenRows | None = None
    segments: NDArray[Any] | None = None
    days: NDArray[np.float64] | None = None
    values: Doubles | None = None
    efforts: Doubles | None = None

    @property
    def n_items(self) -> int:
        """Number of cases."""
        return self.scores.size

    @property
    def n_flagged(self) -> int:
        """Number of cases that the rule flagged."""
        return int(self.flagged.sum())

    @property
    def rare(self) -> Mask:
        """The labels; only for cases that have them."""
        assert self.is_rare is not None
        return self.is_rare

    @property
    def flags_the_first(self) -> bool:
        """Whether the rule flagged the first cases of the ranking, as a list would."""
        return bool(np.array_equal(self.first(self.n_flagged), self.flagged))

    def first(self, count: int) -> Mask:
        """Return a mask of the `count` most suspicious cases."""
        mask = np.zeros(self.n_items, dtype=bool)
        mask[self.order[:count]] = True
        return mask

    def limit(self, model: TableModel) -> tuple[Capacity, Doubles | None]:
        """Return what flags are counted against, and the work of each case if that is work."""
        return model.limit_for(self.efforts)

    def fitting(self, model: TableModel, room: int) -> Mask:
        """Return a mask of a list: the most suspicious cases that the capacity allows."""
        capacity, efforts = self.limit(model)
        if efforts is None:
            return self.first(room)
        ranks = np.empty(self.n_items)
        ranks[self.order] = np.arange(self.n_items, 0, -1)
        return fill_in_order(ranks, efforts, float(capacity.max_effort(self.n_items)))

    def is_over(self, model: TableModel, flagged: Mask, room: int) -> bool:
        """Return whether flags are more than the capacity allows."""
        capacity, efforts = self.limit(model)
        if efforts is None:
            return int(flagged.sum()) > room
        return float(efforts[flagged].sum()) > float(capacity.max_effort(self.n_items))

    def room(self, model: TableModel, prevalence: Any, own: Mask | None = None) -> int:
        """Return how many cases, or cases among some, the capacity allows to follow up.

        A budget of work allows the highest of the ranking, as many as it pays for.
        """
        capacity, efforts = self.limit(model)
        n_items = self.n_items if own is None else int(own.sum())
        if efforts is None:
            return capacity.max_flags(n_items, prevalence)
        order = self.order if own is None else self.order[own[self.order]]
        work = np.cumsum(efforts[order])
        return int(np.searchsorted(work, float(capacity.max_effort(n_items)), side="right"))

    def name(self, place: int) -> str:
        """Return the id of a case, or its row below the heading; long ids are cut short."""
        if self.ids is None:
            return f"row {place + 1}"
        name = str(self.ids[place])
        return name if len(name) <= _LONGEST_ID else name[: _LONGEST_ID - 1] + "…"


# --- reading ---


def read_cases(
    model: TableModel,
    path: Path,
    target: str | None = None,
    *,
    labels: bool = True,
    reading: ReadOptions | None = None,
    segment: str | None = None,
    time: str | None = None,
    worth: float | None = None,
) -> Cases:
    """Read, score, decide and rank all rows of a table.

    Without `target`, the target of the fit has the labels, if the table has it and it is not empty
    in every row. With `worth`, flags of less expected value per unit of effort are left out.
    """
    schema = model.schema
    with schema.open(path, reading=reading) as source:
        kept = KeptTable(source, schema, target, labels=labels, others=(segment, time))
        rows = schema.read(kept.source, target=kept.target)
    if kept.target is not None:
        _check_both_classes(rows, schema, kept.target)
    decided = model.decide(rows, worth=worth)
    decided_scores = scores = np.asarray(decided.scores, dtype=np.float64)
    if len(model.classifier.calibrations_) > 1:
        scores = np.asarray(model.list_scores(rows), dtype=np.float64)
    return Cases(
        X=rows.X,
        ids=rows.ids,
        target=kept.target,
        is_rare=rows.is_rare,
        scores=scores,
        flagged=decided.flagged,
        decided_scores=decided_scores,
        order=model.rank(rows.X, rows.ids, scores),
        seen=model.seen_in(rows),
        segments=None if segment is None else kept.texts(segment),
        days=None if time is None else kept.days(time, rows),
        values=rows.values,
        efforts=rows.efforts,
    )


def _check_both_classes(rows: TableRows, schema: TableSchema, target: str) -> None:
    try:
        check_counts(int(labels_of(rows).sum()), len(rows.X), schema, target)
    except TableError as error:
        raise TableError(f"{error} Or make the report without labels: --no-labels.") from None


# --- cuts ---


def spread_cuts(n_items: int, *, room: int, n_flagged: int) -> Rows:
    """Return the numbers of flags to choose from: up to four times the room, or more."""
    most = min(n_items, max(_REACH * room, n_flagged + n_flagged // 4, _FEWEST))
    if most <= _MOST_CUTS:
        return np.arange(most + 1)
    near = np.arange(-NEAR, NEAR + 1)
    spread = np.linspace(0, most, _SPREAD_CUTS).round().astype(np.intp)
    every = np.concatenate([spread, room + near, n_flagged + near])
    return np.unique(every[(every >= 0) & (every <= most)])


def cut_table(cases: Cases, cuts: Rows, capacity: Capacity) -> dict[str, list[Any]]:
    """Measure each cut; return columns."""
    curve = curve_of(cases.rare, cases.order)
    places, scores = cuts.tolist(), cases.scores[cases.order]
    detection = [interval_of_flags(curve, cut, capacity) for cut in places]
    precision = [proportion_interval(int(curve.n_found[cut]), cut) for cut in places]
    return {
        "flags": places,
        "found": curve.n_found[cuts].tolist(),
        "detection": curve.detection[cuts].tolist(),
        "detection_low": [interval.low for interval in detection],
        "detection_high": [interval.high for interval in detection],
        "precision": [None if cut == 0 else curve.precision[cut].item() for cut in places],
        "precision_low": [interval.low for interval in precision],
        "precision_high": [interval.high for interval in precision],
        "one_more_finds": curve.marginal[cuts].tolist(),
        "lowest_score": [None if cut == 0 else scores[cut - 1].item() for cut in places],
    }


def neighbours(cases: Cases, cuts: Rows) -> dict[str, list[Any]]:
    """List the cases on either side of each cut; return columns, by rank from 1."""
    near = (cuts[:, np.newaxis] + np.arange(-NEAR, NEAR)).ravel()
    ranks = np.unique(near[(near >= 0) & (near < cases.order.size)])
    chosen = cases.order[ranks]
    return {
        "rank": (ranks + 1).tolist(),
        "name": [cases.name(place) for place in chosen.tolist()],
        "score": cases.scores[chosen].tolist(),
        "rare": cases.rare[chosen].tolist(),
    }
