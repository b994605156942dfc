"""Write the JSON Schemas of the model card and of the report into docs/schemas.

    python tools/schemas.py

That of the card follows from its types. A report is a plain dict: its schema holds what is common
to reports of simulated payments, with labels and without, of segments, and in money. Keys that only
some of them have are not required, further keys are allowed, and anything may be null.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from shortlist import Capacity
from shortlist.datasets import FRAUD_FEATURES, make_fraud
from shortlist.report import make_report
from shortlist.tables import ModelCard, WorkColumns, fit_table

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def card_schema() -> dict[str, Any]:
    """Return the schema of a card, in which an unknown number is null."""
    schema = msgspec.json.schema(ModelCard)
    for described in schema["$defs"].values():
        described["description"] = described.get("description", "").partition("\n")[0]
    return {"$schema": DRAFT, "title": "Model card", **_with_gaps(schema)}


def _with_gaps(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_gaps(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {name: _with_gaps(each) for name, each in schema.items()}
    return changed | ({"type": ["number", "null"]} if schema.get("type") == "number" else {})


def schema_of(values: list[Any]) -> dict[str, Any]:
    """Return what some values of JSON have in common."""
    kinds = {kind_of(value) for value in values}
    # What is null in all of them may be anything elsewhere.
    schema: dict[str, Any] = {"type": sorted(kinds | {"null"})} if kinds != {"null"} else {}
    objects = [value for value in values if isinstance(value, dict)]
    items = [item for value in values if isinstance(value, list) for item in value]
    if objects:
        names = list(dict.fromkeys(name for each in objects for name in each))
        schema["required"] = [name for name in names if all(name in each for each in objects)]
        schema["properties"] = {
            name: schema_of([each[name] for each in objects if name in each]) for name in names
        }
    if items:
        schema["items"] = schema_of(items)
    return schema


def kind_of(value: Any) -> str:
    """Return the name of a type in JSON Schema; any number may be missing or not whole."""
    kind = _KINDS.get(type(value), "object" if isinstance(value, dict) else "array")
    return "number" if kind == "integer" else kind


def example_reports(folder: Path) -> list[dict[str, Any]]:
    """Return reports of several kinds about simulated payments."""
    paths = [_payments(folder / f"{seed}.csv", seed) for seed in range(2)]
    options: Any = {"target": "fraud", "id": "case", "learner": "logistic"}
    model = fit_table(paths[0], capacity=Capacity.fraction(0.05), **options).model
    work = WorkColumns(value="amount", effort="minutes")
    budget = Capacity.effort(480, per=1_000)
    in_money = fit_table(paths[0], capacity=budget, work=work, **options).model
    return [
        make_report(model, paths[1]),
        make_report(model, pd.read_csv(paths[1]).drop(columns="fraud")),
        make_report(model, paths[1], segment="region"),
        make_report(in_money, paths[1]),
    ]


def _payments(path: Path, seed: int) -> Path:
    X, y = make_fraud(3_000, prevalence=0.03, random_state=seed)
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(X, columns=list(FRAUD_FEATURES))
    table["region"] = rng.choice(["north", "south"], len(table))
    table["minutes"] = rng.integers(5, 61, len(table))
    table["case"] = [f"{seed}-{i}" for i in range(len(table))]
    table.assign(fraud=y).to_csv(path, index=False)
    return path


def report_schema() -> dict[str, Any]:
    """Return the schema of a report."""
    with tempfile.TemporaryDirectory() as folder:
        reports = json.loads(json.dumps(example_reports(Path(folder))))
    return {"$schema": DRAFT, "title": "Report", **schema_of(reports)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, schema in (("card", card_schema()), ("report", report_schema())):
        (FOLDER / f"{name}.json").write_text(json.dumps(schema, indent=1) + "\n")
