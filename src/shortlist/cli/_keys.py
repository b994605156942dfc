"""`shortlist serve keys`: who may ask the service."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ._errors import answering
from ._serve import Database, DataFolder, database_in
from ._shared import AsJson, print_json


@answering
def keys(
    make: Annotated[
        str | None,
        typer.Option(help="Make a key of a role, such as --make decide; or review, manage, read."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(help="Only for a queue, such as --queue north; may be repeated."),
    ] = None,
    note: Annotated[
        str | None, typer.Option(help="Whom the key is for, such as --note checkout.")
    ] = None,
    revoke: Annotated[
        str | None, typer.Option(help="Revoke the key of a name, such as --revoke 3fa8.")
    ] = None,
    database: Database = None,
    data: DataFolder = Path("shortlist-data"),
    as_json: AsJson = False,
) -> None:
    """Make, list and revoke the keys of a decision service.

    A key is shown once. A running service knows a new key, and forgets a revoked one, within
    seconds; its first key takes effect when it is started again.
    """
    from ..service.config import check_extra

    check_extra()
    from ..service.databases import opened
    from ..service.keys import list_keys, make_key, revoke_key

    with opened(database_in(database, data)) as store:
        if make is not None:
            key = make_key(store, make, queues=queue, note=note)
            if as_json:
                print_json({"key": key, "role": make, "queues": queue})
            else:
                typer.echo(key)
                typer.echo("Keep it: it cannot be shown again.", err=True)
        if revoke is not None:
            revoke_key(store, revoke)
            typer.echo(f"{revoke} is revoked.", err=True)
        if make is None and revoke is None:
            found = list_keys(store)
            if as_json:
                print_json({"keys": found})
                return
            for row in found:
                made = datetime.fromtimestamp(row["made"], UTC).date()
                state = "revoked" if row["revoked"] else "valid"
                where, words = row["queues"] or "all queues", row["note"] or ""
                typer.echo(f"{row['id']}  {row['role']:7} {state:8} {made}  {where}  {words}")
