"""Cases of customers beside single events: what the same slots find where fraud comes in episodes.

    python -m studies.online.entities

Customers differ, and cause events at random. Now and then one of them is defrauded: for a day or
so there are fraudulent events beside their own, 6 or 40 a day, and many of them score higher. An
episode is found if one of its own events is flagged; what joins a case that began before the
episode finds nothing. Ways to use the same slots a day:

- "events": every flag takes a slot, whoever causes it;
- "customers": events of a customer join the case for a day;
- "cool-down": and they are not raised again for two more days; "or a rise": unless the chance of
  fraud is higher by 0.1;
- "all together": as "customers", ranked by the chance that any event of the customer's last 24
  hours is fraudulent, were they independent, instead of by the highest score.

`entities.csv` has the share of the episodes found, the gain over single events, paired by seed, and
about how many different customers the flags of a day are.
"""

from __future__ import annotations

import argparse
import copy
from collections import defaultdict, deque
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from shortlist import Capacity
from shortlist.online import BudgetController, EntityCases

DAY, DAYS, WARM_UP = 86_400.0, 35, 5
CUSTOMERS, EVENTS, EPISODES = 2_000, 2.5, 8.0  # events of a customer, and new episodes, a day
LASTS, EAGER = 1.0, (6.0, 40.0)  # days of an episode on average; its events a day
SHIFT, SPREAD, OWN = 2.0, 0.5, 0.6  # of scores: fraud, episodes, customers
SLOTS, SEEDS = (10, 25, 50, 100), range(8)
RULES = {
    "customers": EntityCases(window=DAY),
    "cool-down": EntityCases(window=DAY, cooldown=2 * DAY),
    "or a rise": EntityCases(window=DAY, cooldown=2 * DAY, rise=0.1),
    "all together": EntityCases(window=DAY),
}


class Stream(NamedTuple):
    """Events in order: moment, customer, number of the episode (-1 if none), chance of fraud."""

    at: np.ndarray
    customer: np.ndarray
    episode: np.ndarray
    chance: np.ndarray


def simulate(seed: int, eager: float) -> Stream:
    """Return the events of all days."""
    rng = np.random.default_rng(seed)
    n = rng.poisson(CUSTOMERS * EVENTS * DAYS)
    own = OWN * rng.normal(size=CUSTOMERS)
    customer, at = rng.integers(CUSTOMERS, size=n), rng.uniform(0, DAYS, size=n)
    score, episode = own[customer] + rng.normal(size=n), np.full(n, -1)
    parts = [(at, customer, episode, score)]
    for number in range(rng.poisson(EPISODES * DAYS)):
        begins, lasts, who = rng.uniform(0, DAYS), rng.exponential(LASTS), rng.integers(CUSTOMERS)
        m = 1 + rng.poisson(eager * lasts)
        moments = begins + lasts * np.sort(rng.uniform(size=m))
        raised = own[who] + SHIFT + SPREAD * rng.normal() + rng.normal(size=m)
        parts.append((moments, np.full(m, who), np.full(m, number), raised))
    at, customer, episode, score = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.flatnonzero(at < DAYS)
    order = order[np.argsort(at[order], kind="stable")]
    chance = _chance_of(score, episode >= 0)
    return Stream(DAY * at[order], customer[order], episode[order], chance[order])


def _chance_of(score: np.ndarray, is_fraud: np.ndarray) -> np.ndarray:
    """Return the chance of fraud given the score alone, as a calibrated model would."""
    share = is_fraud.mean()
    spread, wide = 1 + OWN**2, 1 + OWN**2 + SPREAD**2
    log_odds = np.log(share / (1 - share)) + 0.5 * np.log(spread / wide)
    log_odds = log_odds - (score - SHIFT) ** 2 / (2 * wide) + score**2 / (2 * spread)
    return 1 / (1 + np.exp(-log_odds))


