"""Tables to open files, a chunk at a time, in the format that the name of the file asks for."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..exceptions import TableError
from ._extra import pyarrow as pa

__all__ = ["open_writer", "output_format"]

Write = Callable[[dict[str, Any]], None]


def output_format(path: Path) -> str:
    """Return the format of an output file, by its extension."""
    suffix = path.suffix.lower().removeprefix(".")
    known = {"pq": "parquet", "arrow": "feather", "ndjson": "jsonl"}.get(suffix, suffix)
    if known not in _WRITERS:
        raise TableError(
            f"{path} has an extension that cannot be written. "
            "Use .csv, .parquet, .feather or .jsonl."
        )
    return known


@contextlib.contextmanager
def open_writer(file: BinaryIO, format: str, schema: dict[str, str]) -> Iterator[Write]:
    """Write columns to an open file; `schema` gives their names and Arrow types."""
    arrow = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in schema.items()])
    with _WRITERS[format](file, arrow) as write:
        yield lambda columns: write(pa.record_batch(columns, schema=arrow))


@contextlib.contextmanager
def _csv(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    with pa.csv.CSVWriter(
        file, schema, write_options=pa.csv.WriteOptions(quoting_style="needed")
    ) as writer:
        yield writer.write


@contextlib.contextmanager
def _parquet(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    with pa.parquet.ParquetWriter(file, schema) as writer:
        yield writer.write_batch


@contextlib.contextmanager
def _feather(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    with pa.ipc.new_file(file, schema) as writer:
        yield writer.write


@contextlib.contextmanager
def _jsonl(file: BinaryIO, schema: Any) -> Iterator[Callable[[Any], None]]:
    def write(batch: Any) -> None:
        for row in batch.to_pylist():
            file.write(json.dumps(row).encode() + b"\n")

    yield write


_WRITERS: dict[str, Any] = {
    "csv": _csv,
    "parquet": _parquet,
    "feather": _feather,
    "jsonl": _jsonl,
}
