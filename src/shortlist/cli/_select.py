"""`shortlist select`: a list of exactly so many cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

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
    columns_of_data,
    percent,
    print_json,
    progress_bar,
    reporter,
    tell,
)

if TYPE_CHECKING:
    from ..tables import ReadOptions, WorkColumns
    from ..tables.lists import Selection


@answering
@with_reading_options
@with_work_options
def select(
    model: Model,
    data: Data,
    count: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="The number of cases on the list, such as --count 50; with --segment one for "
            "each segment, such as --count north=20,south=30.",
        ),
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=columns_of_data,
            help="A column whose values have counts of their own, such as --segment team.",
        ),
    ] = None,
    out: Out = None,
    keep: Keep = None,
    exclude: Exclude = None,
    id: Id = None,
    probe: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share of the places for cases below the cut, drawn at random, such as --probe "
            "0.1. Their outcomes tell what is missed: shortlist evaluate --reviews.",
        ),
    ] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
    work: WorkColumns,
) -> None:
    """List exactly so many suspicious cases, with reasons.

    Example: shortlist select fraud.model today.csv --count 50 --keep all -o list.csv

    With --value and --effort, the list has the largest expected value within --budget.
    """
    if not count and work.budget is None:
        raise typer.BadParameter(
            "Missing option '--count', such as --count 50; or --budget 480 with --effort."
        )
    counts = _counts(count) if count else None
    if counts is not None and isinstance(counts, dict) == (segment is None):
        raise typer.BadParameter(
            "--segment and a count for each segment belong together, as in: --segment team --count "
            "north=20,south=30"
        )
    from ..tables import load_model, select_rows
    from ..tables.write import output_format

    announce_compiling()
    if out is not None:  # before any work
        check_writable(out, keep=(model, data, exclude))
        output_format(out)
    with progress_bar() as progress:
        selected = select_rows(
            load_model(model),
            data,
            count=counts,
            segment=segment,
            keep=keep or (),
            id=id,
            exclude=exclude,
            probe=probe,
            reading=reading,
            work=work,
            on_progress=reporter(progress, "reading"),
        )
    notes = [*selected.notes]
    if out is not None:
        notes += _write(selected, out)
    tell(notes, selected.findings)
    if as_json:
        print_json(_numbers(selected, out, notes))
    elif out is None:
        _print(selected)
    else:
        typer.echo(f"{len(selected)} cases: {out}")


def _counts(given: list[str]) -> int | dict[str, int]:
    """Return what --count says: one number, or a number for each segment."""
    if len(given) == 1 and "=" not in given[0]:
        return _count(given[0], given[0])
    pairs: dict[str, int] = {}
    for text in given:
        parts = text.split(",")
        # A name may hold a comma, if its count is given alone.
        for part in parts if all("=" in each for each in parts) else [text]:
            name, equals, number = part.rpartition("=")
            if not equals or name.strip() in pairs:
                raise _wrong_count(part)
            pairs[name.strip()] = _count(number, part)
    return pairs


def _count(number: str, said: str) -> int:
    try:
        count = int(number)
    except ValueError:
        raise _wrong_count(said) from None
    if count < 0:
        raise _wrong_count(said)
    return count


def _wrong_count(said: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"Invalid value for '--count': {said!r}. Use a whole number such as --count 50, or with "
        "--segment one for each segment, each named once: --count north=20,south=30"
    )


def _write(selected: Selection, out: Path) -> list[str]:
    from ..tables.lists import open_list
    from ..tables.write import output_format

    format = output_format(out)
    with write_whole(out) as file, open_list(file, format, selected.types) as listed:
        listed.write(selected.columns())
    return listed.notes


def _numbers(selected: Selection, out: Path | None, notes: list[str]) -> dict[str, Any]:
    return {
        "count": len(selected),
        "out": out and str(out),
        "rows": [selected.row_as_dict(row) for row in selected],
        "notes": notes,
        "findings": selected.findings,
    }


def _print(selected: Selection) -> None:
    table = Table(caption="In parentheses: how far the score would fall with the usual value.")
    for heading in ("Rank", "Case", "Score", "Probability"):
        table.add_column(heading, justify="right")
    probes = ("Selected by",) if selected.has_probes else ()
    for heading in (*probes, *selected.kept_types, "Raised by"):
        table.add_column(heading)
    for row in selected:
        table.add_row(
            str(row.rank),
            f"row {row.row}" if row.id is None else row.id,
            f"{row.score:.4g}",
            percent(row.probability),
            *([row.selected_by] if selected.has_probes else []),
            *("" if value is None else str(value) for value in row.kept.values()),
            "; ".join(reason.in_words for reason in row.reasons),
        )
    Console().print(table)
