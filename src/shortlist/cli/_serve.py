"""`shortlist serve`: decisions over HTTP, never over capacity."""

from __future__ import annotations

import ipaddress
import logging
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ._compiling import announce_compiling
from ._errors import answering
from ._shared import ZONE_HELP, Probe, ProbeKey, period_from
from ._worth_options import WorthOption, check_budget

Database = Annotated[
    str | None,
    typer.Option(
        envvar="SHORTLIST_DATABASE",
        help="--database postgresql://…, for many machines. Default: a file.",
    ),
]
DataFolder = Annotated[
    Path,
    typer.Option(
        "--data",
        envvar="SHORTLIST_DATA",
        help="Folder of the embedded database, such as --data /srv/shortlist.",
    ),
]


def database_in(database: str | None, data: Path) -> str:
    """Return the address of the database, or the path of the embedded one."""
    return database if database is not None else str(data / "shortlist.db")


@answering
def serve(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="A model file made by fit; not needed again later."),
    ] = None,
    count: Annotated[
        int | None, typer.Option(help="How many flags are allowed, such as --count 50 ...", min=0)
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="AMOUNT",
            show_default=False,
            help="... or how much work, for a model fitted with --effort, such as --budget 480 ...",
        ),
    ] = None,
    period: Annotated[
        str, typer.Option(help="... per hour, day, week, 15m, 12h or 2d, such as --period day.")
    ] = "day",
    zone: Annotated[str | None, typer.Option(help=ZONE_HELP)] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(help="Another queue and its count, as in --queue north=30; may be repeated."),
    ] = None,
    total: Annotated[
        int | None,
        typer.Option(help="The most flags of all queues together, such as --total 80.", min=0),
    ] = None,
    expect: Annotated[
        int | None,
        typer.Option(
            help="Rough number of cases in a period, such as --expect 5000; it is learned.", min=1
        ),
    ] = None,
    worth: WorthOption = None,
    probe: Probe = 0,
    probe_key: ProbeKey = None,
    database: Database = None,
    data: DataFolder = Path("shortlist-data"),
    host: Annotated[
        str, typer.Option(envvar="SHORTLIST_HOST", help="Where to listen, such as --host 0.0.0.0.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(envvar="SHORTLIST_PORT", min=0, max=65_535, help="Such as --port 8080.")
    ] = 8_000,
    workers: Annotated[
        int,
        typer.Option(
            envvar="SHORTLIST_WORKERS", min=1, max=64, help="Processes, such as --workers 4."
        ),
    ] = 2,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Change the capacity and the model of a known queue.")
    ] = False,
    accept_clock: Annotated[
        bool,
        typer.Option("--accept-clock", help="Believe a clock far ahead of the last decision."),
    ] = False,
) -> None:
    """Serve decisions over HTTP: never over capacity, nothing lost.

    The database keeps every decision, and every answer is in it before it is sent. On the loopback
    address no keys are needed; elsewhere, make them first with: shortlist
    serve keys. Afterwards, shortlist serve audit proves that every promise was kept.
    """
    logging.basicConfig(format="%(levelname)s: %(message)s")
    if budget is not None:
        check_budget(budget)
    queues = _queues(model, count, budget, queue)
    from ..service.config import check_extra

    check_extra()
    from ..service.setup import prepare
    from ..service.supervisor import run_service

    announce_compiling()
    where = database_in(database, data)
    if database is None:
        data.mkdir(parents=True, exist_ok=True)
    models = prepare(
        where, model, queues, period=period_from(period, zone), expect=expect, total=total,
        of_work=budget is not None, worth=worth, probe=probe, probe_key=probe_key, adopt=adopt,
    )  # fmt: skip
    config = _config(where, host, accept_clock=accept_clock)
    raise typer.Exit(
        run_service(config, host=host, port=port, workers=workers, models=models, on_ready=_say)
    )


def _queues(
    model: Path | None, count: int | None, budget: float | None, others: list[str] | None
) -> dict[str, float]:
    if model is None:
        if count is not None or budget is not None or others:
            raise typer.BadParameter("--count, --budget and --queue make queues, and need a MODEL")
        return {}
    if (count is None) == (budget is None):
        raise typer.BadParameter(
            "how many flags are allowed? For 50 a day: --count 50 --period day. Or how much work? "
            "For 480 minutes a day: --budget 480 --period day"
        )
    first: float = count if count is not None else budget or 0.0
    queues = {"default": first}
    for text in others or []:
        name, _, number = text.partition("=")
        if not name.isidentifier() or not number.isdigit() or name in queues:
            raise typer.BadParameter(f"--queue {text} must be a new name and a count: north=30")
        queues[name] = int(number)
    return queues


def _config(where: str, host: str, **options: Any) -> Any:
    from ..service.config import ServiceConfig
    from ..service.keys import has_keys

    keys = has_keys(where)
    if not _is_loopback(host) and not keys:
        raise typer.BadParameter(
            f"--host {host} can be reached by others, and there are no keys. Make one first: "
            "shortlist serve keys --make decide"
        )
    return ServiceConfig(where, keys_required=keys, **options)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _say(host: str, port: int) -> None:
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"Serving on http://{shown}:{port} (process {os.getpid()}). Ctrl-C stops.", err=True)
