"""Between a command and the shell: tables, JSON, notes and progress.

The library names a parameter as one passes it in Python: `rare=...`, `at_most=5`,
`Capacity.fraction(0.06)`. Here, and only here, such a name becomes an option.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .._core.formatting import between, counted, duration, number
from .._core.formatting import percent as percent

if TYPE_CHECKING:
    from ..tables import TableModel
    from ..tables.monitor import Finding
    from ..tables.rules import Money

USER_ERROR, SYSTEM_ERROR, TOO_MANY, DRIFT, FALLEN, INTERRUPTED = 2, 3, 4, 5, 6, 130


_MINUTE = 60.0
#: Not empty after `shortlist --quiet`: neither notes nor progress are shown.
is_quiet: list[bool] = []


def say(kind: str, message: str) -> None:
    """Print a message on standard error in one line, with options for arguments."""
    if kind == "Note" and is_quiet:
        return
    typer.echo(f"{kind}: {in_options(' '.join(message.split()))}", err=True)


# --- arguments as options ---

#: The parameters of the library that options set; those of the same name, and then the others.
_SAME = """
    act adopt at_most budget challenger confidence count drop effort entity exclude find
    folds group guarantee id keep labelled_only learner load period precision probe rare reviews
    seed segment size target time total turnout trust_model value weight worth
"""
_READ = "categorical columns date_format decimal encoding keep_total na numeric sep sheet"
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME.split()} | {
    "rare_label": "--rare",
    "ids": "--id",
    "values": "--value",
    "efforts": "--effort",
    "max_effort": "--effort COLUMN,max=N",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "trust": "--trust-model",
    **{name: f"--read {name}" for name in _READ.split()},
}
_QUOTES = "'\""
_CAPACITIES = {
    "count": ("--capacity", "--per"),
    "effort": ("--budget", "--per"),
    "fraction": ("--fraction",),
    "multiple": ("--multiple",),
}
_PASSED = re.compile(
    r"\bCapacity\.(?P<kind>count|effort|fraction|multiple)\((?P<values>[^()]*)\)"
    rf"|\b(?P<name>{'|'.join(OPTIONS)})"
    r"(?:=(?P<value>'[^']*'|\"[^\"]*\"|\.{3}|[^\s,;:()]*[^\s,;:().]))"
    rf"|^(?P<first>{'|'.join(OPTIONS)})(?= must)"
)


def in_options(message: str) -> str:
    """Return a message of the library with options in place of arguments.

    Examples
    --------
    >>> in_options("guarantee='next-batch' promises a number; use Capacity.count(K, per=N).")
    '--guarantee next-batch promises a number; use --capacity K --per N.'
    >>> in_options("Capacity.multiple(3.0) counts. Name another label with rare=...")
    '--multiple 3 counts. Name another label with --rare.'
    """
    return _PASSED.sub(_as_option, message)


def _as_option(match: re.Match[str]) -> str:
    if match["kind"]:
        options, given = _CAPACITIES[match["kind"]], match["values"].split(",")
        if given[0] == "...":
            return " and ".join(options)
        pairs = zip(options, given, strict=False)
        return " ".join(f"{option} {_typed(value)}" for option, value in pairs)
    name, value = match["name"] or match["first"], match["value"]
    if value is not None and name in _READ.split():
        return f"--read {_typed(f'{name}={value.strip(_QUOTES)}')}"
    if value not in (None, "...", "True", "False"):
        return f"{OPTIONS[name]} {_typed(value)}".replace("=N ", "=")
    # The three dots may also end a sentence.
    ends = value == "..." and re.match(r"$| [A-Z]", match.string[match.end() :])
    return f"{OPTIONS[name]}." if ends else OPTIONS[name]


def _typed(value: str) -> str:
    """Return a value as one types it: 600 instead of 600.0 or 10_000, and quoted if need be."""
    value = value.strip().removeprefix("per=").strip(_QUOTES)
    if re.fullmatch(r"-?[0-9_]+(\.[0-9]+)?", value):
        value = value.replace("_", "").removesuffix(".0")
    return shlex.quote(value.replace("=True", "=true"))


# --- notes, JSON and tables ---

#: The columns of a table: a heading, an attribute of the rows, and how it is written.
Cells = dict[str, tuple[str, str | Callable[[Any], str]]]


def tell(notes: Iterable[str], findings: Iterable[Finding] = ()) -> None:
    """Print notes and warnings on standard error, one line each."""
    for note in notes:
        say("Note", note)
    for finding in findings:
        say("Warning" if finding.is_serious else "Note", finding.message)


def print_json(content: Any, *, err: bool = False) -> None:
    """Print one JSON object; NaN and infinities become null."""
    from .._core.files import to_plain

    typer.echo(json.dumps(to_plain(content), allow_nan=False), err=err)


def printed_json(as_json: bool, content: Any) -> bool:
    """Print a result for scripts if that was asked for; return whether it was."""
    if as_json:
        print_json(content)
    return as_json


def print_table(cells: Cells, rows: Iterable[Any], **options: Any) -> None:
    """Print items of dicts, or attributes, each with a format or a function that writes it."""
    shown = [row if isinstance(row, dict) else vars(row) for row in rows]
    texts = [[_text(row[name], form) for name, form in cells.values()] for row in shown]
    print_texts(list(cells), texts, **options)


def _text(value: Any, form: str | Callable[[Any], str]) -> str:
    return format(value, form) if isinstance(form, str) else form(value)


def print_texts(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    n_left: int = 1,
    n_right: int = 99,
    **options: Any,
) -> None:
    """Print a table: `n_left` columns with texts, then `n_right` with numbers, then texts again."""
    table = Table(**options)
    for place, heading in enumerate(headings):
        is_number = n_left <= place < n_left + n_right
        table.add_column(heading, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


def interval(ends: Any) -> str:
    """Format an interval of shares for a table; a dash if there is none."""
    return "–" if ends is None else between(*ends)


# --- tables that several commands print ---

#: The rows that a fit was measured on, and by which of its models.
MEASURED_ON = {
    "out-of-fold": "all rows, by models of folds that had not seen them; lists are ranked by one "
    "more model, of all rows",
    "calibration": "the rows that set the threshold, which it had not learned from",
    "latest": "the latest rows, after those learned from",
}
#: What a rule finds.
RULES: Cells = {
    "Rule": ("rule", ""),
    "Flagged": ("flagged", number),
    "Found": ("found", number),
    "Detection": ("detection", percent),
    "95 % interval": ("detection_interval", interval),
    "Precision": ("precision", percent),
}


def print_money(money: Money | None, *, budgets: bool = False) -> None:
    """Print what rules find in money, and what the model's lists would find with other budgets."""
    if money is None:
        return
    found: Cells = {"Value found": ("value", number), "Of all value": ("value_share", percent)}
    rules: Cells = {
        "Rule": ("rule", ""),
        "Flagged": ("flagged", number),
        f"Spent ({money.unit})": ("effort", number),
        **found,
    }
    points: Cells = {
        "Budget": ("budget", lambda budget: f"{number(budget, 12)} {money.unit}"),
        "Spent": ("effort", number),
        "Cases": ("n_flagged", number),
        **found,
        "One more unit": ("price", number),
    }
    worth = f"all rare cases are worth {number(money.total_value)}"
    print_table(
        rules,
        money.rules,
        title=f"Value found within {number(money.allowed, 12)} {money.unit}; {worth}",
        caption="If flags take more than that, they are worked off in a random order.",
    )
    if budgets:
        print_table(points, money.points, title="What other budgets would find", n_left=0)
    typer.echo(money.one_more_in_words)


