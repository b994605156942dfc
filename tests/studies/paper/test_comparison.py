"""Orderings over many settings, and errors of ratios."""

import math
from pathlib import Path

import numpy as np
import pytest

from studies.paper import statements
from studies.paper.credit_statements import stated_numbers
from studies.paper.statements import Ordering, about, jackknife, ordering
from studies.tables import markdown_table, read_table


def rows(method, values, setting=0):
    """Make a row for each repetition."""
    return [
        {"method": method, "setting": setting, "repetition": r, "adjusted_detection": v}
        for r, v in enumerate(values)
    ]


def test_settings_are_counted_by_direction():
    """One clearly above, one clearly below, one alike."""
    table = [
        *rows("a", [1.0, 1.1, 0.9, 1.0], 0),
        *rows("b", [2.0, 2.2, 1.9, 2.1], 0),
        *rows("a", [1.0, 1.1, 0.9, 1.0], 1),
        *rows("b", [0.5, 0.7, 0.4, 0.6], 1),
        *rows("a", [1.0, 2.0, 3.0, 4.0], 2),
        *rows("b", [2.0, 1.0, 4.0, 3.0], 2),
    ]
    found = ordering(table, {"method": "a"}, {"method": "b"}, by=["setting"])
    assert found == Ordering(clear=1, open=1, against=1)
    assert str(found) == "clear in 1 of 3, open in 1, against in 1"


def test_repetitions_are_paired():
    """A small steady difference shows through a large common noise."""
    noise = np.array([0.0, 10.0, 20.0, 5.0])
    table = rows("a", noise) + rows("b", noise + np.array([0.1, 0.11, 0.09, 0.1]))
    assert ordering(table, {"method": "a"}, {"method": "b"}, by=["setting"]).clear == 1


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [((3, 1, 0), "yes"), ((3, 1, 1), "partly"), ((1, 1, 1), "no"), ((0, 4, 0), "open")],
)
def test_verdicts(counts, verdict):
    """One clear contradiction is enough to lose a plain yes."""
    assert Ordering(*counts).holds == verdict


def test_one_repetition_decides_nothing():
    """Neither an ordering nor a number."""
    table = rows("a", [1.0]) + rows("b", [9.0])
    assert ordering(table, {"method": "a"}, {"method": "b"}, by=["setting"]).open == 1
    assert about("3.7", "M", 0.3, 0.1, np.nan, repetitions=1).agrees == "open"


def test_a_number_agrees_within_three_standard_errors():
    """The paper's own error counts too."""
    assert about("3.7", "M", 0.30, 0.28, 0.006, repetitions=30).agrees == "yes"
    assert about("3.7", "M", 0.30, 0.26, 0.006, repetitions=30).agrees == "no"


def test_the_jackknife_of_a_mean_is_its_standard_error(rng):
    """The textbook case."""
    sample = rng.normal(size=30)
    value, error = jackknife(np.mean, sample)
    assert value == pytest.approx(sample.mean())
    assert error == pytest.approx(sample.std(ddof=1) / np.sqrt(30))


def test_an_unknown_error_is_said_in_words():
    """As of a ratio to a mean that one repetition makes 0: no page says "nan"."""
    cells = read_table(Path(statements.__file__).with_name("credit.csv"))
    said = {each.statement: each for each in stated_numbers(cells, (36.0, math.nan))}
    gain = said["gain, as a factor"]
    assert (gain.ours, gain.agrees) == ("36 with an unknown error", "open")
    assert markdown_table([{"error": math.nan}])[-1] == "| unknown |"


def test_a_gain_agrees_within_the_errors_of_both():
    """The paper's own factor has an error, too: it counts as ours over its hundred repetitions."""
    cells = read_table(Path(statements.__file__).with_name("credit.csv"))
    count = next(row["count"] for row in cells if row["learner"] == "forest")
    limit = 3 * 20.0 * math.sqrt(1 + count / 100)
    for distance, agrees in ((limit - 1, "yes"), (limit + 1, "no")):
        said = {each.statement: each for each in stated_numbers(cells, (187 - distance, 20.0))}
        assert said["gain, as a factor"].agrees == agrees
