"""Options that several commands have in common, and get as one object: `reading` and `work`."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ._worth_options import Budget, Effort, Unit, Value, WorthOption

_PANEL = "How to read the file"
_ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16", "cp1250", "mac-roman")
_DATE_FORMATS = ("DD/MM/YYYY", "MM/DD/YYYY", "DD.MM.YYYY", "YYYY-MM-DD", "YYYYMMDD")


def _starting(values: tuple[str, ...]) -> Callable[[str], list[str]]:
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


def _option(help: str, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, show_default=False, **settings)


_Texts = list[str]
_READ: dict[str, Any] = {
    "read": Annotated[
        Path | None,
        _option(
            "A TOML file with any of these options, such as --read german.toml; those of the call "
            "take precedence.",
            metavar="FILE",
        ),
    ],
}
_FILE: dict[str, Any] = {
    "sep": Annotated[
        str | None,
        _option(
            "Sign between columns, if it is guessed wrong, such as --sep '|' or --sep tab.",
            metavar="SIGN",
            autocompletion=_starting((",", ";", "|", "tab")),
        ),
    ],
    "encoding": Annotated[
        str | None,
        _option(
            "Encoding of a text file that is not UTF-8, such as --encoding cp1252.",
            metavar="NAME",
            autocompletion=_starting(_ENCODINGS),
        ),
    ],
    "sheet": Annotated[
        str | None,
        _option("Sheet of an Excel file with several, such as --sheet Customers.", metavar="NAME"),
    ],
    "keep_total": Annotated[
        bool,
        _option(
            "Keep a last row that looks like a total; by default it is left out.", "--keep-total"
        ),
    ],
}
_VALUES: dict[str, Any] = {
    "decimal": Annotated[
        str | None,
        _option(
            "Decimal sign, if it is guessed wrong: --decimal , or --decimal .",
            metavar="SIGN",
            autocompletion=_starting((",", ".")),
        ),
    ],
    "na": Annotated[
        _Texts | None,
        _option(
            "A word that means missing; repeat it for more: --na refused --na -999.", metavar="WORD"
        ),
    ],
    "date_format": Annotated[
        _Texts | None,
        _option(
            "How dates are written: --date-format MM/DD/YYYY, or for one column --date-format "
            "opened=DD.MM.YYYY; %d/%m/%Y works, too.",
            metavar="FORMAT",
            autocompletion=_starting(_DATE_FORMATS),
        ),
    ],
}
_COLUMNS: dict[str, Any] = {
    "columns": Annotated[
        _Texts | None,
        _option("The columns to learn from, such as --columns age,plan.", metavar="NAMES"),
    ],
    "drop": Annotated[
        _Texts | None,
        _option("Columns to leave out, such as --drop cancelled_on,refund.", metavar="NAMES"),
    ],
    "categorical": Annotated[
        _Texts | None,
        _option("Columns that hold codes, such as --categorical zip.", metavar="NAMES"),
    ],
    "numeric": Annotated[
        _Texts | None,
        _option("Columns that hold numbers, such as --numeric price.", metavar="NAMES"),
    ],
}
_WORK: dict[str, Any] = {
    "value": Value,
    "effort": Effort,
    "budget": Budget,
    "unit": Unit,
    "worth": WorthOption,
}
_DEFAULTS = {"keep_total": False, "unit": "units"}


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about files; it gets them as one `reading`."""
    return _extended(command, "reading", _READ | _FILE | _VALUES, _read_options)


def with_column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about files and about the columns to learn from."""
    return _extended(command, "reading", _READ | _FILE | _VALUES | _COLUMNS, _read_options)


def with_line_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about the values in JSON lines."""
    return _extended(command, "reading", _READ | _VALUES, _read_options)


def with_work_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about values and efforts; it gets them as one `work`."""
    return _extended(command, "work", _WORK, _work_columns)


def _work_columns(said: dict[str, Any]) -> Any:
    from ..tables import WorkColumns

    return WorkColumns(**said)


def _read_options(said: dict[str, Any]) -> Any:
    from ..tables import ReadOptions

    in_file = _from_file(said.pop("read"))
    return ReadOptions(**in_file | {name: value for name, value in said.items() if value})


def _from_file(path: Path | None) -> dict[str, Any]:
    """Return the options in a TOML file; a name that is none of them is an error."""
    if path is None:
        return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise typer.BadParameter(f"--read {path} is not a TOML file: {error}") from None
    options = _FILE | _VALUES | _COLUMNS
    unknown = [name for name in content if name not in options]
    if unknown:
        known = ", ".join(options)
        raise typer.BadParameter(f"--read {path} has {unknown[0]!r}; it may have {known}")
    several = (_VALUES.keys() | _COLUMNS.keys()) - {"decimal"}
    for name in several & content.keys():
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
