"""Does the row-by-row rule of an ensemble keep its promise, and is the model card right?

    python -m studies.detection.promises --what guarantee --jobs 2
    python -m studies.detection.promises --what card --jobs 2

Simulated worlds: rare rows are shifted in some of six columns, two of which are coarse, so that
rows and scores tie. Worlds differ in how far and in which columns.

`guarantee`: 400 ensembles of ten folds, each fitted to 200 rows with a capacity of a twentieth;
how many of 2,000 fresh rows each of them flags. The mean must not exceed the capacity.

`card`: 200 tables of 600 rows; what the model card says that a list finds, beside what lists of the
same length find in 8,000 fresh rows, and how often the 95 % interval covers it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shortlist import Capacity, CapacityClassifier
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.metrics import detection_at_capacity
from shortlist.tables import fit_table
from studies.harness import markdown, run_stored, study_parser
from studies.tables import Table, mean_and_error, read_table, write_table

HERE = Path(__file__).parent
PREVALENCE = 0.1
CAPACITY = Capacity.fraction(0.05)
FITTED = ("forest", "logistic")


@dataclass(frozen=True)
class Draw:
    """One table from one world."""

    what: str
    seed: int


def draw_world(seed: int) -> Any:
    """Return a function that draws rows of a world, as a frame and labels."""
    rng = np.random.default_rng([16, seed])
    shift = rng.exponential(0.8, 6) * (rng.random(6) < 0.6)

    def rows(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        is_rare = rng.random(n) < PREVALENCE
        X = rng.normal(size=(n, 6)) + np.outer(is_rare, shift)
        X[:, :2] = X[:, :2].round()
        return pd.DataFrame(X, columns=[f"x{k}" for k in range(6)]), is_rare

    return rows


def run_draw(config: Draw) -> Table:
    """Fit to a table of a world, and measure on fresh rows of the same world."""
    world, rng = draw_world(config.seed), np.random.default_rng([17, config.seed])
    if config.what == "guarantee":
        return _flags(config, world, rng)
    X, is_rare = world(600, rng)
    fresh, truth = world(8_000, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        X.assign(rare=np.where(is_rare, "yes", "no")).to_csv(path, index=False)
        options = {"target": "rare", "rare": "yes", "capacity": Capacity.fraction(0.1)}
        result = fit_table(path, size="quick", random_state=config.seed, **options)
    listed = next(rule for rule in result.card.rules if rule.rule == "this model, as a list")
    scores = result.model.classifier.score_samples(fresh)
    found = detection_at_capacity(truth, scores, Capacity.fraction(0.1))
    low, high = listed.detection_interval
    return [
        {
            "what": "card",
            "seed": config.seed,
            "said": listed.detection,
            "truth": found,
            "width": high - low,
            "covers": int(low <= found <= high),
        }
    ]


def _flags(config: Draw, world: Any, rng: np.random.Generator) -> Table:
    """Round all columns in every second world: then most rows tie with others."""
    X, is_rare = world(200, rng)
    fresh, _ = world(2_000, rng)
    if config.seed % 2:
        X, fresh = X.round(), fresh.round()
    model = CapacityClassifier(
        CapacityEnsembleClassifier(members=FITTED, size="quick", random_state=config.seed),
        capacity=CAPACITY,
        cv=10,
        random_state=config.seed,
    ).fit(X, is_rare)
    rate = float(model.flag(fresh).mean())
    return [{"what": "guarantee", "seed": config.seed, "rate": rate, "tied": config.seed % 2}]


def summarise(rows: Table, what: str) -> Table:
    """Return means with standard errors."""
    if what == "guarantee":
        groups = {"all": rows, "tied": [r for r in rows if r["tied"]]}
        return [
            {
                "worlds": name,
                "capacity": float(CAPACITY.value),
                **mean_and_error([row["rate"] for row in some]),
            }
            for name, some in groups.items()
        ]
    biases = mean_and_error([row["said"] - row["truth"] for row in rows])
    covers = mean_and_error([row["covers"] for row in rows])
    return [
        {"measure": "said less truth", **biases},
        {"measure": "interval covers", **covers},
        {"measure": "truth", **mean_and_error([row["truth"] for row in rows])},
        {"measure": "width of the interval", **mean_and_error([row["width"] for row in rows])},
    ]


def main() -> None:
    """Run, save and print."""
    parser = study_parser(__doc__, HERE, reps=400)
    parser.add_argument("--what", default="guarantee", choices=["guarantee", "card"])
    options = parser.parse_args()
    file = options.out / f"{options.what}.csv"
    if not options.table:
        draws = [Draw(options.what, seed) for seed in range(options.reps)]
        rows = run_stored(f"detection_{options.what}", run_draw, draws, n_jobs=options.jobs)
        write_table(summarise(rows, options.what), file)
    summary = read_table(file)
    print(markdown(list(summary[0]), [[str(value) for value in row.values()] for row in summary]))


if __name__ == "__main__":
    main()
