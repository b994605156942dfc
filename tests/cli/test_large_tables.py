"""Tables of any size from the command line: scored tables and folders, block by block."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from shortlist import Capacity, select
from shortlist.cli import app

N = 3_000


def run(*words):
    """Run a command, and return its exit code and what it printed."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.fixture
def folder(tmp_path):
    """Write scored rows with ties as a folder of Parquet files, and return it with the rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "case": [f"c{i}" for i in range(N)],
            "risk": np.round(rng.normal(size=N), 1),
            "team": rng.choice(["north", "south"], N),
        }
    )
    path = tmp_path / "scores"
    path.mkdir()
    for number, start in enumerate(range(0, N, 1_000)):
        frame[start : start + 1_000].to_parquet(path / f"{number}.parquet", index=False)
    return path, frame


def test_a_folder_of_scores_becomes_a_list(folder, tmp_path):
    """The list of `select`, ranked, in a file."""
    path, frame = folder
    out = tmp_path / "list.csv"
    options = ("--score", "risk", "--id", "case", "--count", 40)
    code, printed = run("select", path, *options, "-o", out)
    assert (code, printed) == (0, f"40 cases: {out}\n")
    listed = pd.read_csv(out)
    assert listed.columns.tolist() == ["rank", "case", "risk"]
    ids = frame["case"].to_numpy()
    chosen = select(frame["risk"].to_numpy(), Capacity.count(40), ids=ids)
    assert set(listed["case"]) == set(ids[chosen])
    code, printed = run("select", path, *options, "--keep", "all", "--json")
    assert [row["case"] for row in json.loads(printed)["rows"]] == listed["case"].tolist()


def test_segments_of_a_scored_table(folder):
    """Each has its own count."""
    path, _ = folder
    count = ("--segment", "team", "--count", "north=3,south=5")
    code, printed = run("select", path, "--score", "risk", "--id", "case", *count, "--json")
    teams = [row["team"] for row in json.loads(printed)["rows"]]
    assert (code, teams.count("north"), teams.count("south")) == (0, 3, 5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--score", "risk"), "--score needs --id"),
        (("--score", "rsk", "--id", "case"), "no column 'rsk'"),
        (("--score", "team", "--id", "case"), "scores must be numbers"),
        (("--score", "risk", "--id", "case", "--probe", 0.1), "--probe does not work with --score"),
        (("--score", "risk", "--id", "case", "--engine", "ray"), "must be local or spark"),
        (("--score", "risk", "--id", "case", "--master", "local"), "belongs to --engine spark"),
        (("--score", "risk", "--id", "case", "--keep", "town"), "not a column"),
        ((), "Give a model and a table"),
    ],
)
def test_mistakes_are_explained(folder, options, words):
    """In one sentence, with exit code 2."""
    code, printed = run("select", folder[0], "--count", 5, *options)
    assert code == 2
    assert words in " ".join(printed.replace("│", " ").split())


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_folder_is_evaluated(model_file, new_cases, tmp_path, kind):
    """The answer for a folder is that for one file; an engine adds the drift."""
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
    by_engine = json.loads(run("evaluate", model_file, folder, "--engine", "local", "--json")[1])
    assert by_engine.pop("drift")["verdict"]
    assert by_engine == want


@pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
    reason="Spark needs pyspark and Java: pip install 'shortlist[spark]'",
)
def test_spark_lists_the_same_rows_in_a_new_process(folder, tmp_path):
    """Workers of a local master are started with the Python of the command."""
    command = [sys.executable, "-W", "ignore", "-m", "shortlist", "select", str(folder[0])]
    command += ["--score", "risk", "--id", "case", "--count", "30"]
    environment = {name: text for name, text in os.environ.items() if name != "PYSPARK_PYTHON"}
    engines = {"here": (), "there": ("--engine", "spark", "--master", "local[2]")}
    for name, engine in engines.items():
        out = ("-o", str(tmp_path / f"{name}.csv"))
        subprocess.run([*command, *out, *engine], env=environment, check=True, capture_output=True)
    here, there = ((tmp_path / f"{name}.csv").read_text() for name in engines)
    assert here == there
    assert here.count("\n") == 31
