"""`shortlist serve`: decisions over HTTP, never over capacity; its keys, and its audit."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import time
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as options
from . import _shell as shell

Database = Annotated[str, typer.Option(envvar="SHORTLIST_DATABASE", metavar="FILE")]
Texts = Annotated[list[str] | None, typer.Option(metavar="TEXT", show_default=False)]
DatabaseArgument = Annotated[str, typer.Argument(metavar="DATABASE")]
KeyFile = Annotated[Path | None, typer.Option(metavar="FILE", show_default=False)]
_FILE = "shortlist-data/shortlist.db"


def serve(
    model: Annotated[Path | None, typer.Argument(metavar="[MODEL]")] = None,
    count: options.Count = None,
    budget: options.Number = None,
    period: str = "day",
    queue: Texts = None,
    total: options.Count = None,
    worth: options.Number = None,
    probe: options.Probe = 0,
    segment: options.Text = None,
    entity: options.Text = None,
    within: options.Text = None,
    database: Database = _FILE,
    host: Annotated[str, typer.Option(envvar="SHORTLIST_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="SHORTLIST_PORT", min=0, max=65_535)] = 8_000,
    workers: Annotated[int, typer.Option(envvar="SHORTLIST_WORKERS", min=1, max=64)] = 2,
    webhook: Annotated[str | None, typer.Option(envvar="SHORTLIST_WEBHOOK", metavar="URL")] = None,
    accept_clock: bool = False,
    restored: bool = False,
) -> None:
    """Serve decisions over HTTP: never over capacity, nothing lost.

    The database keeps every decision, and every answer is in it before it is sent. On the loopback
    address no keys are needed until the first one is made; elsewhere, every request needs one:
    shortlist serve keys. A proxy that sends the secret in SHORTLIST_PROXY_SECRET as
    X-Proxy-Secret vouches for the person in X-Forwarded-User. Afterwards, shortlist serve audit
    proves that every promise was kept.

    Options
    -------
    model
        A model file made by fit; not needed again later.
    count
        How many flags are allowed, such as --count 50 ...
    budget
        ... or how much work, for a model fitted with --effort, such as --budget 480 ...
    period
        ... per hour, day, week, month, 15m, 12h or 2d, such as --period day; with a time zone in
        its calendar, such as --period 'day Europe/Berlin' or 'Mon-Fri 09:00-17:00 Europe/Rome'.
    queue
        Another queue and its count, as in --queue north=30; may be repeated.
    total
        The most flags of all queues together, such as --total 80.
    segment
        The column that says who is able to review a case, such as --segment country.
    within
        Let cases wait, such as --within 24h: nothing is flagged on arrival, and a reviewer who asks
        for the next case gets the most worthwhile one.
    database
        A file, such as --database /srv/shortlist.db, or postgresql://… for many machines.
    host
        Where to listen, such as --host 0.0.0.0.
    port
        Such as --port 8080.
    workers
        Processes, such as --workers 4.
    webhook
        An address, such as --webhook https://cases.example.org/flags, that is told of flags,
        assignments and alarms, signed with the secret in SHORTLIST_WEBHOOK_SECRET.
    accept_clock
        Believe a clock far ahead of the last decision, or before it.
    restored
        The database comes from a backup: give no flags until the next period.
    """
    queues = _queues(model, count, budget, queue)
    from ..service.settings import ServiceConfig, check_extra

    check_extra()
    from ..service.keys import list_keys
    from ..service.logs import set_up_log
    from ..service.setup import prepare
    from ..service.supervisor import run_service
    from ..service.webhook import check_webhook

    say = set_up_log(os.environ.get("SHORTLIST_LOG", "text"))
    if "://" not in database:
        Path(database).parent.mkdir(parents=True, exist_ok=True)
    models = prepare(
        database, model, queues, period=options.period_from(period), total=total,
        of_work=budget is not None, worth=worth, probe=probe, segment=segment,
        probe_key=os.environ.get(options.PROBE_KEY),
        within=None if within is None else options.seconds_from(within, "--within "),
        accept_clock=accept_clock, restored=restored, **options.entity_from(entity),
    )  # fmt: skip
    with _opened(database) as store:
        known = list_keys(store)
    needed = bool(known) or not _is_loopback(host)
    if needed and all(key["state"] != "valid" for key in known):
        say(
            "There is no valid key: every request is refused until you make one with "
            "shortlist serve keys decide"
        )
    config = ServiceConfig(
        database,
        keys_required=needed,
        proxy_secret=os.environ.get("SHORTLIST_PROXY_SECRET", "").strip().encode() or None,
        accept_clock=accept_clock,
        webhook=check_webhook(webhook, os.environ.get("SHORTLIST_WEBHOOK_SECRET", "")),
    )

    def on_ready(host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        say(f"Serving on http://{shown}:{port} (process {os.getpid()}). Ctrl-C stops.")

    raise typer.Exit(
        run_service(config, host=host, port=port, workers=workers, models=models, on_ready=on_ready)
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
    queues: dict[str, float] = {"default": count if count is not None else budget or 0.0}
    for text in others or []:
        name, _, number = text.partition("=")
        if not name.isidentifier() or not number.isdigit() or name in queues:
            raise typer.BadParameter(f"--queue {text} must be a new name and a count: north=30")
        queues[name] = int(number)
    return queues


def _opened(database: str, *, only_read: bool = False) -> AbstractContextManager[Any]:
    """Open the database of a service, whose extra must be installed."""
    from ..service.settings import check_extra

    check_extra()
    from ..service.databases import opened

    return opened(database, only_read=only_read)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def keys(
    role: Annotated[str | None, typer.Argument(metavar="[ROLE]")] = None,
    queue: Texts = None,
    days: options.Many = None,
    person: options.Text = None,
    database: Database = _FILE,
    as_json: options.AsJson = False,
) -> None:
    """Make and list the keys of a decision service; see also shortlist serve revoke.

    A key is shown once. A running service knows a new key within seconds. From the first key on,
    every request needs one, even when all are revoked.

    Options
    -------
    role
        Make a key of a role: decide, review, manage or read. Without it, all keys are listed.
    queue
        Only for a queue, such as --queue north; may be repeated.
    days
        After how many days the key ends, such as --days 90.
    person
        Whose key it is, such as --person kim or --person checkout: outcomes are theirs
        alone.
    database
        That of the service: --database shortlist.db or postgresql://…
    """
    if (queue or days or person) and not role:
        raise typer.BadParameter("give the role of a new key, such as decide")
    with _opened(database) as store:
        from ..service.keys import list_keys, make_key

        if role is not None:
            typer.echo(make_key(store, role, queues=queue, days=days, person=person))
            typer.echo("Keep it: it cannot be shown again.", err=True)
        elif as_json:
            shell.print_json({"keys": list_keys(store)})
        else:
            for row in list_keys(store):
                made = datetime.fromtimestamp(row["made"], UTC).date()
                where, words = row["queues"] or "all queues", row["person"] or ""
                state = f"{row['role']:7} {row['state']:8} {made}"
                typer.echo(f"{row['id']}  {state}  {where}  {words}")


def revoke(key: Annotated[str, typer.Argument(metavar="KEY")], database: Database = _FILE) -> None:
    """Revoke a key of a decision service, which forgets it within seconds.

    Options
    -------
    key
        Its name, as shortlist serve keys lists it, such as 3f9c1a77.
    database
        That of the service: --database shortlist.db or postgresql://…
    """
    with _opened(database) as store:
        from ..service.keys import revoke_key

        revoke_key(store, key)
        typer.echo(f"{key} is revoked.", err=True)


def head(database: DatabaseArgument, key: KeyFile = None) -> None:
    """Print where the chains of a service's database end, as one line of JSON.

    Keep it elsewhere, to show later that nothing before it was changed: shortlist serve audit
    DATABASE HEADS.

    Options
    -------
    database
        The file of a service or of a stream, or postgresql://…
    key
        A file with a secret, such as --key head.key, by which the line is signed.
    """
    with _opened(database, only_read=True) as store:
        from ..service.audit import read_head

        shell.print_json(read_head(store, key=_secret_in(key)))


def erase(
    database: DatabaseArgument,
    cases: Annotated[list[str] | None, typer.Argument(metavar="[CASE]...")] = None,
    days: options.Many = None,
) -> None:
    """Erase the ids and the columns of cases from a service's database.

    Decisions, outcomes and counts stay, and the audit can still check that nothing else was
    changed. A case that comes again is a new one. Backups keep what they have.

    Options
    -------
    database
        The file of a service, or postgresql://…
    cases
        The ids of cases, such as 4711 4712.
    days
        Or all cases that were decided so many days ago, or earlier, such as --days 365.
    """
    if bool(cases) == (days is not None):
        raise typer.BadParameter("which cases? Their ids, or --days 365 for all older ones")
    with _opened(database) as store:
        from ..service.erasure import erase_cases

        before = None if days is None else time.time() - 86_400 * days
        typer.echo(f"Erased cases: {erase_cases(store, cases or [], before=before):,}.", err=True)


def export(database: DatabaseArgument, out: options.NewTable, queue: options.Text = None) -> None:
    """Write reviewed cases as a table, to learn from and to estimate what is missed from.

    It has every flagged case, with the columns that were sent, the label that its latest review
    found, how it was selected (selected_by, inclusion), and the model that decided. Next month's
    model is fitted with fit --labelled-only --weight inclusion, and evaluate --reviews says what
    was missed.

    Example: shortlist serve export shortlist.db -o reviewed.csv

    Options
    -------
    database
        The file of a service, or postgresql://…
    queue
        Only the cases of a queue, such as --queue north.
    """
    with _opened(database, only_read=True) as store:
        from ..service.reviewed import export_reviews

        n_cases, n_labelled = export_reviews(store, out, queue=queue)
    typer.echo(f"{n_cases:,} cases, {n_labelled:,} of them with an outcome: {out}")


def audit(
    database: DatabaseArgument,
    heads: Annotated[Path | None, typer.Argument(metavar="[HEADS]")] = None,
    key: KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Replay every decision of a service, and check its promises.

    The log must have no gaps, each case one decision, each flag its slot, and no period more flags
    than its capacity. Decisions of this version of shortlist are made again from their scores, and
    flagged or waiting cases are scored again by the model files; both are compared bit for bit.
    Nothing is written, and a copy that is read-only can be audited. Every entry must follow from
    all entries before it, by a chain of hashes. The exit code is 2 if anything is wrong, or if
    there is nothing to check.

    Options
    -------
    database
        The file of a service or of a stream, or postgresql://…
    heads
        A file with lines that shortlist serve head has printed and that was kept elsewhere, such
        as heads.jsonl: the chains must lead through all of them.
    key
        The secret by which they must be signed, such as --key head.key.
    """
    kept, secret = _heads_in(heads), _secret_in(key)
    if key is not None and heads is None:
        raise typer.BadParameter("--key is for HEADS, which were not given")
    with _opened(database, only_read=True) as store:
        from ..service.audit import audit_store

        found = audit_store(store, heads=kept, key=secret)
    if as_json:
        shell.print_json({"queues": [asdict(each) for each in found]})
    else:
        for each in found:
            typer.echo(
                f"{each.queue}: {each.n_decisions:,} decisions and {each.n_flags:,} flags in "
                f"{each.n_periods:,} periods; {each.n_replayed:,} decisions made again, "
                f"{each.n_other:,} only checked; {each.n_rescored:,} "
                f"cases scored again; erased cases: {each.n_erased:,}."
            )
            for problem in each.problems:
                typer.echo(f"  Problem: {problem}.")
        wrong = sum(bool(each.problems) for each in found)
        typer.echo(f"{wrong} queues have problems." if wrong else "Every promise was kept.")
    if any(each.problems for each in found):
        raise typer.Exit(shell.USER_ERROR)


def _heads_in(file: Path | None) -> list[Any]:
    """Return the lines of a file with heads; one that has none would prove nothing."""
    if file is None:
        return []
    import msgspec

    from ..service.audit import Head

    with contextlib.suppress(ValueError, RecursionError, msgspec.MsgspecError):
        heads = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
        if msgspec.convert(heads, list[Head]):
            return heads
    raise ValueError(f"{file} must hold lines that shortlist serve head has printed, at least one.")


def _secret_in(file: Path | None) -> bytes | None:
    secret = None if file is None else file.read_bytes()
    if secret == b"":
        raise ValueError(f"{file} is empty. A secret is a text that cannot be guessed.")
    return secret
