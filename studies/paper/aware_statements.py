"""What the paper says about learning for the capacity (section 4), beside our results."""

from __future__ import annotations

import numpy as np

from ..tables import Table, select_rows
from .credit_protocol import cells_of
from .statements import NOT_THERE, Ordering, Statement, along, claim, ordering, truth

__all__ = [
    "ABOVE_RECOMMENDED",
    "aware_statements",
    "gain_by_share",
    "gain_statements",
    "mostly_blind",
    "similar_variants",
    "strongest_statements",
]

#: A statement that is not in the paper.
ABOVE_RECOMMENDED = "g_b* is above the recommended forest"

_SETTINGS = ("prevalence", "multiple")
_SMALL = 0.01  # a difference of M that does not matter in practice
_TIES = (
    "most k have the same accuracy when rare cases are few; the paper does not say which to take"
)


def gain_statements(table: Table, digest: Table) -> list[Statement]:
    """Check the joint choice of k and threshold, for both rules for ties."""
    found = []
    for ties in ("smallest", "largest"):
        rows = select_rows(table, tie_break=ties)
        gain = ordering(rows, {"method": "post-hoc"}, {"method": "joint"}, by=_SETTINGS)
        found.append(
            claim("4.1", f"the joint choice of k gains, ties to the {ties} k", gain, _TIES)
        )
    return [*found, *gain_by_share(digest)]


def aware_statements(table: Table, n_support: Table) -> list[Statement]:
    """Check g ≤ g_b ≤ g_b*."""
    g, g_b, aware, prefix, ours = (
        {"method": m}
        for m in ("classical", "capacity", "aware", "aware-best-prefix", "aware-cross-fit")
    )
    counts = [row["n_support"] for row in n_support]
    return [
        claim("4.3", "g ≤ g_b", ordering(table, g, g_b, by=_SETTINGS)),
        claim(
            "4.3",
            "g_b ≤ g_b*",
            ordering(table, g_b, aware, by=_SETTINGS),
            "one half serves for choice and threshold, and flatters g_b* there",
        ),
        claim(
            "4.3",
            "g_b ≤ g_b*, second variant (best part of the path)",
            ordering(table, g_b, prefix, by=_SETTINGS),
            "as above",
        ),
        similar_variants(ordering(table, aware, prefix, by=_SETTINGS)),
        mostly_blind(cells_of(table)),
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
            "a quarter of the cases is held out for the threshold",
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
            ABOVE_RECOMMENDED,
            parts[1],
            "the forest learns from all 8,000 cases, with its threshold out of bag",
            paper=NOT_THERE,
        ),
    ]


def gain_by_share(digest: Table) -> list[Statement]:
    """Check how the gain in per cent changes with the share of rare cases.

    The rows are those of `knn_gain.digest`; ties go to the smallest k.
    """
    rows = select_rows(digest, tie_break="smallest")
    shares = sorted({row["prevalence"] for row in rows})
    gains = {
        share: [row["gain_percent"] for row in select_rows(rows, prevalence=share)]
        for share in shares
    }
    mean = {share: np.mean(values) for share, values in gains.items()}
    spread = {share: np.ptp(values) for share, values in gains.items()}
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


def mostly_blind(cells: Table) -> Statement:
    """Check that the classical machine finds almost nothing."""
    largest = max(row["mean"] for row in select_rows(cells, method="classical"))
    return truth(
        "4.3", "g stays close to zero", "close to 0", f"largest M {largest:.4f}", largest < 0.02
    )


def similar_variants(found: Ordering) -> Statement:
    """Compare both variants of g_b*.

    They agree if neither is clearly ahead in more than one setting, and partly if every difference
    is small.
    """
    largest = max(abs(row["mean"]) for row in found.differences)
    alike = found.clear + found.against <= 1
    return Statement(
        "4.3",
        "both variants of g_b* are alike",
        "similar",
        f"second above the first: {found}",
        "yes" if alike else "partly" if largest <= _SMALL else "no",
        f"M differs by {largest:.3f} at most",
        found,
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
    gains = [
        {"prevalence": p, "multiple": b, "repetition": r, "gain": chosen[p, b, r] - usual[p, b, r]}
        for p, b, r in chosen
    ]
    return along(gains, "multiple", by=["prevalence"], value="gain")
