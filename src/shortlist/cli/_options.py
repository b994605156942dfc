"""What the options of all commands take, and what those mean that several commands have.

A parameter of a command is an option. Its type says what it takes; its help is in the docstring of
the command, below `Options`, or here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.files import as_path, without_user
from .._core.formatting import number

if TYPE_CHECKING:
    from ..capacity import Capacity
    from ..tables import ReadOptions, WorkColumns

HELP = {
    "model": "A model file made by fit.",
    "data": "A table (.csv, .tsv, .txt, .jsonl, .ndjson, all of these also with .gz; .xlsx, .xlsm, "
    ".parquet, .pq), or a folder with its parts; - reads CSV from standard input. Or an address, "
    "such as sqlite:///office.db#cases.",
    "query": "What to read from a database, such as shortlist inspect sqlite:///office.db --query "
    "'select * from cases where day = 7'.",
    "out": "Write here, such as -o list.xlsx: .csv, .xlsx, .parquet or .jsonl.",
    "as_json": "Print JSON, for scripts.",
    "target": "The column with the labels, such as --target fraud. Default: that of the fit.",
    "id": "The column that names a case, such as --id customer; never learned from. Default: that "
    "of the model.",
    "keep": "Columns to carry along, such as --keep name,town; --keep all takes all of them.",
    "exclude": "A table with the ids of cases to leave out, such as --exclude done.csv.",
    "drop": "Columns to leave out, such as --drop cancelled_on,refund.",
    "read": "How to read a table, where it is guessed wrong: --read sep=tab, --read decimal=, "
    "--read encoding=cp1252, --read sheet=May, --read na=-999, --read date_format=DD/MM/YYYY (or "
    "date_format=COLUMN=DD/MM/YYYY), --read keep_total=true; for a fit also --read "
    "categorical=zip, --read numeric=price, --read columns=age,plan. May be repeated.",
    "capacity": "How many cases can be followed up ...",
    "per": "... of how many, such as --capacity 600 --per 10000.",
    "fraction": "Or the share of all cases, such as --fraction 0.06.",
    "multiple": "Or how many cases for each rare one, such as --multiple 3.",
    "guarantee": "What is promised, such as --guarantee confident; or plug-in, expected, "
    "next-batch, simultaneous, anytime. Default: expected, or that of the model.",
    "confidence": "How surely it holds, such as --confidence 0.99; for confident, next-batch, "
    "simultaneous and anytime.",
    "value": "The column that says what a case is worth if it is rare, such as --value amount. A "
    "model that was fitted with it knows its name.",
    "effort": "The column that says how much work a case takes, such as --effort minutes_needed "
    "...",
    "budget": "... and how much may be spent on all, such as --budget 480 ...",
    "unit": "... in which unit, such as --unit minutes.",
    "worth": "Leave places empty for cases of less expected value per unit of effort (without "
    "--value and --effort: of less probability), such as --worth 1.5.",
    "reviews": "A table of reviews with probes, such as --reviews done.csv: says what is missed.",
    "probe": "Share of the flags for cases below the threshold, drawn at random, such as --probe "
    "0.1. Their outcomes tell what is missed: shortlist evaluate --reviews.",
    "entity": "The column that says whose event it is, such as --entity customer: events of one "
    "entity are one case, and take one slot, for 24 hours after the flag. --entity "
    "customer,window=12h,cooldown=7d,rise=0.2 says for how long, for how long after that, and by "
    "how much a score must exceed all scores of the case to be raised again in between.",
}
#: The environment variable with a text that makes the draw of probes reproducible.
PROBE_KEY = "SHORTLIST_PROBE_KEY"


def split_help(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring, and the help that it has for each option."""
    text, _, options = docstring.partition("\nOptions\n-------\n")
    found = re.findall(r"^(\w+)\n((?:    .+\n?)+)", options, re.MULTILINE)
    return text, {name: " ".join(words.split()) for name, words in found}


# --- what options take ---


def _taking(metavar: str, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, metavar=metavar, show_default=False, **settings)


