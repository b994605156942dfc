"""One row at a time: lines of `stream` per second, and processor time from a JSON line to a score.

The peers are the model itself, asked for one row at a time, and ONNX Runtime with the graph that
`export` writes. All of them get the same lines in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

from _measure import cpu_seconds, table
from bench_cli import _frame
from shortlist import Capacity
from shortlist.service._models import LoadedModel
from shortlist.service.stream import LineReader, StreamSettings, run_stream
from shortlist.service.stream_file import open_stream
from shortlist.tables import TableModel, fit_table, save_model
from shortlist.tables.estimators import LEARNERS
from shortlist.tables.model_file import export_model

_STREAMED = [
    *("learner", "scorer", "lines/s", "with fsync", "bare fsyncs/s", "with fsync, lines waiting"),
]
_SCORED = [
    *("learner", "file, MB", "µs, line to score", "of which the score", "µs, model"),
    "µs, ONNX Runtime",
]
_BATCH = 1_024  # as in `shortlist stream`: lines that wait are decided and synced together
_FAMILIES = ("logistic", "forest", "boosting", "network", "svm", "aware-forest", "auto")


def main(families: tuple[str, ...] = _FAMILIES, n_rows: int = 20_000) -> str:
    """Fit a model of each family, stream lines through it, and score single lines."""
    streamed, scored = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, lines = _data(folder / "train.csv", n_rows), _lines(1_000)
        for family in families:
            model = _fitted(data, family)
            streamed.append([family, *_stream_row(model, lines, folder)])
            scored.append([family, *_score_row(model, lines, folder)])
    return "\n\n".join(
        [
            table(_STREAMED, streamed),
            table(_SCORED, scored),
        ]
    )


def _data(path: Path, n_rows: int) -> Path:
    """Write payments with labels: an id, eight numbers with gaps, two texts and a date."""
    rng = np.random.default_rng(0)
    frame = _frame(n_rows, rng)
    risk = frame["x1"] + frame["x2"] * frame["x3"] + (frame["country"] == "uy") - 4.5
    frame["fraud"] = rng.random(n_rows) < 1 / (1 + np.exp(-risk))
    frame.to_csv(path, index=False)
    return path


def _fitted(data: Path, learner: str) -> TableModel:
    capacity = Capacity.count(20, per=1_000)
    return fit_table(data, target="fraud", id="id", capacity=capacity, learner=learner).model


def _lines(n: int) -> list[bytes]:
    frame = _frame(n, np.random.default_rng(1))
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [json.dumps(record | {"at": k}).encode() for k, record in enumerate(records)]


def _stream_row(model: TableModel, lines: list[bytes], folder: Path) -> list[str]:
    """Decide about lines one by one, without and with the disk; and about those that wait."""
    rates = [_rate(model, lines, folder, sync=sync) for sync in (False, True)]
    waiting = _rate(model, lines, folder, sync=True, batch=_BATCH)
    shown = [f"{rate:,.0f}" for rate in (*rates, _syncs_per_second(folder), waiting)]
    return [model.row_scorer.kind, *shown]


def _rate(
    model: TableModel, lines: list[bytes], folder: Path, *, sync: bool, batch: int = 1
) -> float:
    return len(lines) / min(_seconds(model, lines, folder, sync, batch) for _ in range(3))


def _seconds(model: TableModel, lines: list[bytes], folder: Path, sync: bool, batch: int) -> float:
    state, given = folder / "state", folder / "lines.jsonl"
    state.unlink(missing_ok=True)
    given.write_bytes(b"\n".join(lines) + b"\n")
    settings = StreamSettings(Capacity.count(100), period=3_600.0)
    opened = open_stream(state, settings.controller(model), identity={}, sync=sync)
    source = os.open(given, os.O_RDONLY)
    with opened as durable, (folder / "out.jsonl").open("wb") as out:
        start = time.perf_counter()
        run_stream(model, durable, source, out, batch=batch)
        elapsed = time.perf_counter() - start
    os.close(source)
    return elapsed


def _syncs_per_second(folder: Path, n: int = 50) -> float:
    """Return how often the disk can be waited for: no stream with fsync is faster."""
    with (folder / "bare").open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(n):
            file.write(b"x" * 100)
            os.fdatasync(file.fileno())
        return n / (time.perf_counter() - start)


def _score_row(model: TableModel, lines: list[bytes], folder: Path) -> list[str]:
    loaded = LoadedModel(0, model)
    reader = LineReader(loaded, id_field=None, time_field="at")
    items = [reader.read(k, line) for k, line in enumerate(lines)]
    rows = [item.values for item in items]
    whole = cpu_seconds(
        lambda: [loaded.score([reader.read(k, line)]) for k, line in enumerate(lines)]
    )
    score = cpu_seconds(lambda: [model.row_scorer.score_row(row) for row in rows])
    slow = cpu_seconds(
        lambda: [model.classifier.score_samples(loaded.frame([item])) for item in items[:20]],
        repeats=3,
    )
    save_model(model, folder / "model")
    return [
        f"{(folder / 'model').stat().st_size / 1e6:,.1f}",
        f"{whole / len(lines) * 1e6:,.0f}",
        f"{score / len(lines) * 1e6:,.0f}",
        f"{slow / 20 * 1e6:,.0f}",
        _onnx_microseconds(model, rows, folder / "graph.onnx"),
    ]


def _onnx_microseconds(model: TableModel, rows: list[list], path: Path) -> str:
    """Return the time of a row of numbers and texts in ONNX Runtime, or a dash."""
    try:
        export_model(model, path)
    except (ValueError, AttributeError):
        return "-"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path.read_bytes(), options)
    names = [feature.name for feature in model.schema.features]
    inputs = [
        {
            name: np.array([[value]], dtype=object if isinstance(value, str) else np.float64)
            for name, value in zip(names, row, strict=True)
        }
        for row in rows
    ]
    worked = cpu_seconds(lambda: [session.run(["score"], each) for each in inputs])
    return f"{worked / len(rows) * 1e6:,.0f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=20_000, help="rows to train on")
    parser.add_argument("--learner", action="append", choices=LEARNERS, help="one of the families")
    arguments = parser.parse_args()
    print(main(tuple(arguments.learner or _FAMILIES), int(arguments.rows)))
