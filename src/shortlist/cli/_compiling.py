"""A line for the user while functions are compiled for the first time."""

from __future__ import annotations

import sys
from typing import Any

import typer

__all__ = ["announce_compiling"]

_MESSAGE = "Compiling once for this machine, up to a minute; later runs start at once."
# Holds one item while numba is listened to, and a second one when the line was printed.
_announced: list[bool] = []


def announce_compiling() -> None:
    """Say so when the first function is compiled; later runs find all of them ready.

    To be called when the packages of a command are imported: without numba, nothing is compiled.
    """
    if _announced or "numba" not in sys.modules:
        return
    _announced.append(True)
    from numba.core import event

    class Announcer(event.Listener):
        """Prints one line when the first compilation starts."""

        def on_start(self, event: Any) -> None:
            if len(_announced) == 1:
                _announced.append(True)
                typer.echo(_MESSAGE, err=True)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcer())
