"""What all commands share: their options and their answers."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ._errors import say

if TYPE_CHECKING:
    from ..capacity import Capacity
    from ..tables.monitor import Finding

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_NAMES = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}

# --- options ---

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file made by fit.")]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv (also .gz), .xlsx, .jsonl, .parquet, .feather, or a folder with "
        "its parts; - reads CSV from standard input.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Write here, such as -o list.xlsx: .csv, .xlsx, .parquet, .feather or .jsonl.",
    ),
]
#: For --zone.
ZONE_HELP = (
    "Time zone, such as --zone Europe/Berlin: periods are then days, weeks, months or "
    "'Mon-Fri 09:00-17:00' of its calendar, with summer time."
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


CapacityCount = Annotated[
    int | None,
    typer.Option("--capacity", help="How many cases can be followed up ...", min=0, metavar="N"),
]
Per = Annotated[
    int | None,
    typer.Option(help="... of how many, such as --capacity 600 --per 10000.", min=1, metavar="N"),
]
Fraction = Annotated[
    float | None,
    typer.Option(help="Or the share of all cases, such as --fraction 0.06.", metavar="SHARE"),
]
Multiple = Annotated[
    float | None,
    typer.Option(
        help="Or how many cases for each rare one, such as --multiple 3.", metavar="NUMBER"
    ),
]


def _guarantees(incomplete: str) -> list[str]:
    from ..thresholds import GUARANTEES

    return [name for name in GUARANTEES if name.startswith(incomplete)]


Guarantee = Annotated[
    str | None,
    typer.Option(
        help="plug-in, expected, confident, next-batch or simultaneous, such as --guarantee "
        "confident. Default: expected, or that of the model.",
        metavar="NAME",
        autocompletion=_guarantees,
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        help="How surely the last three guarantees hold, such as --confidence 0.99.",
        metavar="SHARE",
    ),
]
NBatches = Annotated[
    int | None,
    typer.Option(
        "--n-batches",
        help="With --guarantee next-batch: how many batches in a row keep the capacity, such as "
        "--n-batches 5.",
        min=1,
        metavar="N",
    ),
]


def columns_of_data(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the table that was typed, for completion by the shell."""
    from ..tables.read import open_table

    # Bash and other shells hand the words over in variables of their own.
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    for word in typed.split()[2:]:
        try:
            with open_table(Path(word)) as source:
                return [name for name in source.columns if name.startswith(incomplete)]
        except Exception:  # not a table: a shell that completes shows no errors
            continue
    return []


Target = Annotated[
    str | None,
    typer.Option(
        autocompletion=columns_of_data,
        metavar="COLUMN",
        help="The column with the labels, such as --target fraud. Default: that of the fit.",
    ),
]


def _columns_or_all(ctx: typer.Context, incomplete: str) -> list[str]:
    every = ["all"] if "all".startswith(incomplete) else []
    return [*every, *columns_of_data(ctx, incomplete)]


Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        autocompletion=_columns_or_all,
        metavar="NAMES",
        help="Columns to carry along, such as --keep name,town; --keep all takes all of them.",
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        autocompletion=columns_of_data,
        metavar="NAME",
        help="The column that names a case, such as --id customer; never learned from. Default: "
        "that of the model.",
    ),
]
Exclude = Annotated[
    Path | None,
    typer.Option(
        "--exclude", help="A table with the ids of cases to leave out, such as --exclude done.csv."
    ),
]


Reviews = Annotated[
    Path | None,
    typer.Option(
        "--reviews",
        help="A table of reviews with probes, such as --reviews done.csv: says what is missed.",
    ),
]
Period = Annotated[
    str | None,
    typer.Option(
        "--period",
        metavar="COLUMN",
        help="A column of the reviews with periods, such as --period week, for an answer for each.",
    ),
]
Probe = Annotated[
    float,
    typer.Option(
        help="Share of the flags for cases below the threshold, drawn at random, such as "
        "--probe 0.1.",
        min=0,
        max=1,
    ),
]
ProbeKey = Annotated[
    str | None,
    typer.Option(
        envvar="SHORTLIST_PROBE_KEY",
        help="A text that makes the draw reproducible, such as --probe-key trial. By default a "
        "secret one is made up and kept in the state.",
    ),
]


