"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..capacity import Capacity

__all__ = ["AsJson", "Data", "Model", "Out", "capacity_from"]

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file made by fit.")]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv (also .gz), .parquet, .feather; - reads CSV from standard input.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Write to this file: .csv, .parquet, .feather or .jsonl."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def capacity_from(
    capacity: int | None, per: int | None, fraction: float | None, multiple: float | None
) -> Capacity:
    """Make the capacity out of the one way in which it was given."""
    given = [value for value in (capacity, fraction, multiple) if value is not None]
    if len(given) != 1:
        raise typer.BadParameter(
            "give the capacity in exactly one way: --capacity 600 --per 10000, --fraction 0.06, "
            "or --multiple 3"
        )
    if (capacity is None) != (per is None):
        raise typer.BadParameter(
            "--capacity and --per belong together: 600 reviews for every 10,000 cases are "
            "--capacity 600 --per 10000"
        )
    if capacity is not None:
        return Capacity.count(capacity, per=per)
    return Capacity.fraction(fraction) if fraction is not None else Capacity.multiple(multiple)
