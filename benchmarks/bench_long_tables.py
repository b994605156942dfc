"""Time and peak memory of commands that read a long table with a model.

    python benchmarks/bench_long_tables.py                     # 10**6 and 10**7 rows
    python benchmarks/bench_long_tables.py --rows 1000000 --formats csv

Each command runs in a process of its own. Memory is the peak of that process; a process that only
imports the package and loads the model is the first line. With --check, evaluations are
compared with a run that holds all rows in memory, to the last digit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from shortlist import Capacity
from shortlist.tables import fit_table, save_model

_PART = 10**6
_RUN = """
import json, re, sys
from pathlib import Path
from shortlist.tables import load_model
from shortlist.tables import cases, evaluate_table, recalibrate_table
from shortlist.distributed import evaluate

name, model, path, check = sys.argv[1:]
model = load_model(Path(model))
if check == "1":
    cases._BLOCK_ROWS = cases._MOST_BYTES = 10**12
work = {
    "load": lambda: None,
    "evaluate": lambda: evaluate_table(model, Path(path)),
    "engine": lambda: evaluate(model, Path(path), id="case"),
    "recalibrate": lambda: recalibrate_table(model, Path(path), capacity=Capacity.fraction(0.02)),
}
from shortlist import Capacity
answer = work[name]()
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
said = {n: v for n, v in vars(answer).items() if n not in ("drift", "model")} if answer else ""
print(json.dumps([peak, repr(said)]))
"""


def make_rows(n: int, seed: int, start: int = 0) -> pd.DataFrame:
    """Draw cases with four numbers, of which about one per cent are rare."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)).round(3), columns=list("abcd"))
    risk = 1 / (1 + np.exp(6 - X["a"] - 0.5 * X["b"]))
    return X.assign(case=np.arange(start, start + n), fraud=(rng.random(n) < risk).astype(int))


def write_rows(path: Path, n_rows: int) -> None:
    """Write a table in pieces."""
    writer = None
    for start in range(0, n_rows, _PART):
        part = make_rows(min(_PART, n_rows - start), start + 1, start)
        table = pa.Table.from_pandas(part, preserve_index=False)
        if writer is None and path.suffix == ".csv":
            writer = pa.csv.CSVWriter(str(path), table.schema)
        writer = writer or pa.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def run(name: str, model: Path, path: Path, *, check: bool = False) -> tuple[float, float, str]:
    """Run one function in a process of its own; return seconds, megabytes and what it said."""
    import json

    start = time.perf_counter()
    command = [sys.executable, "-c", _RUN, name, str(model), str(path), str(int(check))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, said = json.loads(done.stdout.splitlines()[-1])
    return time.perf_counter() - start, peak, said


def main() -> None:
    """Print one line for each command and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--formats", nargs="+", default=["parquet"], choices=["parquet", "csv"])
    parser.add_argument(
        "--commands", nargs="+", default=["load", "evaluate", "engine", "recalibrate"]
    )
    parser.add_argument("--check", action="store_true", help="compare with all rows in memory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_rows(20_000, 0).to_csv(folder / "fit.csv", index=False)
        fitted = fit_table(
            folder / "fit.csv",
            target="fraud",
            id="case",
            capacity=Capacity.fraction(0.01),
            learner="logistic",
        )
        save_model(fitted.model, folder / "m.model")
        for n_rows in given.rows:
            for kind in given.formats:
                path = folder / f"rows.{kind}"
                write_rows(path, n_rows)
                for command in given.commands:
                    seconds, peak, said = run(command, folder / "m.model", path)
                    line = f"{n_rows:>11,} {kind:>8} {command:>12} {seconds:8.1f} s {peak:7,.0f} MB"
                    if given.check and command != "load":
                        _, held, want = run(command, folder / "m.model", path, check=True)
                        line += f"   held: {held:,.0f} MB, {'equal' if said == want else 'OTHER'}"
                    print(line, flush=True)


if __name__ == "__main__":
    main()
