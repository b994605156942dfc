"""The committed tables of the figures agree with an independent rerun, and with each other."""

import csv
from pathlib import Path

import numpy as np
import pytest

from shortlist.experiments import FIGURES, summary
from shortlist.experiments._credit_runs import means_of
from shortlist.experiments._statements_aware import aware_statements, gain_statements
from shortlist.experiments._statements_credit import credit_statements, smote20_statements
from shortlist.experiments._statements_plane import ellipse_statements
from shortlist.experiments._table import read_table

FOLDER = Path(__file__).parents[2] / "results" / "paper"
# M and its standard error at b = 1, 2, 3, by R's randomForest, e1071 and kknn: 30,000 clients,
# a share of 0.02, six to thirty repetitions.
RERUN = {
    ("forest", "classical"): [(0.0015, 0.0006)] * 3,
    ("forest", "smote"): [(0.0040, 0.0015)] * 3,
    ("forest", "capacity"): [(0.117, 0.009), (0.202, 0.011), (0.262, 0.006)],
    ("svm", "classical"): [(0.0, 0.0)] * 3,
    ("svm", "smote"): [(0.036, 0.009)] * 3,
    ("svm", "capacity"): [(0.091, 0.005), (0.144, 0.006), (0.182, 0.008)],
    ("svm", "aware"): [(0.120, 0.011), (0.206, 0.014), (0.267, 0.010)],
    ("knn", "classical"): [(0.0044, 0.0015)] * 3,
    ("knn", "smote"): [(0.065, 0.005), (0.098, 0.011), (0.098, 0.011)],
    ("knn", "capacity"): [(0.060, 0.005), (0.105, 0.007), (0.141, 0.009)],
}


@pytest.fixture(scope="module")
def ours():
    """Return our means on 30,000 clients."""
    # Both figures hold the usual machines; those of the first have more repetitions.
    aware = [row for row in read_table(FOLDER / "aware-svm-30000.csv") if row["method"] == "aware"]
    table = [*read_table(FOLDER / "credit-30000.csv"), *aware]
    return {(r["learner"], r["method"], r["multiple"]): r for r in means_of(table)}


CELLS = [(*pair, b) for pair in RERUN for b in (1, 2, 3)]


@pytest.mark.parametrize(("learner", "method", "multiple"), CELLS)
def test_means_agree_with_a_rerun_in_r(ours, learner, method, multiple):
    """Within three standard errors of the difference."""
    row, (mean, error) = ours[learner, method, multiple], RERUN[learner, method][multiple - 1]
    assert abs(row["mean"] - mean) <= 3 * np.hypot(row["error"], error)


def test_the_statements_follow_from_the_tables():
    """Recomputed from the committed tables, they are those of the committed summary."""
    tables = {name: read_table(FOLDER / f"{name}.csv") for name in FIGURES if name != "summary"}
    with (FOLDER / "summary.csv").open(newline="") as file:
        stated = {row["statement"]: row for row in csv.DictReader(file)}
    statements = [
        *ellipse_statements(tables["ellipses"]),
        *credit_statements(tables["credit"]),
        *smote20_statements(tables["credit-smote20"]),
        *gain_statements(tables["knn-gain"]),
        *aware_statements(tables["aware-svm"], [{"n_support": 0}]),
    ]
    for statement in statements:
        if not statement.statement.startswith("support vectors of"):
            assert stated[statement.statement]["agrees"] == statement.agrees
            assert stated[statement.statement]["ours"] == statement.ours


def test_a_statement_that_does_not_hold_says_why():
    """Every row of the summary has its parts, and a reason where it disagrees."""
    for row in read_table(FOLDER / "summary.csv"):
        assert row["agrees"] in ("yes", "partly", "no", "open")
        assert row["reason"] or row["agrees"] in ("yes", "open")
    assert summary.draw(read_table(FOLDER / "summary.csv")).axes
