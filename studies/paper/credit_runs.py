"""The finished runs of two figures, kept in the repository so that anybody can add more.

They are `credit` with g_b*, and `credit_smote20`, which shares two of its methods.

A run depends on its config, the data, and the versions and parameters of what it fits. The first
is in each row, the others are in `credit-runs.json`. Runs made otherwise are not mixed with these:
one run of each method is made again and must give the rows that are kept.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from shortlist._core.files import write_whole
from shortlist.learners import make_learner

from ..runner import finished
from ..tables import Table, read_table, write_table
from .credit_figures import CreditRun, credit, credit_smote20, run_method, runs_of
from .credit_protocol import CreditConfig

__all__ = [
    "ALL",
    "AWARE",
    "Pair",
    "Runs",
    "check_again",
    "counts",
    "read_runs",
    "stored_runs",
    "whole",
    "write_runs",
]

#: Learner and method.
Pair = tuple[str, str]
Runs = dict[CreditRun, Table]

_NAME = "credit-runs.csv.gz"
_VERSIONS = ("numpy", "scipy", "scikit-learn", "imbalanced-learn")
#: Learner and method of g_b*.
AWARE = ("svm", "aware")
_PAIRS = list(dict.fromkeys([*credit.pairs(), AWARE, *credit_smote20.pairs()]))
#: All runs of both figures, and those of g_b*, one whole repetition after another.
ALL = runs_of(CreditConfig(), _PAIRS)


def read_runs(folder: Path) -> Runs:
    """Return the runs that are kept, or raise an error if they were made with something else."""
    if not (folder / _NAME).exists():
        return {}
    kept = json.loads((folder / _NAME).with_suffix("").with_suffix(".json").read_text())
    here = made_with()
    other = [name for name in {**kept, **here} if kept.get(name) != here.get(name)]
    if other:
        raise ValueError(
            f"The runs in {folder / _NAME} cannot be continued here: "
            + "; ".join(f"{name} is {here.get(name)}, was {kept.get(name)}" for name in other)
            + ". Install what they were made with, or leave them aside with --afresh."
        )
    by_key: dict[tuple[object, ...], Table] = {}
    for row in read_table(folder / _NAME):
        by_key.setdefault(_key(row), []).append(row)
    return {run: by_key[_key(vars(run))] for run in ALL if _key(vars(run)) in by_key}


def write_runs(runs: Runs, folder: Path) -> None:
    """Keep runs in the order of `ALL`; the same runs give the same bytes."""
    write_table([row for run in ALL if run in runs for row in runs[run]], folder / _NAME)
    with write_whole(folder / "credit-runs.json") as file:
        file.write((json.dumps(made_with(), indent=1) + "\n").encode())


def stored_runs(store: Path) -> Runs:
    """Return the runs that are finished in a folder of `run_all`."""
    found = ((run, finished(store, run_method, run)) for run in ALL)
    return {run: rows for run, rows in found if rows is not None}


def whole(runs: Runs) -> Runs:
    """Return the runs of repetitions that have every share and every method of a learner.

    The recommended forest, g_b* and the SMOTE of appendix A stand for themselves: they are not in
    the paper's figure 3.
    """
    wanted, found = Counter(map(_part, ALL)), Counter(map(_part, runs))
    return {
        run: runs[run] for run in ALL if run in runs and found[_part(run)] == wanted[_part(run)]
    }


def counts(runs: Runs) -> dict[Pair, int]:
    """Return the number of whole repetitions of each learner and method."""
    parts = {(run.learner, run.method, run.repetition) for run in runs}
    return {pair: sum(part[:2] == pair for part in parts) for pair in _PAIRS}


def check_again(runs: Runs) -> None:
    """Make the last run of each learner and method again, and compare."""
    last = {(run.learner, run.method): run for run in ALL if run in runs}
    for run in last.values():
        if json.loads(json.dumps(run_method(run))) != runs[run]:
            raise ValueError(
                f"{run} gives other rows now than those that are finished, so the two must not be "
                "averaged. Something changed that its config does not name: the data, the code or "
                "a version. Leave finished runs aside with --afresh and an empty --store."
            )


def made_with() -> dict[str, str]:
    """Return what the rows of a run depend on, apart from its config."""
    config = CreditConfig()
    presets = [(name, "paper") for name in ("forest", "svm", "knn")] + [("forest", "recommended")]
    return {
        **{package: version(package) for package in _VERSIONS},
        **{
            f"{name}, {preset}": " ".join(repr(make_learner(name, preset)).split())
            for name, preset in presets
        },
        "clients": str(config.rows),
        "seed": str(config.seed),
        "b": str(config.multiples),
    }


def _part(run: CreditRun) -> tuple[str, str, int]:
    method = "" if run.method in credit.methods else run.method
    return run.learner, method, run.repetition


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in ("learner", "method", "prevalence", "repetition"))