def _number(text: str) -> float:
    """Return a number; a percentage is answered with the share to write."""
    try:
        return float(text)
    except ValueError:
        share = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", text)
        hint = f"; for {share[1]} % write {number(float(share[1]) / 100, 12)}" if share else ""
        raise typer.BadParameter(f"{text!r} is not a number such as 0.06{hint}") from None


def path(text: str, query: str | None = None) -> Any:
    """Return a file, or a table of a database."""
    try:
        return as_path(text, query)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def table(metavar: str) -> Any:
    """Return an argument: a table, or what --query finds, which is known before all arguments."""

    def asked(context: typer.Context, text: str | None) -> Any:
        query = context.params["query"]
        return None if text is None and query is None else path(text or "", query)

    return typer.Argument(metavar=metavar, parser=str, callback=asked)


def _here(text: str) -> Path:
    """Return a file of this machine: only tables are read from elsewhere."""
    if "://" in text:
        raise typer.BadParameter(f"{without_user(text)} is not on this machine: copy it first")
    return Path(text)


class Table(Any):
    """A file, or a table of a database; not a `Path`, which some versions of typer convert."""


Model = Annotated[Path, typer.Argument(metavar="MODEL", parser=_here)]
#: A table to read, of a command that has a `query` as well; it gets both as one.
Data = Annotated[Table, table("DATA")]
Query = Annotated[str | None, _taking("SQL", is_eager=True)]
NewFile = Annotated[Path, _taking("FILE", "--out", "-o", parser=_here)]
OtherModel = Annotated[Path | None, _taking("FILE", parser=_here)]
NewTable = Annotated[Table, _taking("FILE", "--out", "-o", parser=path)]
Out = Annotated[Table | None, _taking("FILE", "--out", "-o", parser=path)]
AsJson = Annotated[bool, typer.Option("--json")]
File = Annotated[Table | None, _taking("FILE", parser=path)]
Text = Annotated[str | None, _taking("TEXT")]
Column = Annotated[str | None, _taking("COLUMN")]
Columns = Annotated[list[str] | None, _taking("COLUMNS")]
Count = Annotated[int | None, _taking("N", min=0)]
Many = Annotated[int | None, _taking("N", min=1)]
Number = Annotated[float | None, _taking("NUMBER", parser=_number)]
Probe = Annotated[float, typer.Option(metavar="SHARE", min=0, max=1)]
Guarantee = Annotated[str | None, _taking("NAME")]
Read = Annotated[list[str] | None, _taking("NAME=VALUE")]


# --- what options mean together ---


#: Options that give a capacity together, and how they are typed.
_WAYS = {
    ("capacity", "per"): "--capacity 600 --per 10000",
    ("budget", "per"): "--budget 480 --per 10000",
    ("fraction",): "--fraction 0.06",
    ("multiple",): "--multiple 3",
    ("count", "period"): "--count 50 --period day",
    ("budget", "period"): "--budget 480 --period day",
}


def capacity_from(**options: Any) -> Capacity | None:
    """Return the capacity that options give, in one way; None if they give none."""
    from ..capacity import Capacity

    given = {name: value for name, value in options.items() if value is not None}
    if not given:
        return None
    ways = {way: typed for way, typed in _WAYS.items() if set(way) <= set(options)}
    kind = next((way[0] for way in ways if set(way) == set(given)), None)
    if kind is None:
        raise typer.BadParameter(
            f"give the capacity in one way; got {', '.join(f'--{name}' for name in given)}. These "
            f"belong together: {'; or '.join(ways.values())}"
        )
    if "multiple" in options and given[kind] == 0:
        raise typer.BadParameter(f"--{kind} 0 leaves a model that can flag nothing: raise it")
    rate = {"per": given["per"]} if "per" in given else {}
    kinds = {"capacity": "count", "budget": "effort"}
    return getattr(Capacity, kinds.get(kind, kind))(given[kind], **rate)


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_NAMES = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}


def period_from(period: str) -> float | str:
    """Return the seconds of a period, or its text if it belongs to a calendar."""
    period = "month UTC" if period == "month" else period.strip()
    also = ", month, or with a time zone: 'day Europe/Berlin'"
    return period if " " in period else seconds_from(period, "--period ", also)


