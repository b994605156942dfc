"""`shortlist inspect`: what is in a model file, or how a table would be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import ModelFileError
from ._errors import answering, in_options
from ._options import AsJson, Columns, Read, read_options
from ._output import RULES, percent, print_json, print_table, print_texts, tell

if TYPE_CHECKING:
    from ..tables.inspect import ColumnView, TableView


@answering
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    drop: Columns = None,
    read: Read = None,
    as_json: AsJson = False,
) -> None:
    """Show what is in a model file, or how a table would be read.

    Of a model: its columns and how they are read, capacity, promise, results and versions. The
    model itself is not loaded. Of a table: what each column would be taken for, and every decision
    that could have been another, before any fit.

    Example: shortlist inspect cases.csv

    Options
    -------
    file
        A model file made by fit, or a table.
    """
    from ..tables.inspect import inspect_table
    from ..tables.model_file import describe_model
    from ..tables.read import is_table

    view, content = None, {}
    try:
        content = describe_model(file)
    except ModelFileError:
        if not is_table(file):
            raise
        view = inspect_table(file, reading=read_options(read, drop, but=()))
    if as_json:
        print_json(view or content)
    elif view is not None:
        _print_table(view)
    else:
        _print_model(content)


# --- a table ---


def _print_table(view: TableView) -> None:
    tell(view.notes)
    rows = f"{view.n_rows:,} rows" if view.is_whole else f"the first {view.n_rows:,} rows"
    print_texts(
        ("Column", "Read as", "Missing", "Examples"),
        map(_view, view.columns),
        n_left=2,
        n_right=1,
        title=f"{view.table}, {rows}",
    )


def _view(column: ColumnView) -> tuple[str, str, str, str]:
    kind = f"{column.kind} ({column.format})" if column.format else column.kind or "left out"
    missing = "" if column.n_missing is None else f"{column.n_missing:,}"
    return column.name, kind, missing, ", ".join(f"{each:.40}" for each in column.examples)


# --- a model ---


def _print_model(content: dict[str, Any]) -> None:
    from ..tables.model import RuleResult
    from ..tables.schema import Feature

    card = content["card"] or {}
    print_texts(
        ("", ""),
        _facts(content, card),
        n_right=0,
        show_header=False,
        title=f"Model of shortlist {content['shortlist_version']}",
    )
    features = map(Feature.from_json, content["schema"]["features"])
    usual = content["reference"]
    print_texts(
        ("Column", "Read as", "Usual value"),
        [(each.name, each.in_words, _usual(usual.get(each.name), each)) for each in features],
        n_right=0,
        title="Columns",
        caption="Usual value: the median, or the commonest category.",
    )
    if card.get("rules"):
        print_table(
            RULES,
            map(RuleResult.from_json, card["rules"]),
            title=f"On {card['n_test']:,} unseen rows, {card['n_test_rare']:,} of them rare",
        )
    for note in card.get("notes") or []:
        typer.echo(f"Note of the fit: {in_options(note)}")


def _facts(content: dict[str, Any], card: dict[str, Any]) -> list[tuple[str, str]]:
    from ..thresholds.words import guarantee_in_short

    schema, seen = content["schema"], content["fingerprints"]
    work = {name: text for name, text in (schema.get("work") or {}).items() if text is not None}
    # After a recalibration, all thresholds come from the same rows.
    n_calibration = card.get("n_recalibration") or content["n_calibration"]
    promise = content["guarantee"], content["confidence"], content.get("n_batches", 1)
    lines = [
        ("Looks for", f"{schema['target']} = {schema['rare_label']}"),
        ("Learner", content["learner"]),
        ("Capacity", _capacity(content)),
        *((name.capitalize(), str(work[name])) for name in ("value", "effort", "worth")
          if name in work),
        ("Guarantee", guarantee_in_short(*promise)),
        ("Calibration", f"{n_calibration:,} cases"),
        ("Threshold", ", ".join(_threshold(value) for value in content["thresholds"])),
        ("Id", schema["id"] or "none: a case is named by its row"),
    ]  # fmt: skip
    if card:
        rows = f"{card['n_rows']:,} rows, {card['n_rare']:,} of them rare"
        lines.append(("Fitted", f"{card['fitted_at']}, on {rows}"))
    if card.get("recalibrated_at"):
        recent = f"{card['n_recalibration']:,} rows"
        lines.append(("Recalibrated", f"{card['recalibrated_at']}, on {recent}"))
    if seen is not None:
        lines.append(("Fingerprints", f"of {seen['n_rows']:,} rows that it was fitted on"))
    versions = card.get("versions") or {"scikit-learn": content["scikit_learn_version"]}
    lines.append(("Versions", ", ".join(f"{name} {v}" for name, v in versions.items())))
    return lines


def _capacity(content: dict[str, Any]) -> str:
    from ..capacity import Capacity
    from ..thresholds.words import capacity_in_words

    capacity = Capacity.from_json(content["capacity"])
    unit = (content["schema"].get("work") or {}).get("unit") or "units"
    words = capacity_in_words(capacity, unit=unit)
    share = f", {percent(content['capacity_fraction'])} of all cases"
    return words + (share if capacity.kind == "multiple" else "")


def _threshold(value: float | None) -> str:
    return "none: nothing is flagged" if value is None else f"{value:.6g}"


def _usual(value: Any, feature: Any) -> str:
    from ..tables.monitor import date_text

    if value is None:
        return "–"
    if feature.kind == "date":
        return date_text(value)
    if feature.kind == "boolean":
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
