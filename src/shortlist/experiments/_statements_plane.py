"""What the paper says about the kernel rule in the plane (section 3.2), beside what we find."""

from __future__ import annotations

from typing import Any

from ._comparison import ordering, select_rows
from ._statement import Statement, claim
from ._table import Table

__all__ = ["ellipse_statements"]

_CROSSING = "where they cross depends on the ellipses, which are ours"
_MORE_DATA = (
    "the classical rule learns from all cases, g_b from half; where both flag about bπ₀ it shows"
)


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
