"""The figures of the credit data, on a few small runs."""

import os

import pytest

from studies.paper.credit_figures import aware_svm, credit, credit_smote20, run_method, runs_of
from studies.paper.credit_protocol import CreditConfig

pytest.importorskip("imblearn")
pytestmark = pytest.mark.skipif(
    "SHORTLIST_DATA" not in os.environ, reason="the credit data are missing; set SHORTLIST_DATA"
)
ONE = CreditConfig(prevalences=(0.02,), repetitions=1)
QUICK_METHODS = [
    ("knn", "classical"),
    ("knn", "smote"),
    ("knn", "smote20"),
    ("knn", "capacity"),
    ("knn", "smote-calibrated"),
    ("svm", "aware"),
]


def test_runs_come_repetition_by_repetition():
    """A run that is stopped early then has whole repetitions."""
    runs = runs_of(CreditConfig(repetitions=2), [("svm", "capacity"), ("knn", "capacity")])
    assert [run.repetition for run in runs] == [0] * 12 + [1] * 12
    assert len({(run.learner, run.prevalence) for run in runs[:12]}) == 12


@pytest.fixture(scope="module")
def table():
    """Run the quick methods once at one share."""
    return [row for run in runs_of(ONE, QUICK_METHODS) for row in run_method(run)]


def test_each_method_has_a_row_for_each_capacity(table):
    """The default threshold knows no capacity: the same flags for all b."""
    assert len(table) == 3 * len(QUICK_METHODS)
    flagged = [row["flagged"] for row in table if row["method"] == "classical"]
    assert len(set(flagged)) == 1


def test_what_is_cut_at_the_capacity_flags_about_that_many(table):
    """Up to the noise of a calibration on 4,000 cases: four standard deviations, and ties."""
    for row in table:
        if row["method"] in ("capacity", "smote-calibrated", "aware"):
            room = row["multiple"] * 200
            # Of 4,000 calibration cases and of 10,000 test cases: variances add.
            deviation = (room + room * 10_000 / 4_000) ** 0.5
            assert row["flagged"] <= room + 4 * deviation


def test_a_run_is_the_same_again(table):
    """The split and all seeds follow from the config."""
    (run,) = runs_of(ONE, [("knn", "smote")])
    assert run_method(run) == [row for row in table if row["method"] == "smote"]


@pytest.mark.parametrize("figure", [credit, credit_smote20, aware_svm])
def test_pictures_have_the_colours_of_the_paper(figure):
    """Classical red, SMOTE blue, ours black; a panel for each learner and capacity."""
    rows = [
        {
            "learner": learner,
            "method": method,
            "prevalence": prevalence,
            "repetition": repetition,
            "multiple": b,
            "adjusted_detection": 0.1 * b + repetition / 100,
        }
        for learner in figure.learners
        for method in ("classical", "smote", "smote20", "capacity", "aware", "recommended")
        for prevalence in (0.01, 0.05)
        for repetition in range(2)
        for b in (1, 2, 3)
    ]
    axes = figure.draw(rows).axes
    n_learners = len(figure.learners)
    assert len(axes) == 3 * n_learners
    assert all(ax.get_xlabel() for ax in axes[-n_learners:])
    handles, labels = axes[0].get_legend_handles_labels()
    colours = {label: bar.lines[0].get_color() for bar, label in zip(handles, labels, strict=True)}
    assert colours["classical"] == "tab:red"
    assert colours["under the capacity, $g_b$"] == "black"
    assert all(colour == "tab:blue" for label, colour in colours.items() if "SMOTE" in label)
