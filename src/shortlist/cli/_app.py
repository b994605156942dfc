"""The commands, gathered into one program. To add a command, write its file and list it here.

Exit codes: 0 for success, 2 for an invalid option, table or model file, 3 if an output cannot be
written (or the operating system reports another error), 4 if more cases than --at-most would be
flagged, 5 if a check has found drift, 6 if reviews show that detection has fallen, 130 after
Ctrl-C. Any other error is a bug and shows its traceback.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..exceptions import TableNote, TooManyFlagsError
from ._check import check
from ._demo import demo
from ._evaluate import evaluate
from ._export import export
from ._fit import fit
from ._flag import flag
from ._inspect import inspect
from ._options import HELP, split_help
from ._recalibrate import recalibrate
from ._report import report
from ._select import select
from ._serve import audit, erase, head, keys, revoke, serve
from ._serve import export as export_reviews
from ._shell import INTERRUPTED, SYSTEM_ERROR, TOO_MANY, USER_ERROR, is_quiet, say
from ._stream import stream

__all__ = ["app"]

_COMMANDS = (
    fit,
    select,
    flag,
    check,
    evaluate,
    report,
    recalibrate,
    inspect,
    stream,
    serve,
    export,
    demo,
)
_HELP = "Find as many rare cases as your capacity allows."
# The base class of all usage errors, wherever this version of typer defines it.
_UsageError: Any = typer.BadParameter.__base__


Command = TypeVar("Command", bound=Callable[..., None])


class _Command(TyperCommand):
    """A command whose options are explained in its docstring, or in the words of all commands."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.help, own = split_help(self.help or "")
        for param in cast("list[Any]", self.params):
            param.help = own.get(param.name) or HELP[param.name]
            if getattr(param, "is_flag", False) and not param.default:
                param.secondary_opts = []  # what is off by default needs no switch to turn it off

    def get_params(self, ctx: Any) -> Any:
        """Return the options, `--help` included; switches take no value."""
        return _without_types(super().get_params(ctx))


class _Serve(_Command):
    """A command with others behind it, such as `serve keys` and `serve audit`."""

    commands: ClassVar[dict[str, Any]] = {}

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **more: Any) -> Any:
        """Hand over to another command if the first word is its name."""
        inner = self.commands.get(args[0]) if args else None
        if inner is None:
            return super().make_context(info_name, args, parent=parent, **more)
        return inner.make_context(f"{info_name} {args[0]}", args[1:], parent=parent, **more)


class _Program(TyperGroup):
    """Commands whose usage errors take one line and name the help page."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options, `--help` included."""
        return _without_types(super().get_params(ctx))

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and exit with its code."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
        except _UsageError as error:
            _explain(error)
        sys.exit(code if isinstance(code, int) else 0)


def _without_types(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def _explain(error: Any) -> NoReturn:
    command = error.ctx.command_path if error.ctx else "shortlist"
    if type(error).__name__ == "NoArgsIsHelpError":  # no command was given: show the help
        error.show()
    else:
        words = " ".join(error.format_message().split())
        typer.echo(f"Error: {words.rstrip('.')}. See: {command} --help", err=True)
    sys.exit(USER_ERROR)


def _answering(command: Command) -> Command:
    """Turn the errors of a command into one line and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _warnings_in_one_line():
                command(*args, **kwargs)
        except KeyboardInterrupt as stopped:
            _stop(f"Interrupted. No output file was written.{stopped}", INTERRUPTED)
        except (ValueError, ImportError) as error:
            if os.environ.get("SHORTLIST_DEBUG"):
                raise
            many = isinstance(error, TooManyFlagsError)
            _stop(str(error), TOO_MANY if many else USER_ERROR)
        except MemoryError:
            _stop("Not enough memory. Use a smaller table, or a larger machine.", SYSTEM_ERROR)
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of the output has stopped reading
                raise
            _stop(_system_error(error), SYSTEM_ERROR)

    return run  # type: ignore[return-value]


def _stop(message: str, code: int) -> None:
    say("Error", message)
    raise typer.Exit(code)


def _system_error(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            "The disk is full. No output file was written. Free some space, or write to another "
            "disk."
        )
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print each warning once, without its source line, even if an error follows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for kind, message in dict.fromkeys((w.category, str(w.message)) for w in caught):
                say("Note" if issubclass(kind, TableNote) else "Warning", message)


app = typer.Typer(
    name="shortlist", cls=_Program, help=_HELP, no_args_is_help=True, add_completion=True
)
for _command in _COMMANDS:
    if _command is serve:  # SHORTLIST_COUNT is --count, and so on
        _settings = {"auto_envvar_prefix": "SHORTLIST"}
        app.command(cls=_Serve, context_settings=_settings)(_answering(_command))
    else:
        app.command(cls=_Command)(_answering(_command))
_behind_serve = typer.Typer()
for _behind in (keys, revoke, head, audit, erase, export_reviews):
    _behind_serve.command(cls=_Command)(_answering(_behind))
_Serve.commands = typer.main.get_command(_behind_serve).commands  # type: ignore[attr-defined]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shortlist {__version__}")
        raise typer.Exit


@app.callback(help=_HELP)
def _program(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
    quiet: bool = typer.Option(
        False, "--quiet", help="Show no notes and no progress: shortlist --quiet flag ..."
    ),
) -> None:
    is_quiet[:] = [True] * quiet
