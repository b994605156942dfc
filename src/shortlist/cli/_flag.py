"""`shortlist flag`: decisions row by row, in constant memory."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from .._core.atomic import check_writable, write_whole
from ._compiling import announce_compiling
from ._errors import answering
from ._reading import with_reading_options, with_work_options
from ._shared import (
    AsJson,
    Data,
    Exclude,
    Id,
    Keep,
    Model,
    Out,
    percent,
    print_json,
    progress_bar,
    rows_read,
    tell,
)
from ._worth_options import spent_in_words

if TYPE_CHECKING:
    from ..tables import ReadOptions, WorkColumns
    from ..tables.flag import FlagSummary

_IN_MEMORY = 1 << 24


@answering
@with_reading_options
@with_work_options
def flag(
    model: Model,
    data: Data,
    out: Out = None,
    keep: Keep = None,
    reasons: Annotated[
        bool, typer.Option("--reasons", help="Add the columns that raised the score of each flag.")
    ] = False,
    exclude: Exclude = None,
    at_most: Annotated[
        int | None,
        typer.Option(
            help="Stop with exit code 4, and write nothing, if more cases than this would be "
            "flagged, such as --at-most 60.",
            min=0,
            metavar="N",
        ),
    ] = None,
    id: Id = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
    work: WorkColumns,
) -> None:
    """Decide for every case on its own, in files of any size.

    Decisions are written to --out or to standard output, as CSV or (with --json) as one JSON object
    per line. Warnings say what does not fit the model card.

    A model that was fitted with --value and --effort weighs these columns; name them only if they
    have other names here. With --budget 480 it stops with exit code 4, and writes nothing, if the
    flags would take more work than that.

    Example: shortlist flag fraud.model today.csv -o flags.csv --reasons --at-most 60
    """
    from ..tables import flag_rows, load_model
    from ..tables.write import output_format

    announce_compiling()
    format = "jsonl" if as_json else "csv"
    if out is not None:  # before any work
        check_writable(out, keep=(model, data, exclude))
        format = output_format(out)
    loaded = load_model(model)
    with progress_bar() as progress, _opened(out, whole=at_most is not None) as file:
        summary = flag_rows(
            loaded,
            data,
            file,
            format=format,
            keep=keep or (),
            id=id,
            reasons=reasons,
            exclude=exclude,
            at_most=at_most,
            reading=reading,
            work=work,
            on_progress=rows_read(progress),
        )
    tell(summary.notes, summary.findings)
    _print(summary, out, as_json)


@contextlib.contextmanager
def _opened(out: Path | None, *, whole: bool) -> Iterator[BinaryIO]:
    """Open the output; with `whole`, standard output gets everything at the end, or nothing."""
    if out is not None:
        with write_whole(out) as file:
            yield file
        return
    standard: Any = typer.get_binary_stream("stdout")
    if not whole:
        yield standard
    else:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as held:
            yield held  # type: ignore[misc]
            held.seek(0)
            shutil.copyfileobj(held, standard)
    standard.flush()


def _print(summary: FlagSummary, out: Path | None, as_json: bool) -> None:
    if as_json and out is not None:
        print_json({**vars(summary), "flagged_fraction": summary.flagged_fraction, "out": str(out)})
        return
    of_work = summary.work is not None and summary.work.effort is not None
    capacity = "" if of_work else f"capacity is {percent(summary.capacity_fraction)}, the "
    typer.echo(
        f"{summary.n_flagged:,} of {summary.n_items:,} flagged "
        f"({percent(summary.flagged_fraction)}). The {capacity}guarantee "
        f"{'is ' if of_work else ''}{summary.guarantee!r}.",
        err=True,
    )
    if summary.work is not None:
        typer.echo(spent_in_words(summary.work), err=True)
