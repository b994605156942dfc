"""The commands as a whole: a wrong option is said in one line, as every other error is."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from ._answer import USER_ERROR

__all__ = ["Commands"]

# The base of all complaints about usage, wherever this version of typer keeps it.
_UsageError: Any = typer.BadParameter.__base__


class Commands(TyperGroup):
    """Commands whose usage errors take one line and say where to read on."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and leave with its exit code."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
        except _UsageError as error:
            _complain(error)
        sys.exit(code if isinstance(code, int) else 0)


def _complain(error: Any) -> NoReturn:
    command = error.ctx.command_path if error.ctx else "shortlist"
    if type(error).__name__ == "NoArgsIsHelpError":  # nothing was asked for: help is the answer
        error.show()
    else:
        words = " ".join(error.format_message().split())
        typer.echo(f"Error: {words.rstrip('.')}. See: {command} --help", err=True)
    sys.exit(USER_ERROR)
