"""Follow-up bursts: a rare probe opens a search around it, paid for by what it finds.

A rare probe is a case that the model scored low. It opens a burst: two rankers order the other
cases by their likeness to it, along a direction and by a ratio of densities. Slots at the end of
the list then compete by Thompson sampling with the last slots of the model. A new burst gets a
trial of one slot in 25. Together they at most double from period to period while they pay, halve
while they do not, and have at most half of the slots. `loop.csv` shows what this gains, and why it
is not in the package.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist

from shortlist import select

PROBE = 0.03  # share of the slots
MOST = 0.5
FORGET = 0.9  # weight of earlier periods when slots compete
TRIAL, FAIR_TRIAL = 0.04, 20  # share of the slots, until so many cases of a burst were reviewed
LAST_SLOTS = 0.05  # share of the slots that says how good the last ones of the model are
MOST_BURSTS, MOST_KEPT = 8, 300
LAST_PRIOR, RANKER_PRIOR = (1.0, 9.0), (1.0, 2.0)  # hits and misses
RANKERS = ("direction", "density")
ORDINARY, NEAREST, N_NEIGHBORS = 1_000, 800, 10
SHRINKAGE, TRUSTED, TINY = 0.1, 20, 1e-9


class Surroundings:
    """The cases of a period, with the centre, spread and density of ordinary ones."""

    def __init__(self, X, rng):
        sample = rng.choice(len(X), min(len(X), ORDINARY), replace=False)
        self.center = X[sample].mean(axis=0)
        self.scale = np.maximum(X[sample].std(axis=0), TINY)
        self.cases = self.standard(X)
        self.ordinary = self.cases[sample]
        spread = np.cov(self.ordinary, rowvar=False, ddof=0)
        self.covariance = (1 - SHRINKAGE) * spread + SHRINKAGE * np.eye(X.shape[1])

    def standard(self, X):
        """Return cases in units of the spread of ordinary ones."""
        return (np.asarray(X).reshape(-1, self.center.size) - self.center) / self.scale

    def rank(self, ranker, free, hits, misses):
        """Return free cases, those most like the hits first."""
        look = self.along if ranker == "direction" else self.by_density
        return free[look(self.cases[free], self.standard(hits), self.standard(misses))]

    def along(self, z, hits, misses):
        """Order along the direction from ordinary cases, and from misses, to hits."""
        toward = hits.mean(axis=0)
        if len(misses):
            toward = toward - len(misses) / (len(misses) + TRUSTED) * misses.mean(axis=0)
        return np.argsort(-(z @ np.linalg.solve(self.covariance, toward)), kind="stable")

    def by_density(self, z, hits, misses):
        """Order the nearest cases by how much closer they are to hits than to anything else."""
        distances = cdist(z, hits).min(axis=1)
        nearest = np.argsort(distances, kind="stable")[:NEAREST]
        others = cdist(z[nearest], self.ordinary)
        away = np.partition(others, N_NEIGHBORS - 1, axis=1)[:, N_NEIGHBORS - 1]
        if len(misses):
            away = np.minimum(away, cdist(z[nearest], misses).min(axis=1))
        ratios = (away + TINY) / (distances[nearest] + TINY)
        return nearest[np.argsort(-ratios, kind="stable")]


@dataclass
class Burst:
    """One search: what it found, and a record for each ranker."""

    hits: list
    misses: list = field(default_factory=list)
    wins: list = field(default_factory=lambda: [0.0] * len(RANKERS))
    losses: list = field(default_factory=lambda: [0.0] * len(RANKERS))
    n_tried: int = 0

    def note(self, is_rare, ranker, row):
        """Take in the outcome of a case that a ranker has chosen."""
        self.n_tried += 1
        (self.wins if is_rare else self.losses)[ranker] += 1
        rows = self.hits if is_rare else self.misses
        rows.append(row)
        del rows[:-MOST_KEPT]

    def pays(self, rate):
        """Whether it finds at least half as much as the last slots of the model."""
        return sum(self.wins) > rate / 2 * (sum(self.wins) + sum(self.losses))

    def fade(self):
        """Forget earlier periods slowly."""
        self.wins = [FORGET * count for count in self.wins]
        self.losses = [FORGET * count for count in self.losses]


@dataclass(frozen=True)
class BurstList:
    """A list with reasons, as of `select`; the reason may also be "burst"."""

    flagged: np.ndarray
    reasons: np.ndarray
    probabilities: np.ndarray


class FollowUp:
    """Chooses the cases of a period by score, as probes and by open bursts."""

    def __init__(self, seed):
        self.seed, self.n_periods, self.bursts = seed, 0, []
        self.marginal, self.room, self.results = list(LAST_PRIOR), 0, [0, 0]
        self.pending = {}

    def select(self, X, scores, capacity, ids):
        """Return the list of a period."""
        picked = select(
            scores, capacity, ids=ids, random_state=self.seed, probe=PROBE, return_details=True
        )
        flagged, reasons = picked.flagged.copy(), picked.reasons.astype(object)
        listed = np.flatnonzero(reasons == "score")
        last = listed[np.argsort(scores[listed], kind="stable")]  # the lowest first
        self.begin_period()
        chosen = self.choose(X, np.flatnonzero(~flagged), self.compete(int(flagged.sum())))
        flagged[last[: len(chosen)]], reasons[last[: len(chosen)]] = False, "not selected"
        for row, owner in chosen.items():
            flagged[row], reasons[row] = True, "burst"
            self.pending[ids[row]] = ("burst", owner, X[row])
        for row in np.flatnonzero(reasons == "probe"):
            self.pending[ids[row]] = ("probe", None, X[row])
        n_last = max(len(chosen), round(LAST_SLOTS * flagged.sum()), 1)
        for row in last[len(chosen) :][:n_last]:
            self.pending[ids[row]] = ("score", None, None)
        probabilities = np.where(reasons == "burst", 1.0, picked.probabilities)
        return BurstList(flagged, reasons.astype(str), probabilities)

    def begin_period(self):
        """Set the room of bursts by what they found, forget slowly, and close those that fail."""
        self.n_periods += 1
        self.pending = {}
        self.marginal = [
            p + FORGET * (n - p) for p, n in zip(LAST_PRIOR, self.marginal, strict=True)
        ]
        rate, reviewed = self.marginal[0] / sum(self.marginal), sum(self.results)
        if reviewed:
            self.room = 2 * reviewed if self.results[0] > rate * reviewed else reviewed // 2
        self.results = [0, 0]
        self.bursts = [
            burst
            for burst in self.bursts
            if burst.n_tried < FAIR_TRIAL or (self.room > 0 and burst.pays(rate))
        ]
        for burst in self.bursts:
            burst.fade()

    def compete(self, n_slots):
        """Return the burst and ranker that each slot goes to; slots of the model are left out."""
        on_trial = any(burst.n_tried < FAIR_TRIAL for burst in self.bursts)
        room = min(int(MOST * n_slots), max(self.room, round(TRIAL * n_slots) if on_trial else 0))
        if not self.bursts or not room:
            return []
        rng = np.random.default_rng([self.seed, self.n_periods])
        arms = [(burst, ranker) for burst in self.bursts for ranker in range(len(RANKERS))]
        rates = [rng.beta(*self.marginal, size=room)]
        for own, ranker in arms:
            hits, misses = own.wins[ranker] + RANKER_PRIOR[0], own.losses[ranker] + RANKER_PRIOR[1]
            rates.append(rng.beta(hits, misses, size=room))
        return [arms[winner - 1] for winner in np.argmax(rates, axis=0) if winner > 0]

    def choose(self, X, free, owners):
        """Give each slot the case that its ranker likes best among those left."""
        if not owners:
            return {}
        around = Surroundings(X, np.random.default_rng([self.seed, self.n_periods, 1]))
        chosen, orders = {}, {}
        for burst, ranker in owners:
            arm = id(burst), ranker
            if arm not in orders:
                ranked = around.rank(RANKERS[ranker], free, burst.hits, burst.misses)
                orders[arm] = iter(ranked.tolist())
            row = next((row for row in orders[arm] if row not in chosen), None)
            if row is not None:
                chosen[row] = (burst, ranker)
        return chosen

    def learn(self, ids, outcomes):
        """Take in the outcomes of the last list."""
        for case, is_rare in zip(ids, outcomes, strict=True):
            reason, owner, row = self.pending.pop(case, ("", None, None))
            if reason == "probe" and is_rare:
                self.bursts = [*self.bursts, Burst([row])][-MOST_BURSTS:]
            elif reason == "burst":
                self.results[0 if is_rare else 1] += 1
                owner[0].note(is_rare, owner[1], row)
            elif reason == "score":
                self.marginal[0 if is_rare else 1] += 1