def all_together(stream: Stream) -> np.ndarray:
    """Return the chance that any event of a customer's last 24 hours is fraudulent."""
    recent: defaultdict[int, deque[tuple[float, float]]] = defaultdict(deque)
    found = np.empty(stream.at.size)
    quiet = np.log1p(-stream.chance)
    pairs = zip(stream.at.tolist(), stream.customer.tolist(), strict=True)
    for i, (at, customer) in enumerate(pairs):
        events = recent[customer]
        events.append((at, quiet[i]))
        while events[0][0] <= at - DAY:
            events.popleft()
        found[i] = -np.expm1(sum(each for _, each in events))
    return found


def decide(stream: Stream, scores: np.ndarray, slots: int, cases: EntityCases | None) -> np.ndarray:
    """Return which events are flagged, never more than the slots of a day."""
    before = stream.at < WARM_UP * DAY
    budget = BudgetController(
        Capacity.count(slots),
        period=DAY,
        expected_arrivals=int(before.sum() / WARM_UP),
        calibration_scores=scores[before],
    )
    later, flagged = np.flatnonzero(~before), np.zeros(before.size, bool)
    if cases is None:
        flagged[later] = budget.decide_many(scores[later], at=stream.at[later]).flagged
        return flagged
    cases = copy.deepcopy(cases)
    for i in later.tolist():
        entity, at = int(stream.customer[i]), float(stream.at[i])
        flagged[i] = cases.decide(budget, float(scores[i]), entity=entity, at=at).flag
    return flagged


def judge(stream: Stream, flagged: np.ndarray) -> dict[str, float]:
    """Return what the flags find, and how many customers a day they are about."""
    later = stream.at >= WARM_UP * DAY
    fraud = later & (stream.episode >= 0)
    episodes = np.unique(stream.episode[fraud])
    found = np.unique(stream.episode[fraud & flagged])
    days = (stream.at[flagged] // DAY).astype(int)
    pairs = len(set(zip(days.tolist(), stream.customer[flagged].tolist(), strict=True)))
    return {
        "episodes found": found.size / episodes.size,
        "customers a day": pairs / (DAYS - WARM_UP),
        "most flags a day": float(np.bincount(days).max(initial=0)),
    }


def run(seeds: range) -> pd.DataFrame:
    """Return one row for each world, seed, number of slots and way."""
    rows = []
    for eager, seed in product(EAGER, seeds):
        stream = simulate(seed, eager)
        together = all_together(stream)
        for slots, (way, cases) in product(SLOTS, {"events": None, **RULES}.items()):
            scores = together if way == "all together" else stream.chance
            found = judge(stream, decide(stream, scores, slots, cases))
            rows.append({"events": eager, "seed": seed, "slots": slots, "way": way, **found})
    return pd.DataFrame(rows)


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means with standard errors, and gains over single events paired by seed."""
    of_events = rows[rows["way"] == "events"].set_index(["events", "slots", "seed"]).sort_index()
    lines = []
    for (eager, slots, way), part in rows.groupby(["events", "slots", "way"], sort=False):
        own = part.set_index("seed")["episodes found"]
        gain = own - of_events.loc[(eager, slots)]["episodes found"]
        lines.append(
            {
                "events_a_day": eager,
                "slots": slots,
                "way": way,
                "found": own.mean(),
                "error": own.sem(),
                "gain": gain.mean(),
                "gain_error": gain.sem(),
                "customers_a_day": part["customers a day"].mean(),
                "most_flags_a_day": part["most flags a day"].max(),
                "n_seeds": len(part),
            }
        )
    return pd.DataFrame(lines)


def main() -> None:
    """Run the study, and write its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    seeds = range(parser.parse_args().seeds)
    table = summarise(run(seeds))
    if len(seeds) == len(SEEDS):
        table.round(5).to_csv(Path(__file__).with_name("entities.csv"), index=False)
    print(table.round(4).to_string(index=False))


if __name__ == "__main__":
    main()
