"""Which cases of a table get the places of a list: how they are ranked, and how long it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core import probing
from .._core.arrays import Rows
from .._core.arrow import pd
from .._core.formatting import counted, number, stated_percent
from .._core.ids import tie_keys_of
from .._core.ranking import lift
from .._core.validation import check_seed
from ..capacity import Capacity, exact
from ..exceptions import TableError
from ..thresholds import Selection as ChosenList
from ..thresholds import count_invitations, select
from ..thresholds.lists import check_one_way
from ..thresholds.precision import CommonScores
from ..worth import Worth, expected_worth
from ._source import listed as listed_names
from .cases import CaseReader
from .columns import RepeatedIds
from .schema import TableRows, WorkColumns

#: Rows that are held besides those of the list, until the last ones are dropped.
_SPARE = 1 << 16


class Ranking:
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
class ListLength:
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

    def places(self, ranking: Ranking) -> tuple[Rows, dict[str, Any]]:
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
        if self.probe:
            return _with_probes(ranking, places, self.probe)
        tiers = ["act"] * acted.size + ["review"] * places.size
        return np.concatenate([acted, places]), {} if self.act is None else {"tier": tiers}

    def _most_value(self, ranking: Ranking) -> tuple[Rows, dict[str, Any]]:
        """Return the places of most expected value, the highest value per unit of effort first."""
        cases, p = ranking.cases, ranking.model.probabilities(ranking.cases.X)
        limit = Capacity.count(p.size if self.count is None else self.count)
        if self.work.budget is not None:
            limit = Capacity.effort(self.work.budget)
        weights: Any = {"values": cases.values, "efforts": cases.efforts}
        found = select(p, limit, **weights, worth=self.work.worth, return_details=True)
        order = np.argsort(-expected_worth(p, **weights), kind="stable")
        listed, columns = order[found.flagged[order]], dict[str, Any]()
        if probing.check_probe(self.probe):
            losses = None if cases.values is None else probing.expected_losses(p, cases.values)
            listed, columns = _with_probes(ranking, listed, self.probe, order, losses)
            gain = float(expected_worth(p, values=cases.values, efforts=None)[listed].sum())
            found = replace(found, gain=gain, gap=found.gain + found.gap - gain)
        ranking.notes.append(self._about_value(found))
        return listed, columns

    def _about_value(self, found: ChosenList) -> str:
        """Say what a list uses and brings, and why it ends."""
        work = self.work
        unit = "cases" if work.budget is None else work.unit
        text = (
            f"The list uses {number(found.used)} of {number(found.allowed, 12)} {unit}; its "
            f"expected value is {number(found.gain)}"
        )
        text += "" if found.gap == 0 else f" (the best list has at most {number(found.gap)} more)"
        if found.reason == "not worth more":
            return f"{text}. The rest stays empty: no other case reaches worth={work.worth:g}."
        one = "case" if work.budget is None else work.unit.removesuffix("s")
        more = f" One more {one} would bring {number(found.price)}." if found.price else ""
        return f"{text}.{more}"

    def _invited(self, turnout: Any) -> int:
        """Return how many cases to invite; everyone comes unless something is said."""
        name = {tuple: "history", np.ndarray: "chances"}.get(type(turnout), "rate")
        said: dict[str, Any] = {name: 1 if turnout is None else turnout}
        return count_invitations(self.count, confidence=self.confidence, **said)

    def _cut(self, ranking: Ranking, start: int) -> Rows:
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

    def _check_segments(self, ranking: Ranking) -> None:
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

    def _precise(self, ranking: Ranking, places: Rows, precision: float) -> Rows:
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
    ranking: Ranking, chosen: Rows, probe: float, order: Any = None, losses: Any = None
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
