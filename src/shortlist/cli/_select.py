"""`shortlist select`: a list of a given length."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.files import check_writable
from .._core.formatting import counted, number
from . import _options as options
from . import _shell as shell

if TYPE_CHECKING:
    from ..tables.select import Selection


def select(
    model: options.Model,
    data: options.Data,
    count: Annotated[list[str] | None, typer.Option(metavar="N")] = None,
    segment: options.Column = None,
    entity: options.Column = None,
    time: options.Column = None,
    turnout: options.Text = None,
    confidence: options.Number = None,
    value: options.Column = None,
    effort: options.Column = None,
    budget: options.Number = None,
    worth: options.Number = None,
    unit: str = "units",
    out: options.Out = None,
    keep: options.Columns = None,
    exclude: options.File = None,
    id: options.Column = None,
    probe: options.Probe = 0,
    precision: options.Number = None,
    reasons: bool = True,
    act: options.Number = None,
    query: options.Query = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """List exactly so many suspicious cases, with reasons.

    Example: shortlist select fraud.model today.csv --count 50 --keep all -o list.csv

    With --value and --effort, the list has the largest expected value within --budget.

    Options
    -------
    count
        The number of cases on the list, such as --count 50; with --segment one for each segment,
        such as --count north=20,south=30. A table of past numbers, such as --count slots.csv,
        stands for a number that is not known yet.
    segment
        A column whose values have counts of their own, such as --segment team.
    time
        The column with the moments of events, such as --time opened. Without it, all events of an
        entity are one case; with it, --exclude may be an earlier list, or have a column until.
    turnout
        How often an invited case comes: --turnout 310/520 for 310 of 520 in the past, --turnout
        0.6, or a column with the probability of each case. --count is then the number of slots, and
        the list is longer.
    confidence
        How surely no more come than there are slots, such as --confidence 0.99. Default: 0.95.
    probe
        Share of the places for cases below the cut, drawn at random, such as --probe 0.1. Their
        outcomes tell what is missed: shortlist evaluate --reviews.
    precision
        End the list early, on average with at least this share of rare cases on it, such as
        --precision 0.5. The model must have been fitted with --folds 1, or recalibrated with
        --target.
    reasons
        Say what raised the score of each case; --no-reasons is faster for very many columns.
    act
        Put cases to act on at once before the list, on average with at least this share of rare
        ones, such as --act 0.9; the column tier says "act" or "review". Needs a model as
        --precision does.
    """
    if not count and budget is None:
        raise typer.BadParameter(
            "Missing option '--count', such as --count 50; or --budget 480 with --effort."
        )
    counts = _counts(count) if count else None
    given = {**locals(), "count": counts, "turnout": _turnout(turnout), **options.rule_from(entity)}
    if confidence is not None and turnout is None and not isinstance(counts, list):
        raise typer.BadParameter("--confidence belongs to --turnout, which was not given")
    from ..tables import select_rows
    from ..tables.write import TableWriter, output_format, write_answers

    if out is not None:  # before any work
        check_writable(out, keep=(model, data, exclude))
        format = output_format(out)
    with shell.progress("reading") as show:
        selected = select_rows(
            shell.open_model(model),
            data,
            reading=options.read_options(read),
            work=options.work_from(value, effort, worth, budget, unit),
            on_progress=show,
            **options.same_named(given, select_rows),
        )
    notes = [*selected.notes]
    if out is not None:
        with write_answers(out) as file, TableWriter(file, format, selected.types) as listed:
            listed.write(selected.in_words())
        notes += listed.notes
    shell.tell(notes, selected.findings)
    if as_json:
        shown = {"rows": selected.rows, "notes": notes, "findings": selected.findings}
        shell.print_json({"count": len(selected), "out": out and str(out), **shown})
    elif out is None:
        _print(selected)
    else:
        typer.echo(f"{counted(len(selected), 'case')}: {out}")


def _turnout(given: str | None) -> str | float | tuple[int, int] | None:
    """Return what --turnout says: 310 of 520, a probability, or a column."""
    if given is not None and (history := re.fullmatch("([0-9]+)/([0-9]+)", given)):
        return int(history[1]), int(history[2])
    return float(given) if given and re.fullmatch(r"[01](\.[0-9]+)?", given) else given


def _counts(given: list[str]) -> int | list[int] | dict[str, int]:
    """Return what --count says: one number, or a number for each segment."""
    if len(given) == 1 and given[0].isdecimal():
        return int(given[0])
    if len(given) == 1 and Path(given[0]).is_file():
        from ..tables.select import read_slots

        return read_slots(Path(given[0]))
    counts: dict[str, int] = {}
    for text in given:
        parts = text.split(",")
        # A name may hold a comma, if its count is given alone.
        for part in parts if all("=" in each for each in parts) else [text]:
            name, equals, number = (each.strip() for each in part.rpartition("="))
            if not equals or not number.isdecimal() or name in counts:
                raise typer.BadParameter(
                    f"Invalid value for '--count': {part!r}. Use a whole number such as --count "
                    "50, or with --segment one for each segment, each named once: --count "
                    "north=20,south=30"
                )
            counts[name] = int(number)
    return counts


def _print(selected: Selection) -> None:
    hidden = ("inclusion", None if selected.id is None else "row")
    words = selected.in_words()
    # The longest texts come last.
    shown = sorted((name for name in words if name not in hidden), key="reasons".__eq__)
    shell.print_texts(
        shown,
        zip(*([_text(name, each) for each in words[name]] for name in shown), strict=True),
        n_left=0,
        n_right=4,
        caption="In parentheses: how far the score would fall with the usual value."
        if "reasons" in words
        else None,
    )


def _text(column: str, value: Any) -> str:
    if column == "probability":
        return shell.percent(value)
    return number(value, 4) if column == "score" else "" if value is None else str(value)
