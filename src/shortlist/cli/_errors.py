"""One line and an exit code for what goes wrong.

Exit codes: 0 for success, 2 for an invalid option, table or model file, 3 if an output cannot be
written (or the operating system reports another error), 4 if more cases than --at-most would be
flagged, 5 if a check has found drift, 6 if reviews show that detection has fallen, 130 after
Ctrl-C. Any other error is a bug and shows its traceback.

The library names a parameter as one passes it in Python: `rare=...`, `n_batches=5`,
`Capacity.fraction(0.06)`. Here, and only here, such a name becomes an option.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

from ..exceptions import TableNote, TooManyFlagsError

USER_ERROR, SYSTEM_ERROR, TOO_MANY, DRIFT, FALLEN, INTERRUPTED = 2, 3, 4, 5, 6, 130

Command = TypeVar("Command", bound=Callable[..., None])


def answering(command: Command) -> Command:
    """Turn the errors of a command into one line and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _warnings_in_one_line():
                command(*args, **kwargs)
        except KeyboardInterrupt:
            _stop("Interrupted. No output file was written.", INTERRUPTED)
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


def say(kind: str, message: str) -> None:
    """Print a message on standard error in one line, with options for arguments."""
    typer.echo(f"{kind}: {in_options(' '.join(message.split()))}", err=True)


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


# --- arguments as options ---

#: The parameters of the library that options set; those of the same name, and then the others.
_SAME = """
    adopt at_most budget capacities challenger confidence controller count drop effort exclude
    expect folds group guarantee id keep learner load max_effort n_batches period probe
    rare reviews seed segment size target test_share time title total
    trust_model unit value worth
"""
_READ = "categorical columns date_format decimal encoding keep_total na numeric sep sheet"
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME.split()} | {
    "rare_label": "--rare",
    "ids": "--id",
    "values": "--value",
    "efforts": "--effort",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "labels": "--no-labels",
    "trust": "--trust-model",
    **{name: f"--read {name}" for name in _READ.split()},
}
#: A text that needs no quotes in a shell.
_PLAIN = r"'[\w.,+/%=-]+'|\"[\w.,+/%=-]+\""
_CAPACITIES = {
    "count": ("--capacity", "--per"),
    "effort": ("--budget", "--per"),
    "fraction": ("--fraction",),
    "multiple": ("--multiple",),
}
_PASSED = re.compile(
    r"\bCapacity\.(?P<kind>count|effort|fraction|multiple)\((?P<values>[^()]*)\)"
    rf"|\b(?P<name>{'|'.join(OPTIONS)})"
    r"(?:=(?P<value>'[^']*'|\"[^\"]*\"|\.{3}|[^\s,;:()]*[^\s,;:().]))"
    rf"|^(?P<first>{'|'.join(OPTIONS)})(?= must)"
)


def in_options(message: str) -> str:
    """Return a message of the library with options in place of arguments.

    Examples
    --------
    >>> in_options("guarantee='next-batch' promises a number; use Capacity.count(K, per=N).")
    '--guarantee next-batch promises a number; use --capacity K --per N.'
    >>> in_options("Capacity.multiple(3.0) counts. Name another label with rare=...")
    '--multiple 3 counts. Name another label with --rare.'
    """
    return _PASSED.sub(_as_option, message)


def _as_option(match: re.Match[str]) -> str:
    if match["kind"]:
        return _as_options_of_capacity(match["kind"], match["values"])
    if match["first"]:
        return OPTIONS[match["first"]]
    if match["name"] in _READ.split():
        return _as_read(match["name"], match["value"])
    option = _valued(OPTIONS[match["name"]], match["value"])
    # The three dots may also end a sentence.
    ends = match["value"] == "..." and re.match(r"$| [A-Z]", match.string[match.end() :])
    return f"{option}." if ends else option


def _as_read(name: str, value: str) -> str:
    """Return --read NAME=VALUE as one types it, in quotes if the value needs them."""
    value = "'true'" if value == "True" else value
    if re.fullmatch(_PLAIN, value):
        return f"--read {name}={value[1:-1]}"
    return f"--read {value[0]}{name}={value[1:]}" if value[0] in "'\"" else f"--read {name}={value}"


def _as_options_of_capacity(kind: str, values: str) -> str:
    options = _CAPACITIES[kind]
    given = [value.strip().removeprefix("per=") for value in values.split(",")]
    if given[0] == "...":
        return " and ".join(options)
    return " ".join(map(_valued, options, given))


def _valued(option: str, value: str) -> str:
    """Return an option with a value as one types it: 600 instead of 600.0 or 10_000."""
    if value in ("...", "True", "False"):
        return option
    if re.fullmatch(r"-?[0-9_]+(\.[0-9]+)?", value):
        value = value.replace("_", "").removesuffix(".0")
    elif re.fullmatch(_PLAIN, value):
        value = value[1:-1]
    return f"{option} {value}"
