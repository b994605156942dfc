"""The command line: one file per command; the only part that prints."""

from ._app import app

__all__ = ["app"]
