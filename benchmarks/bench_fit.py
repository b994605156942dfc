"""What `shortlist fit` costs, the whole command, beside one forest of 300 trees on the same rows.

    python benchmarks/bench_fit.py                                   # 10^3, 10^4 and 10^5 rows
    python benchmarks/bench_fit.py --rows 1000000 --sizes default --trees 10
    python benchmarks/bench_fit.py --tree ../before/src --tree src   # two trees, in turns
    python benchmarks/bench_fit.py --wide                            # reasons on 2,000 columns

All times are processor times with one thread; those of commands include the start of Python. The
rows per second of `flag` are counted twice: by the whole command on 200,000 rows, and without what
the same command takes on 1,000 rows. A row alone is scored by the compiled scorer of `stream` and
of the service. With `--trees`, fewer than the 300 trees of the forest are timed, and multiplied.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from _measure import table
from shortlist.datasets import make_fraud

COLUMNS, WIDE = 20, 2_000
FEW, MANY = 1_000, 200_000
SIZES = ("quick", "default")
HERE = Path(__file__).parents[1] / "src"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1")
# A row alone, in milliseconds.
ALONE = """
import sys, time, pandas, pathlib
from shortlist.tables import load_model
scorer = load_model(pathlib.Path("fraud.model")).row_scorer
rows = pandas.read_csv("few.csv").iloc[:200, :-1].to_numpy().tolist()
scorer.score_row(rows[0])
begun = time.process_time()
for row in rows:
    scorer.score_row(row)
print(1e3 * (time.process_time() - begun) / len(rows))
"""


def main(
    rows: tuple[int, ...] = (1_000, 10_000),
    sizes: tuple[str, ...] = SIZES,
    trees: Any = (HERE,),
    timed: int = 300,
) -> str:
    """Return the cost of each size of the ensemble, for each number of rows and each tree."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, n_rows in (("few", FEW), ("many", MANY)):
            write_rows(folder / f"{file}.csv", n_rows, seed=1)
        every = [row for n in rows for row in costs(n, sizes, trees, folder, timed)]
    heads = ["rows", "tree", "size", "seconds", "/ forest", "/ LightGBM", "MB", "most GB"]
    return table([*heads, "flag, rows/s", "after the start", "a row alone"], every)


def costs(
    n_rows: int, sizes: tuple[str, ...], trees: Any, folder: Path, timed: int
) -> list[list[str]]:
    """Fit a forest and LightGBM, then let each tree fit each size, in turns."""
    from lightgbm import LGBMClassifier

    X, y = write_rows(folder / "rows.csv", n_rows, seed=0)
    forest = spent(lambda: RandomForestClassifier(timed, random_state=0).fit(X, y)) * 300 / timed
    boosting = spent(lambda: LGBMClassifier(n_jobs=1, verbose=-1).fit(X, y))
    blanks = [""] * 5
    made = [[f"{n_rows:,}", "", "forest", f"{forest:.2f}", "1", "", *blanks]]
    made.append([f"{n_rows:,}", "", "LightGBM", f"{boosting:.2f}", "", "1", *blanks])
    for size in sizes:
        for tree in trees:
            options = ["--target", "fraud", "--multiple", "2", "--size", size, "-o", "fraud.model"]
            seconds, memory = command(tree, folder, "fit", "rows.csv", *options)
            ratios = f"{seconds / forest:.2f}", f"{seconds / boosting:.1f}"
            weight = f"{(folder / 'fraud.model').stat().st_size / 1e6:.2f}"
            about = [f"{n_rows:,}", str(tree), size, f"{seconds:.2f}", *ratios, weight]
            made.append([*about, f"{memory:.1f}", *flagging(tree, folder)])
    return made


def flagging(tree: Path, folder: Path) -> list[str]:
    """Return the speed of `flag`, the whole command and without its start, and of a row alone."""
    few, many = (
        command(tree, folder, "flag", "fraud.model", f"{file}.csv", "-o", "flags.csv")[0]
        for file in ("few", "many")
    )
    run = [sys.executable, "-c", ALONE]
    alone = subprocess.run(run, cwd=folder, env=path_of(tree), capture_output=True, check=True)
    return [
        f"{MANY / many:,.0f}",
        f"{(MANY - FEW) / (many - few):,.0f}",
        f"{float(alone.stdout):.2f} ms",
    ]


def wide(trees: Any) -> str:
    """Return the cost of a list with and without reasons, from a table with 2,000 columns."""
    made = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.csv", 2_000, seed=0, columns=WIDE)
        for tree in trees:
            options = ["--target", "fraud", "--size", "quick", "-o", "fraud.model"]
            count = ("--count", "20", "-o", "list.csv")
            fit, _ = command(tree, folder, "fit", "rows.csv", "--multiple", "2", *options)
            found = [
                command(tree, folder, "select", "fraud.model", "rows.csv", *count, *more)
                for more in ((), ("--no-reasons",))
            ]
            made.append([str(tree), f"{fit:.1f}", *(f"{seconds:.1f}" for seconds, _ in found)])
    return table(["tree", "quick fit, s", "select, s", "without reasons, s"], made)


def write_rows(file: Path, n_rows: int, *, seed: int, columns: int = COLUMNS) -> tuple[Any, Any]:
    """Write simulated fraud beside columns of noise, and return its columns and labels."""
    X, y = make_fraud(n_rows, prevalence=0.05, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=(n_rows, columns - X.shape[1]))
    X = np.hstack([X, noise])
    names = [f"x{place}" for place in range(columns)]
    pd.DataFrame(X, columns=names).assign(fraud=y).to_csv(file, index=False)
    return X, y


def command(tree: Path, folder: Path, *words: str) -> tuple[float, float]:
    """Run a command of a tree; return its processor time, and the most memory in gigabytes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "shortlist", *words],
        cwd=folder,
        env=path_of(tree),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"shortlist {' '.join(words)} failed in {tree}.")
    scale = 1e9 if sys.platform == "darwin" else 1e6
    return used.ru_utime + used.ru_stime, used.ru_maxrss / scale


def path_of(tree: Path) -> dict[str, str]:
    """Return the environment of a process that imports a tree, with one thread."""
    return os.environ | ONE_THREAD | {"PYTHONPATH": str(tree.resolve())}


def spent(function: Any) -> float:
    """Return the processor time of a call."""
    begun = time.process_time()
    function()
    return time.process_time() - begun


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--tree", type=Path, action="append", help="a folder src; default: this")
    parser.add_argument("--trees", type=int, default=300, help="of the forest, that are timed")
    parser.add_argument("--wide", action="store_true", help="reasons on 2,000 columns instead")
    asked = parser.parse_args()
    chosen = asked.tree or [HERE]
    print(
        wide(chosen)
        if asked.wide
        else main(tuple(asked.rows), tuple(asked.sizes), chosen, asked.trees)
    )
