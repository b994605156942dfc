"""Options that several commands have in common, and get as one object: `reading` and `work`."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from ._worth_options import Budget, Effort, Unit, Value, WorthOption

_PANEL = "How to read the file"
#: What only files have, and what only a fit asks for.
_OF_FILES = ("sep", "encoding", "sheet", "keep_total")
_OF_FITS = ("columns", "categorical", "numeric")


def _names(incomplete: str) -> list[str]:
    return [f"{name}=" for name in _fields() if name.startswith(incomplete)]


_READ: dict[str, Any] = {
    "read": Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=_PANEL,
            show_default=False,
            metavar="NAME=VALUE",
            autocompletion=_names,
            help="How to read a table, where it is guessed wrong: --read sep=tab, --read decimal=, "
            "--read encoding=cp1252, --read sheet=May, --read na=-999, --read "
            "date_format=DD/MM/YYYY (or date_format=COLUMN=DD/MM/YYYY), --read keep_total=true; "
            "for a fit also --read categorical=zip, --read numeric=price, --read columns=age,plan. "
            "May be repeated. --read german.toml reads them from a file.",
        ),
    ],
}
_DROP: dict[str, Any] = {
    "drop": Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=_PANEL,
            show_default=False,
            metavar="NAMES",
            help="Columns to leave out, such as --drop cancelled_on,refund.",
        ),
    ],
}
_WORK: dict[str, Any] = {
    "value": Value,
    "effort": Effort,
    "budget": Budget,
    "unit": Unit,
    "worth": WorthOption,
}
_DEFAULTS = {"unit": "units"}


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option about files; it gets it as one `reading`."""
    return _extended(command, "reading", _READ, functools.partial(_read_options, but=_OF_FITS))


def with_column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about files and about the columns to learn from."""
    return _extended(command, "reading", _READ | _DROP, _read_options)


def with_line_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option about the values in JSON lines."""
    but = (*_OF_FILES, *_OF_FITS)
    return _extended(command, "reading", _READ, functools.partial(_read_options, but=but))


def with_work_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about values and efforts; it gets them as one `work`."""
    return _extended(command, "work", _WORK, _work_columns)


def _work_columns(said: dict[str, Any]) -> Any:
    from ..tables import WorkColumns

    return WorkColumns(**said)


def _fields() -> dict[str, type]:
    """Return what --read can say, and whether that is a text, several texts or yes or no."""
    from ..tables import ReadOptions

    return {
        field.name: type(field.default) for field in fields(ReadOptions) if field.name != "drop"
    }


def _read_options(said: dict[str, Any], but: Collection[str] = ()) -> Any:
    """Return what --read says: pairs of a name and a value, which take precedence, and files."""
    from ..tables import ReadOptions

    known = _fields()
    in_files: dict[str, Any] = {}
    typed: dict[str, Any] = {}
    for text in said["read"] or ():
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            in_files |= _from_file(Path(text), known)
        elif name in but:
            command = "fit" if name in _OF_FITS else "tables"
            raise typer.BadParameter(f"--read {name}=... is for {command}, and has no effect here")
        else:
            typed[name] = (*typed.get(name, ()), value) if known[name] is tuple else value
    merged = in_files | typed
    merged["keep_total"] = str(merged.get("keep_total", False)).lower() == "true"
    return ReadOptions(**merged, drop=tuple(said.get("drop") or ()))


def _from_file(path: Path, known: dict[str, type]) -> dict[str, Any]:
    """Return the options in a TOML file; a name that is none of them is an error."""
    names = ", ".join(known)
    if not path.exists():
        raise typer.BadParameter(f"--read {path} is neither a file nor NAME=VALUE; names: {names}")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise typer.BadParameter(f"--read {path} is not a TOML file: {error}") from None
    unknown = [name for name in content if name not in known]
    if unknown:
        raise typer.BadParameter(f"--read {path} has {unknown[0]!r}; it may have {names}")
    for name in [name for name in content if known[name] is tuple]:
        given = content[name]
        content[name] = [str(each) for each in (given if isinstance(given, list) else [given])]
    return content


def _extended(
    command: Callable[..., None],
    name: str,
    options: dict[str, Any],
    gathered: Callable[[dict[str, Any]], Any],
) -> Callable[..., None]:
    """Return a command with more options, which it gets as one argument."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        said = {option: given.pop(option) for option in options}
        command(**given, **{name: gathered(said)})

    unknown = {"ReadOptions": Any, "WorkColumns": Any}
    signature = inspect.signature(command, eval_str=True, locals=unknown)
    own = [each for each in signature.parameters.values() if each.name != name]
    added = [
        inspect.Parameter(
            option,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(option),
            annotation=annotation,
        )
        for option, annotation in options.items()
    ]
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    run.__signature__ = signature.replace(parameters=[*keyword, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in [*keyword, *added]}
    return run
