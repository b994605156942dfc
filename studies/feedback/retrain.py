"""Next month's model from this month's reviews: with probes, without, and with all labels.

A model of labelled history lists the cases of thirty days; a quarter of the places goes to probes,
or none. Then a new model learns from what was reviewed, alone or together with the history, and
lists the cases of ten further days. The new pattern of the simulated worlds is there from the first
of the thirty days on, and is not in the history. The credit data have no new pattern.

The new models learn from the cases of lists without probes ("no probes") or with them, where each
row counts once ("probes"), one over the probability of its review ("full weights"), or the root of
that ("fit --weight"); and from all cases of the thirty days ("all labels", which nobody has). "old"
is the model of the history. The root was chosen on other seeds (1,000 to 1,003), with boosting and
a forest, among these three.

    python -m studies.feedback.retrain --seeds 20    # run, write the summary and print it
    python -m studies.feedback.retrain --table       # print the committed summary
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from shortlist import Capacity, select
from studies.credit_data import clients
from studies.tables import markdown_table, read_table, summarise, write_table

from .loop import fit
from .worlds import CHANGE, World

SLOTS, CASES, DAYS, LATER, PROBE = 40, 2_000, 30, 10, 0.25
PARTS_CREDIT, LATER_CREDIT = 22, 5  # history, 16 days and 5 later ones
WORLDS = ("new", "dense", "none", "credit")
SUMMARY = Path(__file__).parent / "retrain.csv"


def simulated_days(name, seed):
    """Return history, and days on which the new pattern is there."""
    world = World(name, seed)
    history = joined([world.day(CASES, 0) for _ in range(2)])
    return history, [world.day(CASES, CHANGE) for _ in range(DAYS + LATER)]


def credit_days(seed):
    """Return history and days of clients, 2 % of whom default; no client comes twice."""
    X, y = clients()
    X, is_rare = np.asarray(X, dtype=float), np.asarray(y) == 1
    rng = np.random.default_rng([17, seed])
    rare, common = (rng.permutation(np.flatnonzero(is_rare == which)) for which in (True, False))
    n_rows = int(common.size / 0.98)
    rows = rng.permutation(np.concatenate([common, rare[: n_rows - common.size]]))
    parts = np.array_split(rows[: PARTS_CREDIT * (n_rows // PARTS_CREDIT)], PARTS_CREDIT)
    days = [(X[part], is_rare[part]) for part in parts]
    return days[0], days[1:]


def joined(days):
    """Return the cases of some days together."""
    return tuple(np.concatenate(parts) for parts in zip(*days, strict=True))


def reviewed(model, days, probe, slots, seed):
    """Return the cases of the lists of some days, their outcomes and probabilities of review."""
    parts = []
    for number, (cases, is_rare) in enumerate(days):
        ids = number * 1_000_000 + np.arange(len(cases))
        known = {"ids": ids, "random_state": seed, "return_details": True}
        scores = model.booster_.predict(cases)
        listed = select(scores, Capacity.count(slots), probe=probe, **known)
        assert listed.flagged.sum() <= slots
        own = listed.flagged
        parts.append((cases[own], is_rare[own], listed.probabilities[own]))
    return joined(parts)


def detection(model, days, slots):
    """Return the share of the rare cases of some days that lists find."""
    found = rare = 0
    for cases, is_rare in days:
        listed = select(model.booster_.predict(cases), Capacity.count(slots))
        found, rare = found + int(is_rare[listed].sum()), rare + int(is_rare.sum())
    return found / rare


def play(name, seed):
    """Return the detection of every model on the later days of one world."""
    history, days = credit_days(seed) if name == "credit" else simulated_days(name, seed)
    n_later = LATER_CREDIT if name == "credit" else LATER
    slots = len(days[0][0]) * SLOTS // CASES
    month, later = days[:-n_later], days[-n_later:]
    old = fit(*history, seed)
    X, y, chances = reviewed(old, month, PROBE, slots, seed)
    learned = {
        "no probes": reviewed(old, month, 0, slots, seed),
        "probes": (X, y, np.ones(y.size)),
        "full weights": (X, y, 1 / chances),
        "fit --weight": (X, y, 1 / np.sqrt(chances)),
        "all labels": with_ones(joined(month)),
    }
    models = {("history", "old"): old}
    for label, rows in learned.items():
        both = joined([with_ones(history), rows])
        models["reviews", label] = fit(*rows[:2], seed, rows[2])
        models["reviews and history", label] = fit(*both[:2], seed, both[2])
    for (rows, label), model in models.items():
        found = detection(model, later, slots)
        yield {"world": name, "rows": rows, "model": label, "seed": seed, "detection": found}


def with_ones(rows):
    """Return cases and outcomes that all count once."""
    return *rows, np.ones(rows[1].size)


def main() -> None:
    """Run the study, or print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--out", type=Path, default=SUMMARY)
    parser.add_argument("--table", action="store_true", help="print the committed summary")
    options = parser.parse_args()
    if not options.table:
        runs = [
            row
            for name in options.worlds
            for seed in range(options.seeds)
            for row in play(name, seed)
        ]
        write_table(summarise(runs, ("world", "rows", "model"), "detection"), options.out)
    print(*markdown_table(read_table(SUMMARY if options.table else options.out)), sep="\n")


if __name__ == "__main__":
    main()
