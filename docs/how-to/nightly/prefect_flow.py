"""A flow of Prefect that flags the cases of a day; late days are tried again."""

import subprocess

from prefect import flow, task

LATE = 75


class LateTableError(RuntimeError):
    """The table of the day is not complete yet."""


def is_late(task, run, state):
    """Return whether to try again: only if the table is late."""
    return isinstance(state.result(raise_on_failure=False), LateTableError)


@task(retries=40, retry_delay_seconds=900, retry_condition_fn=is_late)
def flag(day):
    """Run the script for a day, or for yesterday."""
    words = ["/srv/fraud/nightly.sh", *([] if day is None else [day])]
    code = subprocess.run(words, check=False).returncode
    if code == LATE:
        raise LateTableError("The table is late.")
    if code:
        raise RuntimeError(f"nightly.sh ended with exit code {code}.")


@flow
def shortlist_nightly(day: str | None = None):
    """Flag the cases of a day, by default of yesterday; a day may be run again."""
    flag(day)


if __name__ == "__main__":
    shortlist_nightly.serve("nightly", cron="15 4 * * *")
