"""What the paper says about known densities (section 2), the plane (3.2) and SMOTE (A).

Each statement has our result beside it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import optimize, stats

from shortlist.capacity import Capacity
from shortlist.theory import BayesRule, OptimalRule

from ..tables import Table, select_rows
from .smote_scheme import appendix_factor, share_after
from .statements import Statement, claim, ordering, truth

__all__ = [
    "critical_shift",
    "ellipse_statements",
    "illustration_statements",
    "rule_statements",
    "scheme_statements",
]

_RULES = ("classical", "capacity")
_CROSSING = "where they cross depends on the ellipses, which we chose"
_MORE_DATA = (
    "the classical rule learns from all cases, g_b from half; it shows where both flag about bπ₀"
)


def illustration_statements(table: Table, prevalence: float, multiple: float) -> list[Statement]:
    """Check Normal against Cauchy, from the table of the figure."""
    classical, ours = ({r["mu"]: r for r in select_rows(table, rule=rule)} for rule in _RULES)
    shifts = sorted(ours)
    gain = [ours[mu]["sensitivity"] - classical[mu]["sensitivity"] for mu in shifts]
    accuracy = [ours[mu]["accuracy"] for mu in shifts]
    usual = [classical[mu]["accuracy"] for mu in shifts]
    bound = 1 - prevalence - multiple * prevalence * (1 - 2 * prevalence)
    width = [_width(table, "capacity", mu) for mu in shifts]
    critical = critical_shift(prevalence)
    blind = [classical[mu]["sensitivity"] == 0 for mu in shifts if mu < critical]
    lead = [ours[mu]["adjusted_detection"] - classical[mu]["adjusted_detection"] for mu in shifts]
    return [
        truth(
            "2.3",
            "shift μ_c below which the rule of Bayes flags nothing",
            "8.721",
            f"{critical:.5f}",
            abs(critical - 8.721) < 0.001,
            "the last digit of the paper is off by one",
        ),
        truth(
            "2.3",
            "the rule of Bayes is blind below μ_c",
            "holds",
            f"{sum(blind)} of {len(blind)} shifts",
            all(blind),
        ),
        truth(
            "2.3",
            "g_b finds something at every shift",
            "holds",
            f"least sensitivity {min(r['sensitivity'] for r in ours.values()):.4f}",
            min(r["sensitivity"] for r in ours.values()) > 0,
        ),
        truth(
            "2.3 A",
            "g_b is more sensitive than the rule of Bayes throughout",
            "holds",
            f"least difference {min(gain):.4f}",
            min(gain) > 0,
        ),
        truth(
            "2.3 C",
            "accuracy of g_b rises strictly with the shift",
            "holds",
            f"least step {min(np.diff(accuracy)):.2g}",
            min(np.diff(accuracy)) > 0,
        ),
        truth(
            "2.3 C",
            "accuracy of the rule of Bayes is not monotone",
            "holds",
            f"least step {min(np.diff(usual)):.2g}: flat, then rising",
            min(np.diff(usual)) < -1e-12,
            "below μ_c it is π₁ exactly, above it rises; no step goes down",
        ),
        truth(
            "2.3 D",
            "the region of g_b grows with the shift",
            "holds",
            f"least step {min(np.diff(width)):.2g}",
            min(np.diff(width)) > 0,
        ),
        truth(
            "2.2",
            "accuracy of g_b is at least π₁ − bπ₀(1 − 2π₀)",
            f"≥ {bound:.4f}",
            f"least {min(accuracy):.4f}",
            min(accuracy) >= bound,
        ),
        truth(
            "2.4",
            "g_b has the largest M",
            "holds",
            f"least lead over the rule of Bayes {min(lead):.4f}",
            min(lead) >= 0,
        ),
    ]


def rule_statements() -> list[Statement]:
    """Check remarks on the two rules at single settings."""
    bayes, ours = _rules(9.0, 0.01, 2)
    tight_bayes, tight = _rules(9.0, 0.3, 0.5)
    far_bayes, far = _rules(200.0, 0.01, 1)
    growing = [_rules(9.0, 0.01, b)[1] for b in (0.5, 1, 2, 10)]
    gammas, priors = ([getattr(r, name) for r in growing] for name in ("gamma", "modified_prior"))
    tiny = _rules(9.0, 0.01, 1e-6)[1].gamma
    twin = BayesRule(stats.norm(), stats.cauchy(9.0), prevalence=ours.modified_prior)
    apart = max(np.abs(np.subtract(twin.region, ours.region)).ravel())
    return [
        truth(
            "2.2",
            "where the rule of Bayes flags less than the capacity, g_b is that rule",
            "holds",
            f"μ = 9: it flags {bayes.flagged_fraction:.4f} of 0.02 and finds "
            f"{bayes.sensitivity:.3f}, g_b {ours.sensitivity:.3f}",
            abs(bayes.sensitivity - ours.sensitivity) < 1e-3,
            "g_b fills the capacity (Proposition 1); one rule only where Bayes flags exactly bπ₀",
        ),
        truth(
            "2.2",
            "where the capacity binds, the region of g_b is the larger one",
            "holds",
            f"π₀ = 0.3, b = 0.5: Bayes flags {tight_bayes.flagged_fraction:.3f}, "
            f"g_b {tight.flagged_fraction:.3f}",
            tight.flagged_fraction > tight_bayes.flagged_fraction,
            "a binding capacity makes the region smaller; it is larger where Bayes flags less",
        ),
        truth(
            "2.3",
            "b = 1 and far apart: g_b is the rule of Bayes",
            "holds",
            f"μ = 200: they find {far.sensitivity:.4f} and {far_bayes.sensitivity:.4f}",
            abs(far.sensitivity - far_bayes.sensitivity) < 0.01,
        ),
        truth(
            "2.3",
            "more capacity: γ* falls and π₀′ rises",
            "holds",
            f"γ* from {gammas[0]:.3g} to {gammas[-1]:.3g}",
            _falls(gammas) and _falls([-p for p in priors]),
        ),
        truth(
            "2.3",
            "γ* → ∞ as b → 0",
            "holds",
            f"γ* = {tiny:.4g} at b = 10⁻⁶ and μ = 9",
            tiny > 1e6,
            "only where f₀/f₁ is not bounded; Normal against Cauchy it is",
        ),
        truth(
            "2.3",
            "g_b is the rule of Bayes under the prior π₀′ (Proposition 2)",
            "holds",
            f"ends of the intervals differ by {apart:.1g}",
            apart < 1e-6,
        ),
    ]


def ellipse_statements(table: Table) -> list[Statement]:
    """Check panels B to D."""
    classical, ours = {"rule": "classical"}, {"rule": "capacity"}
    one, two = (select_rows(table, multiple=b) for b in (1, 2))
    few, many = ([r for r in one if (r["prevalence"] <= 0.1) == small] for small in (True, False))
    found: dict[str, Any] = {"by": ["prevalence"], "value": "detection"}
    spared = {**found, "value": "specificity"}
    return [
        claim(
            "3.2 B",
            "g_b with b = 2 finds more than the classical rule",
            ordering(two, classical, ours, **found),
        ),
        claim(
            "3.2 B",
            "so does b = 1 at small and moderate π₀ (up to 0.1)",
            ordering(few, classical, ours, **found),
            _CROSSING,
        ),
        claim(
            "3.2 B",
            "at larger π₀ the classical rule finds more than b = 1",
            ordering(many, ours, classical, **found),
            _CROSSING,
        ),
        claim(
            "3.2 C",
            "the price is a lower specificity, b = 2",
            ordering(two, ours, classical, **spared),
        ),
        claim(
            "3.2 D",
            "in M the lead of the classical rule over b = 1 is gone",
            ordering(one, classical, ours, by=["prevalence"]),
            _MORE_DATA,
        ),
        claim(
            "3.2 D",
            "b = 2 leads in M throughout",
            ordering(two, classical, ours, by=["prevalence"]),
            _MORE_DATA,
        ),
    ]


def scheme_statements() -> list[Statement]:
    """Check the example of appendix A."""
    factor = appendix_factor(0.005)
    after, wrong = share_after(0.005, factor), share_after(0.0005, factor)
    real = after / factor
    return [
        truth(
            "A",
            "largest number of synthetic cases for each rare one",
            "20",
            f"{factor - 1:g}",
            factor == 21,
            "we chose the curve between: the inverse root of π₀",
        ),
        truth(
            "A",
            "of 0.05 % rare cases become 9.5 %",
            "9.5 %",
            f"{100 * wrong:.1f} %; of 0.5 % become {100 * after:.1f} %",
            abs(wrong - 0.095) < 0.001,
            "0.05 % must read 0.5 %, the lowest π₀ of the study",
        ),
        truth(
            "A",
            "about 9 % are synthetic",
            "9 %",
            f"{100 * (after - real):.1f} %, beside {100 * real:.2f} % real",
            abs(after - real - 0.09) < 0.005,
        ),
    ]


def critical_shift(prevalence: float) -> float:
    """Return the shift from which on the rule of Bayes flags something."""

    def margin(mu: float) -> float:
        ratio = lambda x: stats.cauchy(mu).logpdf(x) - stats.norm.logpdf(x)  # noqa: E731
        best = optimize.minimize_scalar(
            ratio, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10}
        )
        return -best.fun - np.log((1 - prevalence) / prevalence)

    return float(optimize.brentq(margin, 0.5, 100, xtol=1e-9))


def _rules(mu: float, prevalence: float, multiple: float) -> tuple[Any, Any]:
    densities, capacity = (stats.norm(), stats.cauchy(mu)), Capacity.multiple(multiple)
    return (
        BayesRule(*densities, prevalence=prevalence, capacity=capacity),
        OptimalRule(*densities, prevalence=prevalence, capacity=capacity),
    )


def _width(table: Table, rule: str, mu: float) -> float:
    rows = select_rows(table, rule=rule, mu=mu)
    return sum(row["high"] - row["low"] for row in rows if row["low"] is not None)


def _falls(values: list[float]) -> bool:
    return all(after < before for before, after in pairwise(values))
