"""`shortlist flag`: decisions row by row, in constant memory."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from .._core.files import check_writable
from .._core.formatting import number, stated_percent
from . import _options as options
from . import _shell as shell

if TYPE_CHECKING:
    from ..tables.flag import FlagSummary

_IN_MEMORY = 1 << 24


def flag(
    model: options.Model,
    data: options.Data,
    out: options.Out = None,
    keep: options.Columns = None,
    reasons: bool = False,
    exclude: options.File = None,
    at_most: options.Count = None,
    id: options.Column = None,
    entity: options.Column = None,
    time: options.Column = None,
    budget: options.Number = None,
    worth: options.Number = None,
    act: options.Number = None,
    query: options.Query = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """Decide for every case on its own, in files of any size.

    Decisions are written to --out or to standard output, as CSV or (with --json) as one JSON object
    per line. Warnings say what does not fit the model card.

    A model that was fitted with --value and --effort weighs these columns.

    Example: shortlist flag fraud.model today.csv -o flags.csv --reasons --at-most 60

    Options
    -------
    reasons
        Add the columns that raised the score of each flag.
    at_most
        Stop with exit code 4, and write nothing, if more cases than this would be flagged, such
        as --at-most 60.
    time
        The column with the moments of events, in their order, such as --time opened. Without it, a
        case lasts until the end of the table.
    budget
        The same for their work, such as --budget 480, with a model that was fitted with --effort.
    act
        Add the column tier: "act" for cases to act on at once, with at least this share of rare
        ones among them, such as --act 0.9; "review" for other flags, and "pass".
    """
    given = {**locals(), **options.rule_from(entity)}
    from ..tables import flag_rows
    from ..tables.write import output_format

    format = "jsonl" if as_json else "csv"
    if out is not None:  # before any work
        check_writable(out, keep=(model, data, exclude))
        format = output_format(out)
    with shell.progress("reading") as show, _opened(out) as file:
        summary = flag_rows(
            shell.open_model(model),
            data,
            file,
            format=format,
            reading=options.read_options(read),
            on_progress=show,
            **options.same_named(given, flag_rows),
        )
    shell.tell(summary.notes, summary.findings)
    _print(summary, out, as_json)


@contextlib.contextmanager
def _opened(out: Path | None) -> Iterator[BinaryIO]:
    """Open the output; standard output gets everything at the end, or nothing, as a file does."""
    if out is not None:
        from ..tables.write import write_answers

        with write_answers(out) as file:
            yield file
        return
    standard: Any = typer.get_binary_stream("stdout")
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as held:
        yield held  # type: ignore[misc]
        held.seek(0)
        shutil.copyfileobj(held, standard)
    standard.flush()


def _print(summary: FlagSummary, out: Path | None, as_json: bool) -> None:
    if as_json and out is not None:
        shell.print_json({**vars(summary), "out": str(out)})
        return
    of_work = summary.effort is not None
    capacity = "" if of_work else f"capacity is {stated_percent(summary.capacity_fraction)}, the "
    share = summary.n_flagged / summary.n_items if summary.n_items else None
    typer.echo(
        f"{summary.n_flagged:,} of {summary.n_items:,} flagged ({shell.percent(share)}). The "
        f"{capacity}guarantee {'is ' if of_work else ''}{summary.guarantee!r}.",
        err=True,
    )
    taken = ""
    if of_work:
        taken = (
            f"They take {number(summary.effort)} {summary.unit}; the capacity allows "
            f"{number(summary.allowed, 12)} for this number of cases. "
        )
    if summary.value is not None:
        typer.echo(f"{taken}Their expected value is {number(summary.value)}.", err=True)
