"""`shortlist stream`: JSON lines in, decisions out, and a state that survives crashes."""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.atomic import check_distinct
from .._core.timestamps import parse_moment
from ..capacity import Capacity
from ._compiling import announce_compiling
from ._errors import INTERRUPTED, answering
from ._reading import with_line_options
from ._shared import (
    ZONE_HELP,
    AsJson,
    Model,
    Probe,
    ProbeKey,
    as_json_text,
    capacity_from,
    period_from,
    tell,
)
from ._worth_options import (
    Budget,
    Effort,
    Unit,
    Value,
    WorthOption,
    check_budget,
    check_knows_effort,
)

if TYPE_CHECKING:
    from ..service.durable import DurableController
    from ..service.stream import StreamSettings, StreamSummary
    from ..tables import ReadOptions, TableModel
    from ..tables.monitor import Finding


@answering
@with_line_options
def stream(
    model: Model,
    state: Annotated[
        Path,
        typer.Option(help="State file, such as --state day.state; created if it does not exist."),
    ],
    controller: Annotated[
        str,
        typer.Option(help="auto, tracker, budget or bucket, such as --controller bucket."),
    ] = "auto",
    count: Annotated[
        int | None, typer.Option(help="How many flags are allowed, such as --count 50 ...", min=0)
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="... per hour, day, week, 90s, 15m, 12h or 2d, such as --period day."),
    ] = None,
    zone: Annotated[str | None, typer.Option(help=ZONE_HELP)] = None,
    capacity: Annotated[
        int | None, typer.Option(help="Or how many flags are allowed ...", min=0)
    ] = None,
    per: Annotated[
        int | None, typer.Option(help="... out of this many cases, such as --per 10000.", min=1)
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(
            help="Or the share of all cases, such as --fraction 0.02. Default: the model's "
            "capacity."
        ),
    ] = None,
    expect: Annotated[
        int | None,
        typer.Option(
            help="Rough number of lines in a period, such as --expect 5000; it is learned.", min=1
        ),
    ] = None,
    starts_at: Annotated[
        str,
        typer.Option(
            help="A moment at which a period starts, such as --starts-at 2026-01-01T00:00."
        ),
    ] = "1970-01-01T00:00:00+00:00",
    probe: Probe = 0,
    probe_key: ProbeKey = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Field with the id, such as --id case. Default: the id column of the model.",
        ),
    ] = None,
    time: Annotated[
        str,
        typer.Option(
            help="Field with the moment of a line, such as --time opened; without it, now."
        ),
    ] = "at",
    sync: Annotated[
        bool, typer.Option(help="Wait for the disk. Otherwise a power cut may lose decisions.")
    ] = True,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Continue from a state of another model or capacity.")
    ] = False,
    value: Value = None,
    effort: Effort = None,
    budget: Budget = None,
    unit: Unit = "units",
    worth: WorthOption = None,
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Decide one case at a time, with a state that survives crashes.

    JSON lines in, decisions out. Each line is a JSON object with the columns of the model and,
    optionally, an id and a moment. Invalid lines are reported, counted and skipped. The state is
    saved before a decision is printed. Therefore a crash never makes room for more flags.

    A model that was fitted with --value and --effort weighs these fields of each line. Its flags
    never take more than --budget 480 --period day, say, in any day.
    """
    check_distinct(state, keep=(model, Path("-")))
    limit = _capacity(count, period, capacity, per, fraction, budget)
    from ..service.stream import StreamSettings
    from ..tables import WorkColumns, load_model

    announce_compiling()
    work = WorkColumns(value, effort, None, worth, unit)
    loaded = load_model(model)
    loaded.check_weighs(work)
    loaded = loaded.reading_work(work)
    kept = loaded.schema.work or work
    if budget is not None:
        check_knows_effort(loaded)
    settings = StreamSettings(
        controller=controller,
        capacity=limit,
        period=None if period is None else period_from(period, zone),
        expected_arrivals=expect,
        starts_at=_moment(starts_at),
        work=loaded.schema.work,
        worth=kept.worth,
        probe=probe,
        probe_key=probe_key,
    ).resolved(loaded)
    identity = {"model": _fingerprint(model), **settings.to_json(), **_scorer(loaded)}
    with _durable(loaded, settings, identity, state, sync=sync, adopt=adopt) as durable:
        if durable.n_before:
            typer.echo(f"Resuming {state}: {durable.n_before:,} cases were decided.", err=True)
        fields = {"id_field": id, "time_field": time}
        summary = _run(loaded, durable, **fields, reading=reading)
        left = getattr(durable.controller, "remaining", None)
    _print_summary(summary, as_json)
    if budget is not None and left is not None and not as_json:
        typer.echo(f"{left:,.6g} of {budget:,.6g} {kept.unit} are left in this period.", err=True)


def _durable(
    model: TableModel,
    settings: StreamSettings,
    identity: dict[str, Any],
    state: Path,
    *,
    sync: bool,
    adopt: bool,
) -> DurableController:
    from ..service.durable import DurableController
    from ..service.stream import adopt as adopt_settings
    from ..service.stream import make_controller

    def adopted(controller: Any, old: dict[str, Any]) -> None:
        adopt_settings(controller, model, settings, old)

    return DurableController(
        state,
        lambda: make_controller(model, settings),
        identity=identity,
        adopt=adopted if adopt else None,
        worth=settings.worth,
        sync=sync,
    )


def _scorer(model: TableModel) -> dict[str, Any]:
    """Compile the model before the first line, and return what the state remembers about it."""
    from ..service.stream import scorer_identity

    if model.row_scorer.note:
        typer.echo(model.row_scorer.note, err=True)
    return scorer_identity(model)


def _fingerprint(model_file: Path) -> str:
    import hashlib

    return hashlib.sha256(model_file.read_bytes()).hexdigest()[:16]


def _run(model: TableModel, durable: DurableController, **fields: Any) -> StreamSummary:
    from ..service.stream import run_stream

    out = typer.get_binary_stream("stdout")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once")  # a long stream would repeat them
            return run_stream(model, durable, _source(), out, on_finding=_tell_one, **fields)
    except KeyboardInterrupt:
        durable.save()
        typer.echo("Error: Interrupted. All decisions are saved.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _tell_one(finding: Finding) -> None:
    tell([], [finding])


def _source() -> int:
    return sys.stdin.fileno()


def _capacity(
    count: int | None,
    period: str | None,
    capacity: int | None,
    per: int | None,
    fraction: float | None,
    budget: float | None,
) -> Capacity | None:
    others = capacity is not None or per is not None or fraction is not None
    if budget is not None:
        return _budget(budget, period, per, others=(count, capacity, fraction))
    if (count is None) != (period is None):
        raise typer.BadParameter(
            "--count and --period belong together: for 50 flags a day, use --count 50 --period day"
        )
    if count is not None and others:
        raise typer.BadParameter(
            "give the capacity in one way: --count 50 --period day, --capacity 600 --per 10000, or "
            "--fraction 0.06"
        )
    if count is not None:
        return Capacity.count(count)
    return capacity_from(capacity, per, fraction, None) if others else None


def _budget(
    budget: float, period: str | None, per: int | None, *, others: tuple[Any, ...]
) -> Capacity:
    if any(given is not None for given in others) or (period is None) == (per is None):
        raise typer.BadParameter(
            "give a budget of work in one way: --budget 480 --period day, or --budget 480 --per "
            "10000"
        )
    check_budget(budget)
    return Capacity.effort(budget, per=per)


def _moment(text: str) -> float:
    try:
        return parse_moment(text)
    except ValueError:
        raise typer.BadParameter(
            f"--starts-at {text} is not a moment; use the form 2026-05-31T00:00:00+02:00"
        ) from None


def _print_summary(summary: StreamSummary, as_json: bool) -> None:
    if as_json:
        typer.echo(as_json_text(asdict(summary)), err=True)
        return
    typer.echo(
        f"{summary.n_lines:,} lines: {summary.n_flagged:,} flagged, {summary.n_repeated:,} seen "
        f"before, {summary.n_errors:,} invalid"
        + (f", {summary.n_not_worth:,} not worth a slot." if summary.n_not_worth else "."),
        err=True,
    )
