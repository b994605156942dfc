"""`shortlist stream`: JSON lines in, decisions out, and a state that survives crashes."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.files import check_distinct
from .._core.formatting import number
from . import _options as options
from . import _shell as shell

if TYPE_CHECKING:
    from ..service.stream import StreamSummary
    from ..service.stream_file import DurableController
    from ..tables import TableModel


def stream(
    model: options.Model,
    state: Annotated[Path, typer.Option(metavar="FILE")],
    count: options.Count = None,
    period: options.Text = None,
    capacity: options.Count = None,
    per: options.Many = None,
    fraction: options.Number = None,
    probe: options.Probe = 0,
    id: options.Text = None,
    time: str = "at",
    sync: bool = True,
    adopt: bool = False,
    budget: options.Number = None,
    worth: options.Number = None,
    entity: options.Text = None,
    allow: Annotated[list[str] | None, typer.Option(metavar="TEXT", show_default=False)] = None,
    within: Annotated[str | None, typer.Option(hidden=True, callback=_refuse_to_wait)] = None,
    kafka: Annotated[str | None, typer.Option(metavar="ADDRESS")] = None,
    read: options.Read = None,
    as_json: options.AsJson = False,
) -> None:
    """Decide one case at a time, with a state that survives crashes.

    JSON lines in, decisions out. Each line is a JSON object with the columns of the model and,
    optionally, an id and a moment. Invalid lines are reported, counted and skipped. The state is
    saved before a decision is printed. Therefore a crash never makes room for more flags.

    A model that was fitted with --value and --effort weighs these fields of each line. Its flags
    never take more than --budget 480 --period day, say, in any day.

    Options
    -------
    state
        State file, such as --state day.state; created if it does not exist.
    count
        How many flags are allowed, such as --count 50 ...
    period
        ... per hour, day, week, month, 90s, 15m, 12h or 2d, such as --period day; with a time zone
        in its calendar, such as --period 'day Europe/Berlin' or 'Mon-Fri 09:00-17:00 Europe/Rome'.
    capacity
        Or how many flags are allowed, never more, ...
    per
        ... out of this many lines, such as --per 10000.
    fraction
        Or the share of all cases, such as --fraction 0.02. Default: the model's capacity.
    id
        Field with the id, such as --id case. Default: the id column of the model.
    time
        Field with the moment of a line, such as --time opened; without it, now.
    sync
        Wait for the disk. Otherwise a power cut may lose decisions.
    kafka
        Read a topic instead of lines, and answer to another one (without it, to the output), such
        as --kafka localhost:9092/cases/decisions.
    adopt
        Continue from a state of another model or capacity.
    allow
        Do not decide about an entity until a moment: --allow ann=2027-01-31; may be repeated.
    within
        Refused, such as --within 24h: nobody can ask a stream for the next case.
    """
    check_distinct(state, keep=(model, Path("-")))
    limit = options.capacity_from(
        count=count, period=period, capacity=capacity, per=per, fraction=fraction, budget=budget
    )
    one_case = options.entity_from(entity)
    allowed = options.allowed_from(allow, entity)
    from ..service.stream import StreamSettings
    from ..service.stream_file import open_stream

    loaded = shell.open_model(model)
    loaded.check_budget(budget)
    own = loaded.schema.work
    settings = StreamSettings(
        capacity=limit,
        period=None if period is None else options.period_from(period),
        worth=own.worth if worth is None and own is not None else worth,
        probe=probe,
        probe_key=os.environ.get(options.PROBE_KEY),
        entity=one_case or None,
    )
    if loaded.row_scorer.note:  # compiles the model before the first line
        typer.echo(loaded.row_scorer.note, err=True)
    fingerprint = hashlib.sha256(model.read_bytes()).hexdigest()[:16]
    reading = options.read_options(read, but=options.NOT_IN_LINES)
    with open_stream(
        state,
        settings.controller(loaded),
        identity={"model": fingerprint, **settings.to_json(loaded)},
        adopt=loaded.classifier.calibration_scores_ if adopt else None,
        worth=settings.worth,
        entity=settings.entity,
        sync=sync,
    ) as durable:
        if allowed:
            durable.allow(allowed)
        if durable.n_before:
            typer.echo(f"Resuming {state}: {durable.n_before:,} cases were decided.", err=True)
        fields = {"id_field": id, "time_field": time, "entity_field": one_case.get("entity")}
        summary = _run(loaded, durable, kafka, reading=reading, **fields)
        left = getattr(durable.controller, "remaining", None)
    if as_json:
        shell.print_json(summary, err=True)
        return
    _print(summary)
    if budget is not None and left is not None and own is not None:
        said = f"{number(left)} of {number(budget, 12)} {own.unit} are left in this period."
        typer.echo(said, err=True)


def _refuse_to_wait(within: str | None) -> None:
    if within is not None:
        raise typer.BadParameter(
            "a stream answers each line once, when it arrives, and nobody can ask it for the next "
            f"case. Cases that can wait are for: shortlist serve --within {within}"
        )


def _run(
    model: TableModel, durable: DurableController, kafka: str | None, **fields: Any
) -> StreamSummary:
    from ..service.kafka import Kafka
    from ..service.stream import run_stream

    out: Any = typer.get_binary_stream("stdout")
    source: Any = _source()
    if kafka is not None:
        source = Kafka(kafka, durable.answered)
        out = source if source.has_answers else out
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once")  # a long stream would repeat them
            tell = lambda finding: shell.tell((), [finding])  # noqa: E731
            return run_stream(model, durable, source, out, on_finding=tell, **fields)
    except KeyboardInterrupt:
        durable.save()
        typer.echo("Error: Interrupted. All decisions are saved.", err=True)
        raise typer.Exit(shell.INTERRUPTED) from None


def _source() -> int:
    return sys.stdin.fileno()


def _print(summary: StreamSummary) -> None:
    not_worth = f", {summary.n_not_worth:,} not worth a slot" if summary.n_not_worth else ""
    typer.echo(
        f"{summary.n_lines:,} lines: {summary.n_flagged:,} flagged, {summary.n_repeated:,} seen "
        f"before, {summary.n_errors:,} invalid{not_worth}.",
        err=True,
    )
