"""What the studies share: folders, stored runs, and tables in Markdown.

A study writes its raw table and its finished runs to `studies/.raw`, which the repository ignores,
and its summary and picture beside its script, or to `--out`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shortlist import Capacity, select
from studies.paper.credit_protocol import Outcome, judge
from studies.runner import run_all
from studies.tables import Table, read_table, write_table

RAW = Path(__file__).with_name(".raw")


def study_parser(description: str, folder: Path, *, reps: int) -> argparse.ArgumentParser:
    """Return a parser with the options that all studies have; `folder` is that of the script."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--reps", type=int, default=reps, help=f"repetitions (default {reps})")
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1 takes all cores")
    parser.add_argument("--out", type=Path, default=folder, help="folder of summary and picture")
    parser.add_argument("--table", action="store_true", help="only draw and print the summary")
    return parser


def run_stored(
    name: str,
    work: Callable[[Any], Table],
    configs: Sequence[Any],
    *,
    n_jobs: int | None = None,
) -> Table:
    """Run what is missing, print the progress, and save the raw table as `<name>.csv`."""
    rows = run_all(
        work,
        configs,
        store=RAW / "finished" / name,
        n_jobs=n_jobs,
        on_progress=lambda done, total: print(f"{name}: {done} of {total}", flush=True),
    )
    write_table(rows, RAW / f"{name}.csv")
    return rows


def judge_top(test_scores: Any, y: Any, capacity: Capacity) -> Outcome:
    """Flag the top of the test sample, exactly as many items as allowed, and judge the flags."""
    return judge(select(test_scores, capacity), y, capacity)


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in [headings, ["---"] * len(headings), *rows]]
    return "\n".join(lines)


def print_summary(file: Path) -> None:
    """Print a stored summary as a Markdown table."""
    summary = read_table(file)
    print(markdown(list(summary[0]), [[str(value) for value in row.values()] for row in summary]))


def plain_boosting(seed: Any = None) -> Any:
    """Return boosted trees of one form, as studies and the gallery tune them."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=200,
        learning_rate=0.05,
        num_leaves=8,
        min_child_samples=10,
        colsample_bytree=0.5,
        subsample=0.7,
        subsample_freq=1,
        random_state=seed,
        n_jobs=1,
        verbose=-1,
    )


def single_threaded(model: Any) -> Any:
    """Keep LightGBM from using every core: on a busy machine its threads wait for each other."""
    return model.set_params(n_jobs=1) if "n_jobs" in model.get_params() else model
