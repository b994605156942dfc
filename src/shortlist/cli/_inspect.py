"""`shortlist inspect`: what is in a model file, or how a table would be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.formatting import number
from . import _options as options
from . import _shell as shell

if TYPE_CHECKING:
    from ..tables import ModelCard
    from ..tables.schema import TableSchema


def inspect(
    file: Annotated[options.Table, options.table("FILE")],
    drop: options.Columns = None,
    query: options.Query = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what is in a model file, or how a table would be read.

    Of a model: its columns and how they are read, capacity, promise, results and versions. The
    model itself is not loaded. Of a table: what each column would be taken for, and every decision
    that could have been another, before any fit.

    Example: shortlist inspect cases.csv

    Options
    -------
    file
        A model file made by fit, or a table.
    """
    from ..tables.inspect import inspect_table
    from ..tables.model_file import describe_model
    from ..tables.read import is_table

    reading = options.read_options(read, drop, but=())
    found: Any = inspect_table(file, reading=reading) if is_table(file) else describe_model(file)
    if not shell.printed_json(as_json, found):
        (_print_table if "table" in found else _print_model)(found)


# --- a table ---


def _print_table(view: dict[str, Any]) -> None:
    shell.tell(view["notes"])
    rows = f"{'' if view['is_whole'] else 'the first '}{view['n_rows']:,} rows"
    shell.print_texts(
        ("Column", "Read as", "Missing", "Examples"),
        [_row(**column) for column in view["columns"]],
        n_left=2,
        n_right=1,
        title=f"{view['table']}, {rows}",
    )


def _row(
    name: str, kind: str | None, format: str, examples: list[str], n_missing: int | None
) -> tuple[str, ...]:
    missing = "" if n_missing is None else f"{n_missing:,}"
    shown = ", ".join(f"{each:.40}" for each in examples)
    return name, f"{kind} ({format})" if format else kind or "left out", missing, shown


# --- a model ---


def _print_model(content: dict[str, Any]) -> None:
    from ..tables.model_file import as_card, as_schema

    card, schema = as_card(content), as_schema(content)
    shell.print_texts(
        ("", ""),
        [(name, str(fact)) for name, fact in _facts(content, card, schema).items() if fact],
        n_right=0,
        show_header=False,
        title=f"Model of shortlist {content['shortlist_version']}",
    )
    columns = [(each.name, each.in_words) for each in schema.features]
    shell.print_texts(("Column", "Read as"), columns, n_right=0, title="Columns")
    if card.rules:
        before = ", before the recalibration" if card.recalibrated_at else ""
        shell.print_table(
            shell.RULES,
            card.rules,
            title=f"On {card.n_test:,} unseen rows, {card.n_test_rare:,} of them rare",
            caption=f"Measured on {shell.MEASURED_ON[card.measured_on]}{before}.",
        )
    for note in card.notes:
        typer.echo(f"Note of the fit: {shell.in_options(note)}")


def _facts(content: dict[str, Any], card: ModelCard, schema: TableSchema) -> dict[str, Any]:
    """Return what is known about a model, by names; nothing for what it does not have."""
    from ..capacity import Capacity, capacity_in_words
    from ..tables import WorkColumns
    from ..thresholds.promise import guarantee_in_short

    capacity, work = Capacity.from_json(content["capacity"]), schema.work or WorkColumns()
    share = f", {shell.percent(content['capacity_fraction'])} of all cases"
    # After a recalibration, all thresholds come from the same rows.
    n_calibration = card.n_recalibration or content["n_calibration"]
    promise = (content[name] for name in ("guarantee", "confidence", "n_batches"))
    return {
        "Looks for": f"{schema.target} = {schema.rare_label}",
        "Learner": content["learner"],
        "Capacity": capacity_in_words(capacity, unit=work.unit)
        + (share if capacity.kind == "multiple" else ""),
        "Value": work.value,
        "Effort": work.effort,
        "Worth": work.worth,
        "Guarantee": guarantee_in_short(*promise),
        "Calibration": f"{n_calibration:,} cases",
        "Threshold": ", ".join(map(_threshold, content["thresholds"])),
        "Id": schema.id or "none: a case is named by its row",
        "Fitted": card.fitted_at,
        "From": f"{card.n_rows:,} rows, {card.n_rare:,} of them rare",
        "Recalibrated": card.recalibrated_at,
        "Versions": ", ".join(f"{name} {version}" for name, version in card.versions.items()),
    }


def _threshold(value: float | None) -> str:
    return "none: nothing is flagged" if value is None else number(value, 6)
