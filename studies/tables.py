"""Tables of studies: lists of rows, saved as CSV files, summarised, and written as Markdown."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from shortlist._core.files import write_whole

__all__ = [
    "Table",
    "markdown_table",
    "mean_and_error",
    "read_table",
    "select_rows",
    "summarise",
    "write_table",
]

Table = list[dict[str, Any]]


def write_table(table: Table, path: Path) -> Path:
    """Save a table, whole or not at all; numbers keep all their digits.

    A path that ends in `.gz` is compressed, without a date: equal tables have equal bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    plain = text.getvalue().encode()
    with write_whole(path) as file:
        file.write(gzip.compress(plain, mtime=0) if path.suffix == ".gz" else plain)
    return path


def read_table(path: Path) -> Table:
    """Read a table; text that looks like a number becomes one."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    with io.StringIO(text.decode(), newline="") as file:
        return [{name: _number(text) for name, text in row.items()} for row in csv.DictReader(file)]


def select_rows(table: Table, **wanted: Any) -> Table:
    """Return the rows with these values."""
    return [row for row in table if all(row[name] == value for name, value in wanted.items())]


def summarise(table: Table, by: Iterable[str], value: str) -> Table:
    """Return mean, standard error and count of the values in each group, in order of appearance."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    names = list(by)
    for row in table:
        groups.setdefault(tuple(row[name] for name in names), []).append(row[value])
    return [
        {**dict(zip(names, key, strict=True)), **mean_and_error(values)}
        for key, values in groups.items()
    ]


def mean_and_error(values: Iterable[float]) -> dict[str, Any]:
    """Return the mean, its standard error, and the number of values."""
    sample = np.array(list(values), dtype=np.float64)
    error = float(sample.std(ddof=1) / np.sqrt(sample.size)) if sample.size > 1 else np.nan
    return {"mean": float(sample.mean()), "error": error, "count": sample.size}


def markdown_table(table: Table) -> list[str]:
    """Return the lines of a table in Markdown; numbers are rounded to four digits."""
    names = list(table[0])
    rows = [[_cell(row[name]) for name in names] for row in table]
    return [_line(names), _line(["---"] * len(names)), *map(_line, rows)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = "unknown" if text == "nan" else text
    return text.replace("|", "\\|")


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
