"""Tidy tables as small CSV files, written whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from ._runner import Row

__all__ = ["write_table"]


def write_table(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows to a CSV file under the names of the first row, by way of a temporary file."""
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return unfinished.replace(path)
