"""`shortlist flag` and `stream`: rows per second, memory, and what they add to `predict`.

Time is that of the processor, which a busy machine changes less than the time on the wall; lines
of `stream` are counted on the wall, because they wait for the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
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

from _measure import table
from shortlist import Capacity
from shortlist.service.stream import StreamSettings, run_stream
from shortlist.service.stream_file import open_stream
from shortlist.tables import TableModel, fit_table, load_model, save_model

_CHUNK = 10**6
_NUMBERS = 8
# Read by the child from the kernel (Linux); ru_maxrss would remember the parent it was forked from.
_RUN = """
import re, sys
from pathlib import Path
from shortlist.cli._app import app
try:
    app(sys.argv[1:])
finally:
    status = Path("/proc/self/status").read_text()
    print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1], file=sys.stderr)
"""


def main(largest: int = 10**6, learner: str = "logistic") -> str:
    """Flag tables of growing length in CSV and Parquet files."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        _fit(Path(folder) / "train.csv", model, learner)
        n = 10**5
        while n <= largest:
            predict = _predict_seconds(model, min(n, _CHUNK)) * n / min(n, _CHUNK)
            for suffix in ("csv", "parquet"):
                data = Path(folder) / f"data.{suffix}"
                _write(data, n)
                elapsed, worked, megabytes = _flag(model, data)
                size = data.stat().st_size / 1e6
                data.unlink()
                rows.append(
                    [
                        suffix,
                        f"{n:.0e}",
                        f"{size:,.0f}",
                        f"{n / elapsed:,.0f}",
                        f"{n / worked:,.0f}",
                        f"{worked / predict:.1f}",
                        f"{megabytes:,.0f}",
                    ]
                )
            n *= 10
        streamed = _stream_table(model, Path(folder))
    headings = ["format", "rows", "file, MB", "rows per second", "rows per second of processor"]
    flagged = table([*headings, "processor time / predict", "peak memory, MB"], rows)
    return f"{flagged}\n\n{streamed}"


def _frame(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return payments: an id, eight numbers with gaps, two texts and a date."""
    columns = {f"x{i}": rng.normal(size=n).round(4) for i in range(_NUMBERS)}
    columns["x0"][rng.random(n) < 0.05] = np.nan
    days = rng.integers(0, 700, n).astype("timedelta64[D]")
    return pd.DataFrame(
        {
            "id": rng.integers(0, 2**40, n),
            **columns,
            "country": rng.choice(["ar", "br", "cl", "uy"], n),
            "channel": rng.choice(["web", "shop"], n),
            "opened": np.datetime_as_string(np.datetime64("2023-01-01") + days),
        }
    )


def _fit(train: Path, model: Path, learner: str) -> None:
    rng = np.random.default_rng(0)
    frame = _frame(20_000, rng)
    risk = frame["x1"] + frame["x2"] + (frame["country"] == "uy") - 5
    frame["fraud"] = rng.random(len(frame)) < 1 / (1 + np.exp(-risk))
    frame.to_csv(train, index=False)
    capacity = Capacity.count(20, per=1_000)
    save_model(
        fit_table(train, target="fraud", id="id", capacity=capacity, learner=learner).model, model
    )


def _write(path: Path, n: int) -> None:
    """Write a table in pieces, to keep the benchmark itself small."""
    rng, writer = np.random.default_rng(1), None
    kind = pa.csv.CSVWriter if path.suffix == ".csv" else pa.parquet.ParquetWriter
    for start in range(0, n, _CHUNK):
        piece = pa.Table.from_pandas(_frame(min(_CHUNK, n - start), rng), preserve_index=False)
        writer = writer or kind(path, piece.schema)
        writer.write_table(piece)
    if writer is not None:
        writer.close()


def _flag(model: Path, data: Path) -> tuple[float, float, float]:
    """Return seconds, those of the processor, and peak megabytes, of the whole process."""
    out = data.with_suffix(".out.csv")
    command = [sys.executable, "-c", _RUN, "flag", str(model), str(data), "-o", str(out)]
    start, worked_before = time.perf_counter(), _worked()
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    elapsed = time.perf_counter() - start
    out.unlink()
    return elapsed, _worked() - worked_before, int(result.stderr.split()[-1]) / 1e3


def _worked() -> float:
    """Return the processor time of all finished children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _predict_seconds(model: Path, n: int) -> float:
    """Return the processor time of the models inside, on rows already in memory."""
    loaded = load_model(model)
    X = loaded.schema.convert(
        pa.Table.from_pandas(_frame(n, np.random.default_rng(1)), preserve_index=False)
    ).X
    times = []
    for _ in range(3):
        start = time.process_time()
        loaded.predict(X)
        times.append(time.process_time() - start)
    return statistics.median(times)


def _stream_table(model: Path, folder: Path) -> str:
    """Stream lines from a file, saved together or one by one, with and without sync.

    The peer is the model's own `predict` on bundles of the same size.
    """
    loaded, rows = load_model(model), []
    settings = StreamSettings(Capacity.count(100), period=3_600.0)
    for batch, n in ((1_024, 8 * 1_024), (32, 1_024), (1, 200)):
        frame = _frame(n, np.random.default_rng(1))
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        lines = folder / "lines.jsonl"
        lines.write_text("".join(json.dumps(r | {"at": i}) + "\n" for i, r in enumerate(records)))
        predict = n / batch * _predict_seconds(model, batch)
        for sync in (True, False):
            elapsed = min(
                _stream_seconds(loaded, settings, lines, folder, batch=batch, sync=sync)
                for _ in range(3)
            )
            rate, ratio = f"{n / elapsed:,.0f}", f"{elapsed / predict:.1f}"
            rows.append([f"{batch:,}", "each commit" if sync else "never", rate, ratio])
    return table(["lines per commit", "fsync", "lines per second", "time / predict"], rows)


def _stream_seconds(
    model: TableModel,
    settings: StreamSettings,
    lines: Path,
    folder: Path,
    *,
    batch: int,
    sync: bool,
) -> float:
    state, source = folder / "state", os.open(lines, os.O_RDONLY)
    state.unlink(missing_ok=True)
    opened = open_stream(state, settings.controller(model), identity={}, sync=sync)
    with opened as durable, (folder / "out.jsonl").open("wb") as out:
        start = time.perf_counter()
        run_stream(model, durable, source, out, batch=batch)
        elapsed = time.perf_counter() - start
    os.close(source)
    return elapsed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=10**6, help="most rows, such as 1e7")
    parser.add_argument("--learner", default="logistic")
    arguments = parser.parse_args()
    print(main(int(arguments.largest), arguments.learner))
