"""`shortlist inspect`: what is in a model file, or how a table would be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..exceptions import ModelFileError
from ._errors import answering, in_options
from ._reading import with_column_options
from ._shared import AsJson, percent, print_json, tell

if TYPE_CHECKING:
    from ..tables import ReadOptions
    from ..tables.inspect import ColumnView, TableView


@answering
@with_column_options
def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A model file made by fit, or a table.")
    ],
    as_json: AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Show what is in a model file, or how a table would be read.

    Of a model: its columns and how they are read, capacity, promise, results and versions. The
    model itself is not loaded. Of a table: what each column would be taken for, and every decision
    that could have been another, before any fit.

    Example: shortlist inspect cases.csv
    """
    from ..tables.inspect import inspect_table
    from ..tables.model_file import describe_model
    from ..tables.read import is_table

    try:
        content = describe_model(file)
    except ModelFileError:
        if not is_table(file):
            raise
        view = inspect_table(file, reading=reading)
        if as_json:
            print_json(view)
        else:
            _print_table(view)
        return
    if as_json:
        print_json(content)
        return
    console = Console()
    console.print(_facts(content))
    console.print(_columns(content))
    rules = (content["card"] or {}).get("rules") or []
    if rules:
        console.print(_rules(content, rules))
    for note in (content["card"] or {}).get("notes") or []:
        words = f"Note of the fit: {in_options(note)}"
        console.print(words, soft_wrap=True, highlight=False, markup=False)


def _print_table(view: TableView) -> None:
    tell(view.notes)
    rows = f"{view.n_rows:,} rows" if view.is_whole else f"the first {view.n_rows:,} rows"
    table = Table(title=f"{view.table}, {rows}")
    for heading in ("Column", "Read as", "Missing", "Examples"):
        table.add_column(heading, justify="right" if heading == "Missing" else "left")
    for column in view.columns:
        missing = "" if column.n_missing is None else f"{column.n_missing:,}"
        examples = ", ".join(f"{example:.40}" for example in column.examples)
        table.add_row(escape(column.name), escape(_read_as(column)), missing, escape(examples))
    Console().print(table)


def _read_as(column: ColumnView) -> str:
    if column.kind is None:
        return "left out"
    return f"{column.kind} ({column.format})" if column.format else column.kind


def _facts(content: dict[str, Any]) -> Table:
    table = Table(show_header=False, title=f"Model of shortlist {content['shortlist_version']}")
    table.add_column()
    table.add_column()
    for name, text in _lines(content):
        table.add_row(name, text)
    return table


def _lines(content: dict[str, Any]) -> list[tuple[str, str]]:
    schema, card = content["schema"], content["card"]
    lines = [
        ("Looks for", f"{schema['target']} = {schema['rare_label']}"),
        ("Learner", content["learner"]),
        ("Capacity", _capacity(content)),
        ("Guarantee", _guarantee(content)),
        ("Calibration", f"{_n_calibration(content):,} cases"),
        ("Threshold", ", ".join(_threshold(value) for value in content["thresholds"])),
        ("Id", schema["id"] or "none: a case is named by its row"),
    ]
    weighed = {name: text for name, text in (schema.get("work") or {}).items() if text is not None}
    for name in [name for name in ("worth", "effort", "value") if name in weighed]:
        lines.insert(3, (name.capitalize(), str(weighed[name])))
    if card is not None:
        lines += _fitted(card)
    seen = content["fingerprints"]
    if seen is not None:
        lines.append(("Fingerprints", f"of {seen['n_rows']:,} rows that it was fitted on"))
    versions = (card or {}).get("versions") or {"scikit-learn": content["scikit_learn_version"]}
    lines.append(("Versions", ", ".join(f"{name} {v}" for name, v in versions.items())))
    return lines


def _n_calibration(content: dict[str, Any]) -> int:
    """Return the number of rows: after a recalibration, all thresholds come from the same ones."""
    return (content["card"] or {}).get("n_recalibration") or content["n_calibration"]


def _fitted(card: dict[str, Any]) -> list[tuple[str, str]]:
    rows = f"{card['n_rows']:,} rows, {card['n_rare']:,} of them rare"
    lines = [("Fitted", f"{card['fitted_at']}, on {rows}")]
    if card.get("recalibrated_at"):
        words = f"{card['recalibrated_at']}, on {card['n_recalibration']:,} rows"
        lines.append(("Recalibrated", words))
    return lines


def _capacity(content: dict[str, Any]) -> str:
    from ..capacity import Capacity
    from ..thresholds.words import capacity_in_words

    capacity = Capacity.from_json(content["capacity"])
    unit = (content["schema"].get("work") or {}).get("unit") or "units"
    words = capacity_in_words(capacity, unit=unit)
    share = f", {percent(content['capacity_fraction'])} of all cases"
    return words + (share if capacity.kind == "multiple" else "")


def _guarantee(content: dict[str, Any]) -> str:
    from ..thresholds.words import guarantee_in_short

    return guarantee_in_short(
        content["guarantee"], content["confidence"], content.get("n_batches", 1)
    )


def _threshold(value: float | None) -> str:
    return "none: nothing is flagged" if value is None else f"{value:.6g}"


def _columns(content: dict[str, Any]) -> Table:
    from ..tables.schema import Feature

    table = Table(title="Columns", caption="Usual value: the median, or the commonest category.")
    for heading in ("Column", "Read as", "Usual value"):
        table.add_column(heading)
    for feature in map(Feature.from_json, content["schema"]["features"]):
        usual = _usual(content["reference"].get(feature.name), feature.kind)
        table.add_row(feature.name, feature.in_words, usual)
    return table


def _usual(value: Any, kind: str) -> str:
    from ..tables.monitor import date_text

    if value is None:
        return "–"
    if kind == "date":
        return date_text(value)
    if kind == "boolean":
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _rules(content: dict[str, Any], rules: list[dict[str, Any]]) -> Table:
    card = content["card"]
    table = Table(title=f"On {card['n_test']:,} unseen rows, {card['n_test_rare']:,} of them rare")
    for heading in ("Rule", "Flagged", "Found", "Detection (M)"):
        table.add_column(heading)
    for rule in rules:
        flagged, found = f"{rule['flagged']:g}", f"{rule['found']:.3g}"
        table.add_row(rule["rule"], flagged, found, percent(rule["detection"]))
    return table
