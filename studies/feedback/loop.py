"""The loop of reviews and retraining: probes and follow-up bursts beside the model alone.

A model is trained on labelled history, ranks the cases of each day, and is retrained every week on
everything that was reviewed. On the 20th of 90 days a new pattern of rare cases appears (or does
not). Three policies see the same days: all slots by score ("model"); some of them as probes
("probes"); and the same with bursts ("bursts"). Detection counts from the 20th day on. One case in
50 can be reviewed. Runs are added to the file, and `--summary` averages them. `--coverage` averages
how often the intervals for the number missed cover it, a day, a week, four weeks and 70 days after
the change.

    python -m studies.feedback.loop --slots 400 --worlds new dense none --first-seed 100 --seeds 5
    python -m studies.feedback.loop --summary
    python -m studies.feedback.loop --slots 40 --policies probes --seeds 60 --out runs.csv
    python -m studies.feedback.loop --coverage --out runs.csv
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd

from shortlist import Capacity, select
from shortlist.feedback import estimate_missed

from .bursts import PROBE, FollowUp
from .worlds import CHANGE, N_DAYS, SIMULATED, make_world

CASES_PER_SLOT = 50
POLICIES = ("model", "probes", "bursts")
HERE = Path(__file__).parent
RUNS, SUMMARY = HERE.parent / ".raw" / "feedback_loop.csv", HERE / "loop.csv"
COVERAGE = HERE / "loop_coverage.csv"
HORIZONS = {"day": 1, "week": 7, "four weeks": 28, "covered": N_DAYS - CHANGE}


def fit(X, y, seed, weights=None):
    """Train the model on everything reviewed so far."""
    model = lightgbm.LGBMClassifier(
        n_estimators=50,
        num_leaves=15,
        learning_rate=0.15,
        random_state=seed,
        verbose=-1,
        n_jobs=1,
    )
    return model.fit(X, y, sample_weight=weights)


class Policy:
    """Chooses the cases of a day, and learns their outcomes."""

    def __init__(self, name, slots, seed):
        self.name, self.capacity, self.seed = name, Capacity.count(slots), seed
        self.burst = FollowUp(seed)
        self.reviews = []

    def choose(self, cases, scores, ids, is_rare):
        """Return which cases are reviewed."""
        if self.name == "bursts":
            picked = self.burst.select(cases, scores, self.capacity, ids)
            self.burst.learn(ids[picked.flagged], is_rare[picked.flagged])
        else:
            picked = select(
                scores,
                self.capacity,
                ids=ids,
                random_state=self.seed,
                probe=PROBE if self.name == "probes" else 0,
                return_details=True,
            )
        self.reviews.append((is_rare, picked))
        return picked.flagged

    def covers(self, n_days):
        """Whether the interval for the cases missed in the days after the change covers them."""
        reviews = self.reviews[CHANGE : CHANGE + n_days]
        outcomes = [np.where(picked.flagged, rare, None) for rare, picked in reviews]
        reasons = [picked.reasons for _, picked in reviews]
        drawn = [picked.probabilities for _, picked in reviews]
        reviewed = np.concatenate([picked.flagged for _, picked in reviews])
        columns = (np.concatenate(column)[reviewed] for column in (outcomes, reasons, drawn))
        answer = estimate_missed(*columns)
        missed = sum(int(rare[~picked.flagged].sum()) for rare, picked in reviews)
        return int(answer.missed_low <= missed <= answer.missed_high)


def run(days, history, slots, name, seed):
    """Play all days with one policy, and return what it found."""
    policy, model = Policy(name, slots, seed), fit(*history, seed)
    seen_X, seen_y, found, rare = [history[0]], [history[1]], 0, 0
    for number, (cases, is_rare) in enumerate(days):
        if number and number % 7 == 0:
            model = fit(np.concatenate(seen_X), np.concatenate(seen_y), seed)
        scores = model.booster_.predict(cases)
        ids = number * 1_000_000 + np.arange(len(cases))
        flagged = policy.choose(cases, scores, ids, is_rare)
        assert flagged.sum() <= slots
        if number >= CHANGE:
            found, rare = found + int(is_rare[flagged].sum()), rare + int(is_rare.sum())
        seen_X.append(cases[flagged])
        seen_y.append(is_rare[flagged])
    covered = {
        horizon: "" if name == "model" else policy.covers(n_days)
        for horizon, n_days in HORIZONS.items()
    }
    return {"detection": round(found / rare, 5), **covered}


def play(name, slots, seed, policies):
    """Deal the days once, and let every policy play them."""
    world, n_cases = make_world(name, seed), CASES_PER_SLOT * slots
    blocks = [world.day(n_cases, 0) for _ in range(2)]
    history = tuple(np.concatenate(parts) for parts in zip(*blocks, strict=True))
    days = [world.day(n_cases, number) for number in range(N_DAYS)]
    for policy in policies:
        result = run(days, history, slots, policy, seed)
        yield {"world": name, "slots": slots, "seed": seed, "policy": policy, **result}


def add_runs(options):
    """Play the worlds, and add a row for each world, seed and policy."""
    for name in options.worlds:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for row in play(name, options.slots, seed, options.policies):
                options.out.parent.mkdir(exist_ok=True)
                is_new = not options.out.exists()
                with options.out.open("a", newline="") as file:
                    writer = csv.DictWriter(file, row.keys())
                    if is_new:
                        writer.writeheader()
                    writer.writerow(row)
                print(*row.values(), flush=True)


def summarise(runs):
    """Return a row for each world, number of slots and policy: the gain over the model alone."""
    real = runs[~runs["world"].isin(SIMULATED)]
    named = real.assign(world="real tables", seed=real["world"] + real["seed"].astype(str))
    runs = pd.concat([runs, named])
    table = runs.pivot_table(index=["world", "slots", "seed"], columns="policy", values="detection")
    covered = runs.groupby(["world", "slots", "policy"])["covered"].mean()
    rows = []
    for (world, slots), own in table.groupby(level=["world", "slots"]):
        for policy in (name for name in POLICIES[1:] if name in own):
            gain = (own[policy] - own["model"]).dropna()
            error = gain.std(ddof=1) / np.sqrt(gain.size)
            rows.append(
                {
                    "world": world,
                    "slots": slots,
                    "policy": policy,
                    "seeds": gain.size,
                    "model alone": round(own["model"].mean(), 3),
                    "gain": round(gain.mean(), 4),
                    "error": round(error, 4),
                    "least": round(gain.min(), 4),
                    "covered": round(float(covered[world, slots, policy]), 3),
                }
            )
    return pd.DataFrame(rows)


def coverage(runs):
    """Return how often intervals cover, for each world, number of slots and policy."""
    grouped = runs.groupby(["world", "slots", "policy"])
    means = grouped[list(HORIZONS)].mean().round(4).rename(columns={"covered": "70 days"})
    return means.assign(runs=grouped.size()).reset_index()


def main() -> None:
    """Play worlds, or summarise what was played."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--slots", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--worlds", nargs="*", default=list(SIMULATED))
    parser.add_argument("--policies", nargs="*", default=list(POLICIES))
    parser.add_argument("--out", type=Path, default=RUNS)
    parser.add_argument("--summary", action="store_true", help="average the runs of the file")
    parser.add_argument("--coverage", action="store_true", help="of intervals, in the file")
    options = parser.parse_args()
    if not (options.summary or options.coverage):
        add_runs(options)
        return
    runs = pd.read_csv(options.out)
    table = coverage(runs) if options.coverage else summarise(runs)
    table.to_csv(COVERAGE if options.coverage else SUMMARY, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
