"""Follow-up bursts: a rare probe opens a search around it, paid for by what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats, Mask, Rows
from .._core.ids import values_of
from .._core.probing import PROBE
from .._core.validation import check_count, check_ids, check_number, check_scores, check_seed
from ..capacity import Capacity, check_capacity
from ..thresholds import select
from ._rankers import RANKERS, Surroundings

__all__ = ["BURST", "BurstSelection", "FollowUpBurst"]

#: The reason of cases that a burst has chosen.
BURST = "burst"
_FORGET = 0.9  # weight of earlier periods when slots compete
_TRIAL = 0.04  # of the slots, while a burst has not had a fair trial
_FAIR_TRIAL = 20  # reviewed cases of a burst
_LAST_SLOTS = 0.05  # share of the slots that says how good the last ones of the model are
_MOST_BURSTS = 8
_MOST_KEPT = 300  # hits, and misses, that a burst remembers
_MOST_PENDING = 20_000
# Before anything is known: hits and misses of the last slots of the model, and of a ranker.
_LAST_PRIOR = (1.0, 9.0)
_RANKER_PRIOR = (1.0, 2.0)
_FORMAT = 2


@dataclass(frozen=True)
class BurstSelection:
    """A list with reasons.

    Attributes
    ----------
    flagged, reasons, probabilities : ndarrays
        As of :class:`~shortlist.thresholds.Selection`; the reason may also be ``"burst"``.
    opened_by : ndarray of object
        The id of the hit that opened the burst, for cases of bursts; otherwise None.
    """

    flagged: Mask
    reasons: NDArray[np.str_]
    probabilities: Floats
    opened_by: NDArray[Any]


@dataclass
class _Burst:
    """One search: the hit that opened it, what it found, and a record for each ranker."""

    opened_by: Any
    hits: list[list[float]]
    misses: list[list[float]] = field(default_factory=list)
    wins: list[float] = field(default_factory=lambda: [0.0] * len(RANKERS))
    losses: list[float] = field(default_factory=lambda: [0.0] * len(RANKERS))
    n_tried: int = 0

    @property
    def is_on_trial(self) -> bool:
        """Whether too few of its cases have been reviewed to judge it."""
        return self.n_tried < _FAIR_TRIAL

    def note(self, is_rare: bool, ranker: int, row: list[float]) -> None:
        """Take in the outcome of a case that a ranker has chosen."""
        self.n_tried += 1
        (self.wins if is_rare else self.losses)[ranker] += 1
        rows = self.hits if is_rare else self.misses
        rows.append(row)
        del rows[:-_MOST_KEPT]

    def pays(self, rate: float) -> bool:
        """Whether it finds at least half as much as the last slots of the model."""
        return sum(self.wins) > rate / 2 * (sum(self.wins) + sum(self.losses))

    def fade(self) -> None:
        """Forget earlier periods slowly."""
        self.wins = [_FORGET * count for count in self.wins]
        self.losses = [_FORGET * count for count in self.losses]


class FollowUpBurst:
    """Look for more cases like a rare one that was found by chance. *Experimental.*

    A rare probe is a case that the model scored low. It opens a burst: two rankers order the other
    cases by their likeness to it, along a direction and by a ratio of densities. Slots at the end
    of the list then compete. For each, the rate of hits of every ranker and of the last slots of
    the model is drawn from what is known about it (Thompson sampling), and the highest gets the
    slot. Bursts therefore grow while they find more than the last slots of the model, and shrink
    otherwise. A new burst gets a trial, one slot in 25. Together they at most double from period to
    period while they pay, halve while they do not, and have at most the share `most`.

    Parameters
    ----------
    most : float, default=0.5
        The largest share of the slots that bursts may have.
    probe : float, default=0.03
        Share of the slots for probes, which open bursts.
    random_state : int, default=0
        Seed of the draws, and key of the hash.

    Attributes
    ----------
    n_open : int
        Number of open bursts.

    Examples
    --------
    >>> import numpy as np
    >>> from shortlist import Capacity
    >>> from shortlist.feedback import FollowUpBurst
    >>> rng = np.random.default_rng(0)
    >>> burst = FollowUpBurst(probe=0.5)
    >>> X = rng.normal(size=(1_000, 3))
    >>> X[:200] += 3  # a group that the model knows nothing about
    >>> for day in range(5):
    ...     ids = [f"{day}/{i}" for i in range(1_000)]
    ...     picked = burst.select(X, rng.normal(size=1_000), Capacity.count(40), ids=ids)
    ...     found = np.flatnonzero(picked.flagged)
    ...     burst.learn([ids[i] for i in found], found < 200)
    >>> int(picked.flagged.sum()), bool((picked.reasons == "burst").any())
    (40, True)
    """

    def __init__(self, *, most: float = 0.5, probe: float = 0.03, random_state: Any = 0) -> None:
        if not 0 <= check_number("most", most) <= 1:  # type: ignore[operator]
            raise ValueError(f"most is a share of the slots, from 0 to 1; got {most!r}.")
        self.most, self.probe = float(most), probe
        self._seed = check_seed(random_state)
        self._n_periods = 0
        self._bursts: list[_Burst] = []
        self._marginal = list(_LAST_PRIOR)  # hits and misses of the last slots of the model
        self._room = 0  # slots that bursts may have in this period, beyond a trial
        self._results = [0, 0]  # hits and misses of bursts since the last list
        self._pending: dict[Any, tuple[str, Any, int, list[float]]] = {}

    @property
    def n_open(self) -> int:
        """Number of open bursts."""
        return len(self._bursts)

    def select(
        self, X: ArrayLike, scores: ArrayLike, capacity: Capacity, *, ids: ArrayLike
    ) -> BurstSelection:
        """Choose the cases of a period: by score, as probes, and by open bursts.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            The cases as numbers, without gaps. Bursts compare cases by these.
        scores : array-like of shape (n_items,)
            The scores of the model.
        capacity : Capacity
            A count or a fraction; the list is never longer.
        ids : array-like of shape (n_items,)
            Identifiers, by which outcomes come back.

        Returns
        -------
        BurstSelection
            As of :func:`~shortlist.select` with `return_details`; the reason of a burst's case is
            ``"burst"``, and its probability 1.
        """
        table, scores = _check_table(X), check_scores(scores)
        names: Any = check_ids(ids, scores.size)
        if len(table) != scores.size:
            raise ValueError(f"X has {len(table)} rows, and there are {scores.size} scores.")
        picked = select(
            scores,
            check_capacity(capacity),
            ids=names,
            random_state=self._seed,
            probe=self.probe,
            return_details=True,
        )
        flagged, reasons = picked.flagged.copy(), picked.reasons.astype(object)
        probabilities, opened_by = picked.probabilities.copy(), np.full(scores.size, None, object)
        listed = np.flatnonzero(reasons == "score")
        last = listed[np.argsort(scores[listed], kind="stable")]  # the lowest first
        self._n_periods += 1
        self._begin_period()
        owners = self._compete(int(flagged.sum()), last.size)
        chosen = self._choose(table, ~flagged, owners)
        replaced = last[: len(chosen)]
        flagged[replaced], reasons[replaced], probabilities[replaced] = False, "not selected", 0.0
        for row, (burst, ranker) in chosen.items():
            flagged[row], reasons[row], probabilities[row] = True, BURST, 1.0
            opened_by[row] = self._bursts[burst].opened_by
            self._expect(names[row], BURST, opened_by[row], ranker, table[row])
        for row in np.flatnonzero(reasons == PROBE).tolist():
            self._expect(names[row], PROBE, None, -1, table[row])
        kept = last[len(chosen) :]
        for row in kept[: max(len(chosen), round(_LAST_SLOTS * flagged.sum()), 1)].tolist():
            self._expect(names[row], "score", None, -1, table[row])
        return BurstSelection(flagged, reasons.astype(str), probabilities, opened_by)

    def _expect(self, id: Any, reason: str, opened_by: Any, ranker: int, row: Floats) -> None:
        self._pending[_plain(id)] = (reason, _plain(opened_by), ranker, row.tolist())
        while len(self._pending) > _MOST_PENDING:  # the oldest first
            del self._pending[next(iter(self._pending))]

    def _compete(self, n_slots: int, n_by_score: int) -> list[tuple[int, int]]:
        """Return the burst and ranker that each slot goes to; slots of the model are left out."""
        on_trial = any(burst.is_on_trial for burst in self._bursts)
        trial = max(1, round(_TRIAL * n_slots)) if on_trial else 0
        room = min(int(self.most * n_slots), n_by_score, max(self._room, trial))
        if not self._bursts or room <= 0:
            return []
        rng = np.random.default_rng([self._seed, self._n_periods])
        arms = [(b, r) for b in range(len(self._bursts)) for r in range(len(RANKERS))]
        rates = [rng.beta(self._marginal[0], self._marginal[1], size=room)]
        for burst, ranker in arms:
            own = self._bursts[burst]
            wins, losses = (
                own.wins[ranker] + _RANKER_PRIOR[0],
                own.losses[ranker] + _RANKER_PRIOR[1],
            )
            rates.append(rng.beta(wins, losses, size=room))
        winners = np.argmax(rates, axis=0)
        return [arms[winner - 1] for winner in winners if winner > 0]

    def _choose(
        self, table: Floats, is_free: Mask, owners: list[tuple[int, int]]
    ) -> dict[int, tuple[int, int]]:
        """Give each slot the case that its ranker likes best among those left."""
        free = np.flatnonzero(is_free)
        if not owners or not free.size:
            return {}
        around = Surroundings(table, np.random.default_rng([self._seed, self._n_periods, 1]))
        chosen: dict[int, tuple[int, int]] = {}
        orders: dict[tuple[int, int], Any] = {}
        for owner in owners:
            if owner not in orders:
                orders[owner] = iter(self._order(around, free, owner).tolist())
            row = next((row for row in orders[owner] if row not in chosen), None)
            if row is not None:
                chosen[row] = owner
        return chosen

    def _order(self, around: Surroundings, free: Rows, owner: tuple[int, int]) -> Rows:
        burst, ranker = self._bursts[owner[0]], RANKERS[owner[1]]
        hits = np.array(burst.hits)
        return around.rank(ranker, free, hits, np.array(burst.misses).reshape(-1, hits.shape[1]))

    def learn(self, ids: ArrayLike, outcomes: ArrayLike) -> None:
        """Take in outcomes; unknown ones may be left out, and come later.

        Parameters
        ----------
        ids : array-like of shape (n_items,)
            Cases of earlier lists.
        outcomes : array-like of bool, shape (n_items,)
            Whether each was rare.
        """
        names: list[Any] = [_plain(id) for id in values_of(ids)]
        rare: list[Any] = values_of(outcomes).tolist()
        if len(names) != len(rare):
            raise ValueError(f"There are {len(names)} ids, and {len(rare)} outcomes.")
        for id, is_rare in zip(names, rare, strict=True):
            if is_rare is not None and is_rare == is_rare and id in self._pending:
                self._note(id, bool(is_rare), *self._pending.pop(id))

    def _note(
        self, id: Any, is_rare: bool, reason: str, opened_by: Any, ranker: int, row: list[float]
    ) -> None:
        if reason == PROBE and is_rare:
            self._bursts = [*self._bursts, _Burst(id, [row])][-_MOST_BURSTS:]
        elif reason == BURST:
            for own in self._bursts:
                if own.opened_by == opened_by:  # unless it has been closed
                    self._results[0 if is_rare else 1] += 1
                    own.note(is_rare, ranker, row)
        elif reason != PROBE:
            self._marginal[0 if is_rare else 1] += 1

    def _begin_period(self) -> None:
        """Set the room of bursts by what they found, forget slowly, and close those that fail."""
        self._marginal = [
            prior + _FORGET * (count - prior)
            for prior, count in zip(_LAST_PRIOR, self._marginal, strict=True)
        ]
        rate, reviewed = self._marginal[0] / sum(self._marginal), sum(self._results)
        if reviewed:
            pays = self._results[0] > rate * reviewed
            self._room = 2 * reviewed if pays else reviewed // 2
        self._results = [0, 0]
        self._bursts = [
            burst
            for burst in self._bursts
            if burst.is_on_trial or (self._room > 0 and burst.pays(rate))
        ]
        for burst in self._bursts:
            burst.fade()

    # --- saved states ---

    def to_json(self) -> dict[str, Any]:
        """Return everything that was learned, as plain lists and numbers."""
        return {
            "format": _FORMAT,
            "most": self.most,
            "probe": float(self.probe),
            "seed": self._seed,
            "n_periods": self._n_periods,
            "marginal": self._marginal,
            "room": self._room,
            "results": self._results,
            "bursts": [vars(burst) for burst in self._bursts],
            "pending": [[id, *rest] for id, rest in self._pending.items()],
        }

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` returned."""
        if state.get("format") != _FORMAT:
            raise ValueError(f"This state has format {state.get('format')!r}; needed: {_FORMAT}.")
        made = cls(most=state["most"], probe=state["probe"], random_state=state["seed"])
        made._n_periods = check_count("n_periods", state["n_periods"], at_least=0)
        made._marginal, made._results = list(state["marginal"]), list(state["results"])
        made._room = int(state["room"])
        made._bursts = [_Burst(**burst) for burst in state["bursts"]]
        made._pending = {id: tuple(rest) for id, *rest in state["pending"]}
        return made


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _check_table(X: ArrayLike) -> Floats:
    table = np.asarray(X, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(
            "Bursts compare cases by numbers: X must be a table of finite numbers. Encode text, "
            "and fill gaps."
        )
    return table
