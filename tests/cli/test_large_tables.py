"""Folders of any size from the command line."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist.cli._app import app
from shortlist.distributed import evaluate
from shortlist.tables import load_model


def run(*words):
    """Run a command, and return its exit code and what it printed."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_folder_is_evaluated(model_file, new_cases, tmp_path, kind):
    """The answer for a folder is that for one file, and that of `distributed.evaluate`."""
    frame, folder = pd.read_csv(new_cases), tmp_path / "folder"
    folder.mkdir()
    for number, part in enumerate([frame[:300], frame[300:]]):
        name = folder / f"{number}.{kind}"
        part.to_csv(name, index=False) if kind == "csv" else part.to_parquet(name, index=False)
    code, printed = run("evaluate", model_file, folder, "--json")
    got = json.loads(printed)
    want = json.loads(run("evaluate", model_file, new_cases, "--json")[1])
    assert code == 0
    assert got == want
    if kind == "csv":  # which only the commands read as the model does
        return
    by_engine = evaluate(load_model(model_file), folder, id="case")
    assert by_engine.n_items == want["n_items"]
    assert by_engine.model.detection == want["rules"][0]["detection"]