def seconds_from(period: str, before: str, also: str = "") -> float:
    """Return the seconds of a length of time."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", _NAMES.get(period, period))
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(
            f"{before}{period} is not a length of time; use 90s, 15m, 12h, hour, day, week{also}"
        )
    return float(match[1]) * _UNITS[match[2] or "s"]


def same_named(options: dict[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options that a function has parameters for; what was not given has its default."""
    named = inspect.getfullargspec(function).kwonlyargs
    return {name: options[name] for name in named if options.get(name) is not None}


def _column_and(option: str, text: str, *names: str) -> tuple[str, dict[str, str]]:
    """Return a column, and what is said about it: customer,window=12h is {"window": "12h"}."""
    column, *parts = re.split(",(?=[^,=]*=)", text)
    said = {name.strip(): value.strip() for name, _, value in (p.partition("=") for p in parts)}
    if not column or len(said) < len(parts) or not {*said} <= {*names}:
        raise typer.BadParameter(
            f"--{option} {text} is not a column, perhaps with {', '.join(names)} behind it, such "
            f"as COLUMN,{names[0]}=..., each once"
        )
    return column, said


def entity_from(entity: str | None) -> dict[str, Any]:
    """Return what makes events one case; nothing without an entity."""
    if entity is None:
        return {}
    column, said = _column_and("entity", entity, "window", "cooldown", "rise")
    rise = said.pop("rise", None)
    lengths = {"window": "24h", **said}.items()
    times = {name: seconds_from(text, f"--entity ...,{name}=") for name, text in lengths}
    other = {"cooldown": 0.0, "rise": None if rise is None else _number(rise)}
    return {"entity": column, **other, **times}


def allowed_from(allow: list[str] | None, entity: str | None) -> dict[str, float]:
    """Return the entities of an allow-list, and until when each one is on it."""
    from ..online.decisions import parse_moment

    if allow and entity is None:
        raise typer.BadParameter("--allow needs --entity, such as customer")
    pairs = [text.rpartition("=") for text in allow or ()]
    if not all(name for name, _, _ in pairs):
        raise typer.BadParameter("--allow takes an entity and a moment, such as ann=2027-01-31")
    return {name: parse_moment(until) for name, _, until in pairs}


def rule_from(entity: str | None) -> dict[str, Any]:
    """Return the column of an entity and its rule, for tables; nothing without an entity."""
    said = entity_from(entity)
    if not said:
        return {"entity": None}
    from ..online import EntityCases

    return {"entity": said.pop("entity"), "rule": EntityCases(**said)}


def work_from(
    value: str | None,
    effort: str | None,
    worth: float | None,
    budget: float | None = None,
    unit: str = "units",
    *also: str,
) -> WorkColumns:
    """Return the columns of values and efforts, and what may be spent."""
    from ..tables import WorkColumns

    column, said = _column_and("effort", effort, *also) if effort and also else (effort, {})
    most = _number(said["max"]) if "max" in said else None
    return WorkColumns(value, column, budget, worth, unit, most)


#: What only a fit asks for, and what there is not in JSON lines.
OF_FITS = ("columns", "categorical", "numeric")
NOT_IN_LINES = ("sep", "encoding", "sheet", "keep_total", *OF_FITS)


def read_options(
    read: list[str] | None, drop: list[str] | None = None, *, but: Collection[str] = OF_FITS
) -> ReadOptions:
    """Return what --read says: pairs of a name and a value."""
    from ..tables import ReadOptions

    known = {each.name: type(each.default) for each in fields(ReadOptions) if each.name != "drop"}
    given: dict[str, Any] = {"drop": tuple(drop or ())}
    for text in read or ():
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise typer.BadParameter(f"--read {text} is not NAME=VALUE; names: {', '.join(known)}")
        if name in but:
            command = "fit" if name in OF_FITS else "tables"
            raise typer.BadParameter(f"--read {name}=... is for {command}, and has no effect here")
        given[name] = (*given.get(name, ()), value) if known[name] is tuple else value
    keep_total = given.pop("keep_total", "false").lower()
    if keep_total not in ("true", "false"):
        raise typer.BadParameter(f"--read keep_total must be true or false, not {keep_total!r}")
    return ReadOptions(**given, keep_total=keep_total == "true")
