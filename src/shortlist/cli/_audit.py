"""`shortlist serve audit`: prove afterwards that every promise was kept."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ._errors import USER_ERROR, answering
from ._shared import AsJson, print_json


@answering
def audit(
    database: Annotated[
        str,
        typer.Argument(
            metavar="DATABASE", help="The file of a service or of a stream, or postgresql://…"
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Replay every decision of a service, and check its promises.

    The log must have no gaps, each case one decision, each flag its slot, and no period more flags
    than its capacity. Decisions of this version of shortlist are made again from their scores, and
    flagged cases are scored again by the model files; both are compared bit for bit. The exit code
    is 2 if anything is wrong.
    """
    from ..service.config import check_extra

    check_extra()
    from ..service.audit import audit_store
    from ..service.databases import opened

    with opened(database) as store:
        found = audit_store(store)
    if as_json:
        print_json({"queues": [asdict(each) for each in found]})
    else:
        for each in found:
            typer.echo(
                f"{each.queue}: {each.n_decisions:,} decisions and {each.n_flags:,} flags in "
                f"{each.n_periods:,} periods; {each.n_replayed:,} decisions made again, "
                f"{each.n_other:,} of other versions only checked; {each.n_rescored:,} flagged "
                "cases scored again."
            )
            for problem in each.problems:
                typer.echo(f"  Problem: {problem}.")
        wrong = sum(bool(each.problems) for each in found)
        typer.echo(f"{wrong} queues have problems." if wrong else "Every promise was kept.")
    if any(each.problems for each in found):
        raise typer.Exit(USER_ERROR)
