"""Cards and reports have the form that the committed JSON Schemas describe."""

import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest

from shortlist._core.files import to_plain
from shortlist.report import make_report

ROOT = Path(__file__).parents[2]
CARD, REPORT = (
    json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
    for name in ("card", "report")
)


@pytest.fixture(scope="module")
def tool():
    """Return the module that writes the schemas."""
    pytest.importorskip("msgspec", reason="pip install 'shortlist[service]'")
    spec = importlib.util.spec_from_file_location("schemas", ROOT / "tools" / "schemas.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kinds_of(value):
    """Return the names of the types of JSON Schema that a value has."""
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    kinds = {float: "number", str: "string", dict: "object", list: "array", type(None): "null"}
    return {kinds[type(value)]}


def problems(value, schema, at="$"):
    """Return where a value does not have the form of a schema: types, required keys, items."""
    if "$ref" in schema:
        schema = CARD["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        found = [problems(value, option, at) for option in schema["anyOf"]]
        return [] if [] in found else found[0]
    wanted = schema.get("type", [])
    wanted = {wanted} if isinstance(wanted, str) else set(wanted)
    if wanted and not wanted & kinds_of(value):
        return [f"{at} is {value!r}, and not {sorted(wanted)}"]
    found = []
    if isinstance(value, dict):
        found += [f"{at} lacks {name}" for name in schema.get("required", []) if name not in value]
        others = schema.get("additionalProperties", {})
        for name, each in value.items():
            own = schema.get("properties", {}).get(name, others)
            found += problems(each, own if isinstance(own, dict) else {}, f"{at}.{name}")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        found += [p for each in value for p in problems(each, schema["items"], f"{at}[]")]
    return found


def test_the_schema_of_the_card_is_that_of_its_types(tool):
    """Otherwise: python tools/schemas.py."""
    assert json.loads(json.dumps(tool.card_schema())) == CARD


def test_a_card_has_the_form(table_fit, folded_fit):
    """Of one model, and of folds."""
    for fit in (table_fit, folded_fit):
        assert problems(json.loads(json.dumps(to_plain(fit.model.card))), CARD) == []


def test_reports_have_the_form(table_fit, folded_fit, new_cases, tmp_path):
    """With labels, without them, with a title and with segments; of other tables than the tool."""
    unlabelled = tmp_path / "today.csv"
    pd.read_csv(new_cases).drop(columns="fraud").to_csv(unlabelled, index=False)
    reports = [
        make_report(table_fit.model, new_cases, title="Yesterday"),
        make_report(folded_fit.model, new_cases, segment="country"),
        make_report(folded_fit.model, unlabelled),
    ]
    for report in json.loads(json.dumps(reports)):
        assert problems(report, REPORT) == []


def test_another_form_is_noticed(table_fit, new_cases):
    """A missing key, and a text in place of a number."""
    report = json.loads(json.dumps(make_report(table_fit.model, new_cases)))
    del report["promise"]
    report["data"]["n_items"] = "many"
    found = problems(report, REPORT)
    assert any("lacks promise" in each for each in found)
    assert any("n_items is 'many'" in each for each in found)
