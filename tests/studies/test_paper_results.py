"""The committed results of the figures agree with an independent rerun, and with each other."""

import csv
from pathlib import Path

import numpy as np
import pytest

from studies.paper import summary
from studies.paper.aware_statements import gain_by_share, mostly_blind, similar_variants
from studies.paper.credit_statements import (
    close_to_zero,
    sometimes_comparable,
    stated_numbers,
    within_capacity,
)
from studies.paper.statements import Ordering
from studies.paper.summarise import GAIN
from studies.tables import read_table

FOLDER = Path(__file__).parents[2] / "studies" / "paper"
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
    # Both figures have the usual machines; the first has more repetitions of them.
    aware = [row for row in read_table(FOLDER / "aware-svm-30000.csv") if row["method"] == "aware"]
    table = [*read_table(FOLDER / "credit-30000.csv"), *aware]
    return {(r["learner"], r["method"], r["multiple"]): r for r in table}


CELLS = [(*pair, b) for pair in RERUN for b in (1, 2, 3)]


@pytest.mark.parametrize(("learner", "method", "multiple"), CELLS)
def test_means_agree_with_a_rerun_in_r(ours, learner, method, multiple):
    """Within three standard errors of the difference."""
    row, (mean, error) = ours[learner, method, multiple], RERUN[learner, method][multiple - 1]
    assert abs(row["mean"] - mean) <= 3 * np.hypot(row["error"], error)


@pytest.fixture(scope="module")
def stated():
    """Return the rows of the committed summary by statement, as text."""
    with (FOLDER / "summary.csv").open(newline="") as file:
        return {row["statement"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def differences():
    """Return the paired differences of each setting by statement."""
    found = {}
    for row in read_table(FOLDER / "comparisons.csv"):
        found.setdefault(row["statement"], []).append(row)
    return found


def follow_from_numbers(differences):
    """Recompute the statements that are more than a count of settings."""
    credit = read_table(FOLDER / "credit.csv")
    (gain,) = differences[GAIN]
    comparable = "neighbours, π₀ ≥ 0.02: SMOTE is sometimes comparable to g_b"
    return [
        *stated_numbers(credit, (gain["mean"], gain["error"])),
        close_to_zero(credit),
        within_capacity(credit),
        sometimes_comparable(Ordering.of(differences[comparable])),
        *gain_by_share(read_table(FOLDER / "knn-gain.csv")),
        mostly_blind(read_table(FOLDER / "aware-svm.csv")),
        similar_variants(Ordering.of(differences["both variants of g_b* are alike"])),
    ]


def test_the_statements_follow_from_the_tables(stated, differences):
    """Recomputed from means, errors and counts, they are those of the committed summary."""
    numbers = follow_from_numbers(differences)
    for statement in numbers:
        assert stated[statement.statement]["agrees"] == statement.agrees
        assert stated[statement.statement]["ours"] == statement.ours
    for name in differences.keys() - {statement.statement for statement in numbers}:
        found = Ordering.of(differences[name])
        assert stated[name]["agrees"] == found.holds
        assert stated[name]["ours"] == str(found)


def test_every_statement_about_repetitions_is_recomputed(stated, differences):
    """Those without are about known densities, the scheme of SMOTE, or a count in the data."""
    recomputed = differences.keys() | {s.statement for s in follow_from_numbers(differences)}
    others = {row["section"] for name, row in stated.items() if name not in recomputed}
    names = {n for n, row in stated.items() if n not in recomputed and row["section"] > "3"}
    assert others <= {"2.2", "2.3", "2.3 A", "2.3 C", "2.3 D", "2.4", "3.7", "4.3", "A"}
    assert {name for name in names if stated[name]["section"] != "A"} == {
        "25,000 clients, of whom did not pay",
        "support vectors of the usual machine",
    }


def test_the_gain_is_the_ratio_of_the_means(differences):
    """Of both forests at π₀ = 0.02 and b = 3."""
    cells = {
        row["method"]: row["mean"]
        for row in read_table(FOLDER / "credit.csv")
        if (row["learner"], row["prevalence"], row["multiple"]) == ("forest", 0.02, 3)
    }
    (gain,) = differences[GAIN]
    assert gain["mean"] == pytest.approx(cells["capacity"] / cells["classical"])


def test_a_statement_that_does_not_hold_says_why():
    """Every row of the summary has its parts, and a reason if it disagrees."""
    for row in read_table(FOLDER / "summary.csv"):
        assert row["agrees"] in ("yes", "partly", "no", "open")
        assert row["reason"] or row["agrees"] in ("yes", "open")
    assert summary.draw(read_table(FOLDER / "summary.csv")).axes
