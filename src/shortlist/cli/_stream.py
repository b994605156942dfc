"""`shortlist stream`: JSON lines in, decisions out, and a state that survives a crash."""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..capacity import Capacity
from ._shared import INTERRUPTED, AsJson, Model, answering, as_json_text, capacity_from

if TYPE_CHECKING:
    from ..online import Controller
    from ..streaming import DurableController, StreamSettings, StreamSummary
    from ..tables import TableModel

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_NAMES = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}


@answering
def stream(
    model: Model,
    state: Annotated[Path, typer.Option(help="The file that keeps the state; made if absent.")],
    controller: Annotated[
        str, typer.Option(help="auto, tracker, budget, bucket, window or ema.")
    ] = "auto",
    count: Annotated[
        int | None, typer.Option(help="How many flags there may be ...", min=0)
    ] = None,
    period: Annotated[
        str | None, typer.Option(help="... in each hour, day, week, 90s, 15m, 12h or 2d.")
    ] = None,
    capacity: Annotated[
        int | None, typer.Option(help="Or how many cases can be followed up ...", min=0)
    ] = None,
    per: Annotated[int | None, typer.Option(help="... of how many.", min=1)] = None,
    fraction: Annotated[
        float | None, typer.Option(help="Or the share of all cases. As in fit when absent.")
    ] = None,
    expect: Annotated[
        int | None, typer.Option(help="Lines in a period, roughly; it is learned.", min=1)
    ] = None,
    starts_at: Annotated[
        str, typer.Option(help="A moment at which a period starts, such as a local midnight.")
    ] = "1970-01-01T00:00:00+00:00",
    burst: Annotated[int | None, typer.Option(help="Of the bucket: the most at once.")] = None,
    window: Annotated[int | None, typer.Option(help="Of the window: its length.")] = None,
    remember: Annotated[int | None, typer.Option(help="How many ids are known again.")] = None,
    id: Annotated[
        str | None, typer.Option("--id", help="The field with the id; as in fit when absent.")
    ] = None,
    time: Annotated[str, typer.Option(help="The field with the moment; else now.")] = "at",
    batch: Annotated[
        int, typer.Option(help="The most lines to decide and save together.", min=1)
    ] = 1_024,
    sync: Annotated[
        bool, typer.Option(help="Wait for the disk; without, a power cut may lose decisions.")
    ] = True,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Go on from a state of another model or capacity.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Decide one case at a time: JSON lines in, decisions out, and a state that survives crashes.

    A line holds the model's columns, an id if there is one, and a moment if there is one. The state
    is saved before a decision is printed, so that no crash makes room for more.
    """
    limit = _capacity(count, period, capacity, per, fraction)
    from ..persistence import load_model
    from ..streaming import StreamSettings

    loaded = load_model(model)
    settings = StreamSettings(
        controller=controller,
        capacity=limit,
        period=None if period is None else _seconds(period),
        expected_arrivals=expect,
        starts_at=_moment(starts_at),
        burst=burst,
        window=window,
        remember=remember,
    ).resolved(loaded)
    durable = _durable(loaded, settings, model, state, sync=sync, adopt=adopt)
    with durable:
        _greet(durable, state)
        summary = _run(loaded, durable, id_field=id, time_field=time, batch=batch)
    _say(summary, as_json)


def _durable(
    model: TableModel,
    settings: StreamSettings,
    model_file: Path,
    state: Path,
    *,
    sync: bool,
    adopt: bool,
) -> DurableController:
    from ..streaming import DurableController, make_controller

    return DurableController(
        state,
        lambda: make_controller(model, settings),
        identity={"model": _fingerprint(model_file), **settings.to_json()},
        adopt=_adopter(model, settings) if adopt else None,
        sync=sync,
    )


def _run(model: TableModel, durable: DurableController, **fields: Any) -> StreamSummary:
    from ..streaming import run_stream

    out = typer.get_binary_stream("stdout")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once")  # a stream may be long, and its warnings are gathered
            return run_stream(model, durable, _source(), out, **fields)
    except KeyboardInterrupt:
        durable.save()
        typer.echo("Error: Interrupted. All that was decided is saved.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _source() -> int:
    return sys.stdin.fileno()


def _capacity(
    count: int | None,
    period: str | None,
    capacity: int | None,
    per: int | None,
    fraction: float | None,
) -> Capacity | None:
    if (count is None) != (period is None):
        raise typer.BadParameter(
            "--count and --period belong together: 50 flags a day are --count 50 --period day"
        )
    others = capacity is not None or per is not None or fraction is not None
    if count is not None and others:
        raise typer.BadParameter(
            "give the capacity in one way: --count 50 --period day, --capacity 600 --per 10000, or "
            "--fraction 0.06"
        )
    if count is not None:
        return Capacity.count(count)
    return capacity_from(capacity, per, fraction, None) if others else None


def _seconds(period: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", _NAMES.get(period, period).strip())
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(
            f"--period {period} is no length of time; use hour, day, week, 90s, 15m, 12h or 2d"
        )
    return float(match[1]) * _UNITS[match[2] or "s"]


def _moment(text: str) -> float:
    from ..online._time import seconds

    try:
        return seconds(datetime.fromisoformat(text))
    except ValueError:
        raise typer.BadParameter(
            f"--starts-at {text} is no moment; use a text such as 2026-05-31T00:00:00+02:00"
        ) from None


def _fingerprint(model_file: Path) -> str:
    import hashlib

    return hashlib.sha256(model_file.read_bytes()).hexdigest()[:16]


def _adopter(model: TableModel, settings: StreamSettings) -> Any:
    """Return how to go over to this model and capacity, for what a controller can change."""
    from ..exceptions import StateFileError
    from ..streaming._settings import calibration_scores

    new = {"model": None, **settings.to_json()}

    def adopt(controller: Controller, old: dict[str, Any]) -> None:
        fixed = [
            key for key in new if key not in ("model", "capacity") and old.get(key) != new[key]
        ]
        if fixed:
            raise StateFileError(
                f"--adopt goes over to another model or capacity, not to another "
                f"{', '.join(fixed)}. Use another --state file from the next period on."
            )
        controller.swap_model(calibration_scores(model))
        if old.get("capacity") != new["capacity"] and settings.capacity is not None:
            controller.set_capacity(settings.capacity)

    return adopt


def _greet(durable: DurableController, state: Path) -> None:
    if durable.n_before:
        typer.echo(f"Going on from {state}: {durable.n_before:,} cases were decided.", err=True)


def _say(summary: StreamSummary, as_json: bool) -> None:
    if as_json:
        typer.echo(as_json_text(asdict(summary)), err=True)
        return
    typer.echo(
        f"{summary.n_lines:,} lines: {summary.n_flagged:,} flagged, {summary.n_repeated:,} known "
        f"already, {summary.n_errors:,} in error.",
        err=True,
    )
