"""What `shortlist fit` costs, the whole command, beside one forest of 300 trees on the same rows.

    python benchmarks/bench_fit.py 10000 quick default

Time to score a row: among 1,000 by the model that ranks lists, and alone by the compiled scorer of
`stream` and the service. `PYTHONPATH` can name another version, to compare with.
"""

from __future__ import annotations

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
from shortlist.learners.members import SIZES
from shortlist.tables import load_model

BATCH = 1_000
ALONE = 200
COLUMNS = 20
_SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def main(sizes: tuple[int, ...] = (1_000, 10_000), names: tuple[str, ...] = ()) -> str:
    """Return the cost of each size of the ensemble, for each number of rows."""
    with tempfile.TemporaryDirectory() as folder:
        every = [row for n in sizes for row in costs(n, names or tuple(SIZES), Path(folder))]
    return table(
        [
            *("rows", "size", "processor time", "/ one forest", "model file", "batch, a row"),
            *("alone", "most memory"),
        ],
        every,
    )


def costs(n_rows: int, names: tuple[str, ...], folder: Path) -> list[list[str]]:
    """Fit the forest and each size, and count processor time."""
    X, y = make_fraud(n_rows, prevalence=0.05, random_state=0)
    noise = np.random.default_rng(0).normal(size=(n_rows, COLUMNS - X.shape[1]))
    X = np.hstack([X, noise])
    rows = pd.DataFrame(X, columns=[f"x{place}" for place in range(COLUMNS)])
    rows.assign(fraud=y).to_csv(folder / "rows.csv", index=False)
    forest = RandomForestClassifier(300, random_state=0)
    alone, _ = _timed(lambda: forest.fit(X, y))
    made = [[f"{n_rows:,}", "one forest", f"{alone:.1f} s", "1", "", "", "", ""]]
    return made + [_row(n_rows, name, alone, rows, folder) for name in names]


def _row(n_rows: int, name: str, alone: float, rows: Any, folder: Path) -> list[str]:
    spent, memory = _command(name, folder)
    model = load_model(folder / "fraud.model")
    batch, _ = _timed(lambda: model.classifier.score_samples(rows[:BATCH]))
    scorer, values = model.row_scorer, rows[:ALONE].to_numpy().tolist()
    scorer.score_row(values[0])
    single, _ = _timed(lambda: [scorer.score_row(row) for row in values])
    return [
        f"{n_rows:,}",
        name,
        f"{spent:.1f} s",
        f"{spent / alone:.1f}",
        f"{(folder / 'fraud.model').stat().st_size / 1e6:.1f} MB",
        f"{1e3 * batch / min(BATCH, n_rows):.2f} ms",
        f"{1e3 * single / len(values):.2f} ms",
        f"{memory:.1f} GB",
    ]


def _command(size: str, folder: Path) -> tuple[float, float]:
    """Run the command in a process of its own; return its processor time, and most memory."""
    options = ["--target", "fraud", "--multiple", "2", "--size", size]
    command = [sys.executable, "-m", "shortlist", "fit", "rows.csv", *options, "-o", "fraud.model"]
    process = subprocess.Popen(command, cwd=folder, **_SILENT)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed.")
    scale = 1e9 if sys.platform == "darwin" else 1e6
    return used.ru_utime + used.ru_stime, used.ru_maxrss / scale


def _timed(function: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


if __name__ == "__main__":
    wanted = tuple(int(size) for size in sys.argv[1:2])
    print(main(wanted or (1_000, 10_000), tuple(sys.argv[2:])))
