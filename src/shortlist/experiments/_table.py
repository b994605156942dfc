"""Tables of experiments: lists of rows that are saved as small CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .._core.atomic import write_whole

__all__ = ["Table", "mean_and_error", "read_table", "summarise", "write_table"]

Table = list[dict[str, Any]]


def write_table(table: Table, path: Path) -> Path:
    """Save a table, whole or not at all; numbers keep all their digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    with write_whole(path) as file:
        file.write(text.getvalue().encode())
    return path


def read_table(path: Path) -> Table:
    """Read a table; what looks like a number becomes one."""
    with path.open(newline="") as file:
        return [{name: _number(text) for name, text in row.items()} for row in csv.DictReader(file)]


def summarise(table: Table, by: Iterable[str], value: str) -> Table:
    """Return mean, standard error and number of the values in each group, in order of arrival."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    names = list(by)
    for row in table:
        groups.setdefault(tuple(row[name] for name in names), []).append(row[value])
    return [
        {**dict(zip(names, key, strict=True)), **mean_and_error(values)}
        for key, values in groups.items()
    ]


def mean_and_error(values: list[float]) -> dict[str, Any]:
    """Return the mean, its standard error, and the number of values."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return {"mean": float(np.mean(values)), "error": error, "count": len(values)}


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
