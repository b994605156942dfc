"""What all commands share: their options, their answers, and one line for what goes wrong.

Exit codes: 0 for success, 2 for an invalid option, table or model file, 3 if an output cannot be
written (or the operating system reports another error), 130 after Ctrl-C. Any other error is a bug
and shows its traceback.
"""

from __future__ import annotations

import errno
import functools
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from ..capacity import Capacity

__all__ = [
    "INTERRUPTED",
    "SYSTEM_ERROR",
    "USER_ERROR",
    "ZONE_HELP",
    "AsJson",
    "Data",
    "Model",
    "Out",
    "Target",
    "answering",
    "as_json_text",
    "capacity_from",
    "interval",
    "percent",
    "period_from",
    "print_json",
    "progress_bar",
]

USER_ERROR = 2
SYSTEM_ERROR = 3
INTERRUPTED = 130

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_NAMES = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}

Command = TypeVar("Command", bound=Callable[..., None])

# --- options ---

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file made by fit.")]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv (also .gz), .parquet, .feather; - reads CSV from standard input.",
    ),
]
Target = Annotated[
    str | None, typer.Option(help="The column with the labels; by default the target of the fit.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Write to this file: .csv, .parquet, .feather or .jsonl."),
]
#: For --zone.
ZONE_HELP = (
    "Time zone, such as Europe/Berlin: periods are then days, weeks, months or "
    "'Mon-Fri 09:00-17:00' of its calendar, with summer time."
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


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
    if capacity is not None:
        return Capacity.count(capacity, per=per)
    return Capacity.fraction(fraction) if fraction is not None else Capacity.multiple(multiple)


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


# --- errors and warnings ---


def answering(command: Command) -> Command:
    """Turn the errors of a command into one line and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _warnings_in_one_line():
                command(*args, **kwargs)
        except KeyboardInterrupt:
            _stop("Interrupted. No output file was written.", INTERRUPTED)
        except (ValueError, ImportError) as error:
            if os.environ.get("SHORTLIST_DEBUG"):
                raise
            _stop(str(error), USER_ERROR)
        except MemoryError:
            _stop("Not enough memory. Use a smaller table, or a larger machine.", SYSTEM_ERROR)
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of the output has stopped reading
                raise
            _stop(_system_error(error), SYSTEM_ERROR)

    return run  # type: ignore[return-value]


def _stop(message: str, code: int) -> None:
    typer.echo(f"Error: {_one_line(message)}", err=True)
    raise typer.Exit(code)


def _system_error(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            "The disk is full. No output file was written. Free some space, or write to another "
            "disk."
        )
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"


def _one_line(message: str) -> str:
    return " ".join(message.split())


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print each warning once, without its source line, even if an error follows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                typer.echo(f"Warning: {_one_line(message)}", err=True)


# --- answers ---


def print_json(content: Any) -> None:
    """Print one JSON object; NaN and infinities become null."""
    typer.echo(as_json_text(content))


def as_json_text(content: Any) -> str:
    """Return one JSON object as text; NaN and infinities become null."""
    from .._core.plain_json import to_plain

    return json.dumps(to_plain(content), allow_nan=False)


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


def percent(share: float | None) -> str:
    """Format a share for a table; a dash if there is none."""
    return "–" if share is None or math.isnan(share) else f"{share:.1%}"


def interval(ends: Any) -> str:
    """Format an interval of shares for a table; a dash if there is none."""
    return "–" if ends is None else f"{ends.low:.1%} to {ends.high:.1%}"
