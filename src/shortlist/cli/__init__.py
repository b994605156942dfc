"""The command line: one file per command. Needs the extra `cli`.

This is the only package that prints. Commands import the packages they need when they run.
"""

from __future__ import annotations

import atexit
import gc
import sys

from .. import __version__
from .._core.extras import load_extra

__all__ = ["main"]


def main() -> None:
    """Run the program `shortlist`; without the extra `cli`, print what to install."""
    if sys.argv[1:] == ["--version"]:  # without importing anything else
        sys.stdout.write(f"shortlist {__version__}\n")
        return
    # What is imported stays: to search it for garbage, also at the end, takes as long as a fit. But
    # DuckDB prints a list of all that it finds unfreed.
    gc.set_threshold(50_000, 20, 20)
    atexit.register(lambda: None if "duckdb" in sys.modules else gc.freeze())
    try:
        load_extra("typer", needed_for="The command line")
        load_extra("rich", needed_for="The command line")
    except ImportError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)
    from ._app import app

    app()