# --- work that takes a while ---


@contextmanager
def progress(what: str) -> Iterator[Callable[..., None]]:
    """Show on a terminal what is being done; yields a function that tells the step, or the rows.

    Without a terminal there is a line each minute.
    """
    console, said, begun = Console(stderr=True), [what], [time.monotonic()]
    by_the_minute = not (is_quiet or console.is_terminal)
    # Older versions of rich end a disabled bar with a line.
    console.quiet = bool(is_quiet) or not console.is_terminal
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, transient=True, disable=console.quiet)
    with bar, _each_minute(lambda: said[-1]) if by_the_minute else nullcontext():
        task = bar.add_task(what, total=None)

        def show(step: str | int, done: float = 0, total: float = 0) -> None:
            words = step if isinstance(step, str) else counted(step, "row")
            if done:
                left = (time.monotonic() - begun[-1]) * (total - done) / done
                words = f"{words}, about {duration(left)} left"
            else:
                begun[-1] = time.monotonic()
            said[-1] = words
            bar.update(task, description=words, completed=done, total=total or None)

        yield show


@contextmanager
def _each_minute(said: Callable[[], str]) -> Iterator[None]:
    """Write the time and what is being done to standard error, once a minute."""
    has_ended = threading.Event()

    def write() -> None:
        while not has_ended.wait(_MINUTE):
            typer.echo(f"{datetime.now():%H:%M:%S} {said()}", err=True)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        has_ended.set()
        writer.join()


def open_model(file: Path) -> TableModel:
    """Load a model file."""
    from ..tables import load_model

    return load_model(file)
