"""What the paper says about known densities, checked."""

import pytest
from scipy import stats

from shortlist.theory import BayesRule
from studies.paper import normal_cauchy
from studies.paper.simulated_statements import (
    critical_shift,
    illustration_statements,
    rule_statements,
    scheme_statements,
)


@pytest.fixture(scope="module")
def illustration():
    """Check the statements on a few shifts."""
    config = normal_cauchy.Config(largest_shift=12, n_shifts=7)
    return illustration_statements(normal_cauchy.run(config), config.prevalence, config.multiple)


def denied(statements):
    """Return the statements that do not hold."""
    return [statement.statement for statement in statements if statement.agrees != "yes"]


def test_the_illustration_holds_but_for_one_word(illustration):
    """The accuracy of the rule of Bayes is flat, then rises."""
    assert denied(illustration) == ["accuracy of the rule of Bayes is not monotone"]


def test_remarks_on_the_two_rules():
    """Three do not hold in general, and each says why."""
    statements = rule_statements()
    assert [text[:25] for text in denied(statements)] == [
        "where the rule of Bayes f",
        "where the capacity binds,",
        "γ* → ∞ as b → 0",
    ]
    assert all(s.reason for s in statements if s.agrees == "no")


def test_the_example_of_the_appendix_has_a_misprint():
    """0.05 % must read 0.5 %."""
    assert denied(scheme_statements()) == ["of 0.05 % rare cases become 9.5 %"]


@pytest.mark.parametrize(
    ("prevalence", "shift"),
    [(0.005, 12.48215), (0.01, 8.72010), (0.02, 6.01619), (0.05, 3.52126)],
)
def test_the_critical_shift(prevalence, shift):
    """Below it the rule of Bayes flags nothing, above it something."""
    assert critical_shift(prevalence) == pytest.approx(shift, abs=1e-5)
    below, above = (
        BayesRule(stats.norm(), stats.cauchy(shift + step), prevalence=prevalence)
        for step in (-0.01, 0.01)
    )
    assert below.flagged_fraction == 0 < above.flagged_fraction
