"""How much of a capacity each guarantee uses: before, now, at best, and the error that it makes.

    python -m studies.promises.use --before ../before/src     # five minutes; writes use.csv

`before` and `after` are mean flag rates as shares of the capacity, by b8043b0, whose `src` folder
is named, and by this version; `best` is the most that the same promise allows: all of the capacity
on average, and with a confidence what one threshold of all n items uses that errs as often as
it may, which is not known for work and groups. All n items calibrate one threshold of a trained
model, or a half of them does ("held out"), or each item helps to calibrate one of ten ("folds").
`promised` and `error` are the largest
probability of an overrun and the one that is reached; for "expected", which promises a mean, the
share of the capacity. For "simultaneous", the error is that of this capacity alone. Rows are exact,
except for work and groups: 400 calibrations, 100 of folds, whose standard error is in the last
column. Groups whose sizes differ use less, because they keep the capacity among all calibration
items as well. For "anytime", which had no rule before, the error is that of a single calibration.
"simultaneous" and "anytime" spread their error over capacities and over time, and their `best` is
what one threshold of all n uses.
Before, folds were stratified: the true rates of their thresholds differed from these.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import warnings
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin

from shortlist import Capacity, CapacityClassifier, calibrate_threshold

try:
    from shortlist.thresholds import guarantees
except ImportError:  # before
    guarantees = None

COLUMNS = ["guarantee", "setting", "n", "c", "before", "after", "best", "promised", "error"]
COLUMNS += ["standard_error"]
ERROR, N_FOLDS, TRIALS, N_NEW = 0.05, 10, 400, 20_000
SIZES, CAPACITIES = (200, 1_000, 4_000), ("0.01", "0.02", "0.06")


def main() -> None:
    """Write the table, or print the uses of this version."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="the src folder of the version before")
    before = parser.parse_args().before
    warnings.simplefilter("ignore")
    uses = dict(measured())
    if before is None:
        print(json.dumps([[*key, *found] for key, found in uses.items()]))
        return
    environment = os.environ | {"PYTHONPATH": f"{before}:{Path(__file__).parents[2]}"}
    command = [sys.executable, "-m", "studies.promises.use"]
    printed = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    old = {tuple(row[:4]): row[4] for row in json.loads(printed.stdout)}  # not yet "anytime"
    with (Path(__file__).parent / "use.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key, (use, promised, error, standard_error) in uses.items():
            best = 1.0 if key[0] == "expected" else ""
            if best == "" and standard_error == "":
                best = uses[key[0], "one threshold", *key[2:]][0]
            row = [*key, old.get(key, ""), use, best, promised, error, standard_error]
            writer.writerow([f"{cell:.3g}" if isinstance(cell, float) else cell for cell in row])


def measured():
    """Yield each setting with its use, what is promised and reached, and a standard error."""
    known = guarantees and getattr(guarantees, "anytime_place", None)
    every = ("expected", "confident", "next-batch", "simultaneous", "anytime")
    for guarantee in every if known else every[:-1]:
        for n in SIZES:
            for text in CAPACITIES:
                settings = {"one threshold": n, "held out": n // 2}
                if guarantee in ("expected", "confident"):
                    settings["folds"] = n
                for setting, size in settings.items():
                    found = of_places(guarantee, size, text, in_folds=setting == "folds")
                    yield (guarantee, setting, n, text), found
    yield from work()
    yield from groups()
    if guarantees is not None:  # before, folds were stratified
        yield from work_and_groups_in_folds()


class OwnScore(ClassifierMixin, BaseEstimator):
    """A model whose items are their own scores."""

    def fit(self, X, y):
        """Learn the labels."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        """Return the scores."""
        return np.asarray(X)[:, 0]


def of_places(guarantee, n, text, *, in_folds):
    """Return the use, from the places of thresholds among n scores without ties."""
    c, scores = Fraction(text), np.random.default_rng(0).permutation(n) * 1.0
    capacity = Capacity.count(int(1_000 * c), per=1_000)
    if in_folds:
        options = {"guarantee": guarantee, "rare_label": True, "random_state": 0}
        model = CapacityClassifier(OwnScore(), capacity=capacity, cv=N_FOLDS, **options)
        X = scores[:, np.newaxis]
        found = model.fit(X, np.arange(n) % 3 == 0, ids=np.arange(n)).calibrations_
    else:
        options = {"guarantee": guarantee, "ids": np.arange(n)}
        found = [calibrate_threshold(scores, capacity, **options)]
    places = [(each.k, getattr(each, "share", 0.0), each.n_calibration) for each in found]
    use = float(np.mean([(k + 1 + s) / (size + 1) for k, s, size in places])) / float(c)
    if guarantee == "expected":
        return use, 1.0, use, ""
    # That of folds is at most as large as promised, however they depend on each other.
    return use, ERROR, "" if in_folds else error_at(guarantee, *places[0], c, capacity), ""


def error_at(guarantee, k, share, n, c, capacity):
    """Return the probability of an overrun."""
    if guarantees is None:
        return ""
    place = guarantees.Place(k, share)
    if guarantee == "next-batch":
        return guarantees._overrun_probability(place, n, int(capacity.value), 1_000)
    return guarantees.exceedance(place, n, c)


def work():
    """Simulate a budget of work: what flags take of it.

    Efforts are 1 to 10, or minutes of which a few take up to eight hours, 14 times the mean.
    """
    for name, largest, draw in (
        ("work", 10, lambda rng, n: rng.integers(1, 11, size=n)),
        ("work with long cases", 480, lambda rng, n: minutes(rng.lognormal(3, 1, size=n))),
    ):
        rng = np.random.default_rng(0)
        new, efforts = rng.beta(1, 9, size=100_000), draw(rng, 100_000)
        for guarantee, text in product(("expected", "confident"), ("0.01", "0.02", "0.05")):
            c = float(text) * efforts.mean()
            capacity, uses = Capacity.effort(round(1_000 * c, 6), per=1_000), []
            for seed in range(TRIALS):
                own = np.random.default_rng(seed + 1)
                known = {"efforts": draw(own, 1_000), "max_effort": largest}
                known |= {"ids": np.arange(1_000), "random_state": seed, "guarantee": guarantee}
                found = calibrate_threshold(own.beta(1, 9, size=1_000), capacity, **known)
                flagged = found.flag(new, ids=np.arange(1_000, 101_000), efforts=efforts)
                uses.append(efforts[flagged].sum() / new.size / c)
            yield (guarantee, name, 1_000, text), summary(guarantee, uses)


def minutes(numbers):
    """Return whole minutes, at most eight hours."""
    return np.minimum(np.ceil(numbers), 480)


def groups():
    """Simulate groups of items that are alike, and the rate of an item of a new group."""
    designs = (("of 4", np.full(150, 4)), ("of 1 to 7", np.arange(150) % 7 + 1))
    for guarantee, text in product(("expected", "confident"), ("0.02", "0.05")):
        for name, sizes in designs:
            of, uses, c = np.arange(150).repeat(sizes), [], float(text)
            for seed in range(TRIALS):
                own = np.random.default_rng(seed)
                scores = own.normal(size=150).repeat(sizes) + own.normal(size=of.size)
                known = {"groups": of, "ids": np.arange(of.size), "random_state": seed}
                known["guarantee"] = guarantee
                found = calibrate_threshold(scores, Capacity.fraction(c), **known)
                share, lower = getattr(found, "share", 0.0), getattr(found, "lower_value", np.inf)
                ends = stats.norm.sf([found.value, lower], scale=np.sqrt(2))
                uses.append(((1 - share) * ends[0] + share * ends[1]) / c)
            yield (guarantee, f"150 groups {name}", of.size, text), summary(guarantee, uses)


def work_and_groups_in_folds():
    """Simulate the same with the thresholds of ten folds, and fewer calibrations."""
    of = np.arange(150).repeat(4)
    for guarantee, text in product(("expected", "confident"), ("0.01", "0.02", "0.05")):
        uses = {"work, folds": [], "150 groups of 4, folds": []}
        for seed in range(TRIALS // 4):
            own, c = np.random.default_rng(seed), float(text)
            known, new = (own.integers(1, 11, size=size) for size in (1_000, N_NEW))
            capacity = Capacity.effort(round(1_000 * c * 5.5, 6), per=1_000)
            model = fitted(own.beta(1, 9, size=1_000), capacity, guarantee, seed, efforts=known)
            flagged = flags(model, own.beta(1, 9, size=N_NEW), efforts=new)
            uses["work, folds"].append(new[flagged].sum() / N_NEW / 5.5 / c)
            if text == "0.01":
                continue
            scores = own.normal(size=150).repeat(4) + own.normal(size=of.size)
            model = fitted(scores, Capacity.fraction(c), guarantee, seed, groups=of)
            flagged = flags(model, own.normal(size=N_NEW, scale=np.sqrt(2)))
            uses["150 groups of 4, folds"].append(flagged.mean() / c)
        for setting, found in uses.items():
            if found:
                n = 1_000 if setting.startswith("work") else of.size
                yield (guarantee, setting, n, text), summary(guarantee, found)


def fitted(scores, capacity, guarantee, seed, **known):
    """Return a classifier with the thresholds of folds; its items are their own scores."""
    options = {"guarantee": guarantee, "rare_label": True, "random_state": seed}
    options["max_effort"] = 10 if "efforts" in known else None
    model = CapacityClassifier(OwnScore(), capacity=capacity, cv=N_FOLDS, **options)
    ids = np.arange(scores.size)
    return model.fit(scores[:, np.newaxis], ids % 3 == 0, ids=ids, **known)


def flags(model, scores, **known):
    """Return the flags of new items, each of a group of its own."""
    return model.flag(scores[:, np.newaxis], ids=10_000 + np.arange(scores.size), **known)


def summary(guarantee, uses):
    """Return the mean use, what is promised and reached, and the standard error of this."""
    mean = float(np.mean(uses))
    reached = uses if guarantee == "expected" else np.array(uses) > 1
    error = float(np.std(reached, ddof=1) / np.sqrt(len(uses)))
    return mean, 1.0 if guarantee == "expected" else ERROR, float(np.mean(reached)), error


if __name__ == "__main__":
    main()
