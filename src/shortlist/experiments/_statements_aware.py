"""What the paper says about learning for the capacity (section 4), beside what we find."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ._comparison import Ordering, difference, ordering, select_rows
from ._statement import NOT_THERE, Statement, claim, truth
from ._table import Table, summarise

__all__ = ["aware_statements", "gain_statements", "strongest_statements"]

_SETTINGS = ("prevalence", "multiple")
_SMALL = 0.01  # a difference of M that nobody would notice
_TIES = "accuracy ties over most k where rare cases are few; the paper does not say which is taken"


def gain_statements(table: Table) -> list[Statement]:
    """Check the joint choice of k and threshold, for both rules for ties."""
    found = []
    for ties in ("smallest", "largest"):
        rows = select_rows(table, tie_break=ties)
        gain = ordering(rows, {"method": "post-hoc"}, {"method": "joint"}, by=_SETTINGS)
        found.append(
            claim("4.1", f"the joint choice of k gains, ties to the {ties} k", gain, _TIES)
        )
    return [*found, *_gain_along(select_rows(table, tie_break="smallest"))]


def aware_statements(table: Table, n_support: Table) -> list[Statement]:
    """Check g ≤ g_b ≤ g_b*."""
    g, g_b, aware, prefix, ours = (
        {"method": m}
        for m in ("classical", "capacity", "aware", "aware-best-prefix", "aware-cross-fit")
    )
    counts = [row["n_support"] for row in n_support]
    largest = max(
        row["mean"] for row in summarise(select_rows(table, **g), _SETTINGS, "adjusted_detection")
    )
    return [
        claim("4.3", "g ≤ g_b", ordering(table, g, g_b, by=_SETTINGS)),
        claim(
            "4.3",
            "g_b ≤ g_b*",
            ordering(table, g_b, aware, by=_SETTINGS),
            "chosen and cut on one half, so that g_b* is better there than on the test sample",
        ),
        claim(
            "4.3",
            "g_b ≤ g_b*, second variant (best part of the path)",
            ordering(table, g_b, prefix, by=_SETTINGS),
            "as above",
        ),
        _similar(table),
        truth(
            "4.3", "g stays close to zero", "close to 0", f"largest M {largest:.4f}", largest < 0.02
        ),
        claim("4.3", "the gain of g_b* over g_b grows with b", _growing_gain(table)),
        truth(
            "4.3",
            "support vectors of the usual machine",
            "about 100",
            f"{min(counts)} to {max(counts)}",
            min(counts) <= 100 <= max(counts),
            "each rare case is one, and many common ones",
        ),
        claim(
            "4.3",
            "g_b* ≤ our cross-fitted choice",
            ordering(table, aware, ours, by=_SETTINGS),
            "a quarter of the cases is kept for a threshold that no choice has seen",
            paper=NOT_THERE,
        ),
    ]


def strongest_statements(credit: Table, aware: Table) -> list[Statement]:
    """Check the abstract: support vectors chosen for the capacity have the strongest results."""
    methods = ({"method": "capacity", "learner": "forest"}, {"method": "recommended"})
    chosen = select_rows(aware, method="aware")
    parts = [
        ordering([*select_rows(credit, **m), *chosen], m, {"method": "aware"}, by=_SETTINGS)
        for m in methods
    ]
    return [
        claim(
            "abstract",
            "g_b* is the strongest of all: above g_b with a forest",
            parts[0],
            "section 4 compares support vector machines only",
        ),
        claim(
            "4.3",
            "g_b* is above the recommended forest",
            parts[1],
            "the forest learns from all 8,000 cases, with its threshold out of bag",
            paper=NOT_THERE,
        ),
    ]


def _gain_along(table: Table) -> list[Statement]:
    """Check how the gain in per cent moves with the share of rare cases."""
    shares = sorted({row["prevalence"] for row in table})
    multiples = sorted({row["multiple"] for row in table})
    gain = {(p, b): _gain(table, p, b) for p in shares for b in multiples}
    mean = {p: np.mean([gain[p, b] for b in multiples]) for p in shares}
    spread = {p: np.ptp([gain[p, b] for b in multiples]) for p in shares}
    first, last = shares[0], shares[-1]
    return [
        truth(
            "4.1",
            "the gain is largest where rare cases are fewest",
            "holds",
            f"{mean[first]:.0f} % at π₀ = {first:g}, {mean[last]:.0f} % at {last:g}; "
            f"largest at {max(mean, key=mean.__getitem__):g}",
            mean[first] == max(mean.values()),
            "ties to the smallest k, mean of the three b",
        ),
        truth(
            "4.1",
            "the gains at the three b come together as π₀ grows",
            "holds",
            f"spread {spread[first]:.0f} points at π₀ = {first:g}, {spread[last]:.0f} at {last:g}",
            spread[last] < spread[first],
            "ties to the smallest k",
        ),
    ]


def _gain(table: Table, prevalence: float, multiple: float) -> float:
    joint, post_hoc = (
        np.mean(
            [
                r["adjusted_detection"]
                for r in select_rows(table, prevalence=prevalence, multiple=multiple, method=m)
            ]
        )
        for m in ("joint", "post-hoc")
    )
    return float(100 * (joint / post_hoc - 1)) if post_hoc else np.inf


def _similar(table: Table) -> Statement:
    """Compare both variants: alike if none is ahead, and partly so if neither is by much."""
    first, second = {"method": "aware"}, {"method": "aware-best-prefix"}
    found = ordering(table, first, second, by=_SETTINGS)
    means = [
        abs(difference(select_rows(table, prevalence=p, multiple=b), first, second).mean())
        for p, b in {(row["prevalence"], row["multiple"]) for row in table}
    ]
    small = max(means) <= _SMALL
    return Statement(
        "4.3",
        "both variants of g_b* are alike",
        "similar",
        f"second above the first: {found}",
        "yes" if found.clear + found.against <= 1 else "partly" if small else "no",
        f"M differs by {max(means):.3f} at most",
    )


def _growing_gain(table: Table) -> Ordering:
    """Compare the gain in M at each b with that at the next."""
    usual, chosen = (
        {
            (r["prevalence"], r["multiple"], r["repetition"]): r["adjusted_detection"]
            for r in select_rows(table, method=m)
        }
        for m in ("capacity", "aware")
    )
    rows = [
        {
            "prevalence": p,
            "multiple": b,
            "repetition": r,
            "adjusted_detection": chosen[p, b, r] - usual[p, b, r],
        }
        for p, b, r in chosen
    ]
    multiples = sorted({row["multiple"] for row in rows})
    parts = [
        ordering(
            [r for r in rows if r["multiple"] in pair],
            {"multiple": pair[0]},
            {"multiple": pair[1]},
            by=["prevalence"],
        )
        for pair in pairwise(multiples)
    ]
    return Ordering(*(sum(getattr(p, k) for p in parts) for k in ("clear", "open", "against")))