def capacity_from(
    capacity: int | None, per: int | None, fraction: float | None, multiple: float | None
) -> Capacity:
    """Return the capacity that the options give; they must give exactly one."""
    from ..capacity import Capacity

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
    _check_limits(capacity, per, fraction, multiple)
    if capacity is not None:
        return Capacity.count(capacity, per=per)
    return Capacity.fraction(fraction) if fraction is not None else Capacity.multiple(multiple)


def _check_limits(
    capacity: int | None, per: int | None, fraction: float | None, multiple: float | None
) -> None:
    if capacity is not None and per is not None and capacity > per:
        raise typer.BadParameter(
            f"--capacity {capacity} must be at most --per {per}: no more cases than there are can "
            "be followed up"
        )
    if fraction is not None and not 0 <= fraction <= 1:
        raise typer.BadParameter(
            f"--fraction {fraction:g} must be at least 0 and must be at most 1: for 6 % write "
            "--fraction 0.06, and for 6 of every 1,000 cases --capacity 6 --per 1000"
        )
    if multiple is not None and not 0 <= multiple < math.inf:
        raise typer.BadParameter(
            f"--multiple {multiple:g} must be a number of at least 0, such as --multiple 3 for "
            "three follow-ups per rare case"
        )


def period_from(period: str, zone: str | None) -> float | str:
    """Return the seconds of a period, or its text if it belongs to a calendar."""
    if zone is not None or period == "month" or " " in period.strip():
        return period if zone is None and " " in period.strip() else f"{period} {zone or 'UTC'}"
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", _NAMES.get(period, period).strip())
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(
            f"--period {period} is not a length of time; use hour, day, week, 90s, 15m, 12h or 2d, "
            "or with --zone: day, week, month or 'Mon-Fri 09:00-17:00'"
        )
    return float(match[1]) * _UNITS[match[2] or "s"]


# --- answers ---


def tell(notes: Iterable[str], findings: Iterable[Finding] = ()) -> None:
    """Print notes and warnings on standard error, one line each."""
    for note in notes:
        say("Note", note)
    for finding in findings:
        say("Warning" if finding.is_serious else "Note", finding.message)


def print_json(content: Any) -> None:
    """Print one JSON object; NaN and infinities become null."""
    typer.echo(as_json_text(content))


def as_json_text(content: Any) -> str:
    """Return one JSON object as text; NaN and infinities become null."""
    from .._core.plain_json import to_plain

    return json.dumps(to_plain(content), allow_nan=False)


def shown_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, n_left: int = 1, **options: Any
) -> Table:
    """Return a table whose first columns are texts, and the others numbers."""
    table = Table(**options)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < n_left else "right")
    for row in rows:
        table.add_row(*row)
    return table


def progress_bar() -> Progress:
    """Return a bar on standard error, for terminals only, which vanishes at the end."""
    console = Console(stderr=True)
    console.quiet = not console.is_terminal  # older versions of rich end a disabled bar with a line
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def waiting(what: str) -> Any:
    """Return a context that shows on a terminal what is being done."""
    return Console(stderr=True).status(what)


def reporter(progress: Progress, first: str) -> Callable[[str, int, int], None]:
    """Return a function that shows the current step, and how many are done, in a bar."""
    task = progress.add_task(first, total=None)
    return lambda step, done, total: progress.update(
        task, description=step, completed=done, total=total or None
    )


def rows_read(progress: Progress) -> Callable[[int], None]:
    """Return a function that shows in a bar how many rows were read."""
    task = progress.add_task("reading", total=None)
    return lambda n_rows: progress.update(task, description=f"{n_rows:,} rows")


def percent(share: float | None) -> str:
    """Format a share for a table; a dash if there is none."""
    return "–" if share is None or math.isnan(share) else f"{share:.1%}"


def interval(ends: Any) -> str:
    """Format an interval of shares for a table; a dash if there is none."""
    return "–" if ends is None else f"{ends.low:.1%} to {ends.high:.1%}"
