"""How every command ends: with an answer, or with one line on what went wrong.

Exit codes: 0 for success, 2 for a wrong option, table or model file, 3 for an output that could
not be written (or another complaint of the operating system), 130 after Ctrl-C. Anything else is a
bug, and shows its traceback.
"""

from __future__ import annotations

import errno
import functools
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = [
    "INTERRUPTED",
    "answering",
    "as_json_text",
    "interval",
    "percent",
    "print_json",
    "progress_bar",
]

USER_ERROR = 2
SYSTEM_ERROR = 3
INTERRUPTED = 130

Command = TypeVar("Command", bound=Callable[..., None])


def answering(command: Command) -> Command:
    """Turn what goes wrong in a command into one line and an exit code."""

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
            if error.errno == errno.EPIPE:  # the reader of our output has had enough
                raise
            _stop(_system_complaint(error), SYSTEM_ERROR)

    return run  # type: ignore[return-value]


def _stop(message: str, code: int) -> None:
    typer.echo(f"Error: {_one_line(message)}", err=True)
    raise typer.Exit(code)


def _system_complaint(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "The disk is full. No output file was written: make room, or write elsewhere."
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"


def _one_line(message: str) -> str:
    return " ".join(message.split())


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show each warning once and without its source line; say them also before an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                typer.echo(f"Warning: {_one_line(message)}", err=True)


def print_json(content: Any) -> None:
    """Print one JSON object; what is not a number becomes null."""
    typer.echo(as_json_text(content))


def as_json_text(content: Any) -> str:
    """Write one JSON object; what is not a number becomes null."""
    return json.dumps(_plain(content), allow_nan=False)


def _plain(content: Any) -> Any:
    if is_dataclass(content) and not isinstance(content, type):
        content = asdict(content)
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def progress_bar() -> Progress:
    """Return a bar on standard error, which vanishes when the work is done; only on a terminal."""
    console = Console(stderr=True)
    console.quiet = not console.is_terminal  # older rich ends a bar that is off with a line
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def percent(share: float | None) -> str:
    """Write a share for a table; a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{share:.1%}"


def interval(ends: Any) -> str:
    """Write an interval of shares for a table; a dash where nothing was estimated."""
    return "–" if ends is None else f"{ends.low:.1%} to {ends.high:.1%}"
