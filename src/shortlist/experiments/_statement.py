"""A statement of the paper, with ours beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._comparison import Ordering

__all__ = ["NOT_THERE", "Statement", "about", "claim", "truth", "within"]

#: Said of what the paper does not compare.
NOT_THERE = "not there"
#: Repetitions behind a number of the paper.
_PAPER_REPETITIONS = 100


@dataclass(frozen=True)
class Statement:
    """Where it stands, what the paper says, what we find, whether that agrees, and why."""

    section: str
    statement: str
    paper: str
    ours: str
    agrees: str
    reason: str = ""


def truth(
    section: str, statement: str, paper: str, ours: str, holds: bool | np.bool, reason: str = ""
) -> Statement:
    """Return a statement that holds or not, without chance."""
    return Statement(section, statement, paper, ours, "yes" if holds else "no", reason)


def claim(
    section: str, statement: str, found: Ordering, reason: str = "", *, paper: str = "holds"
) -> Statement:
    """Return an ordering over many settings that the paper claims, or that stands beside it."""
    return Statement(section, statement, paper, str(found), found.holds, reason)


def about(
    section: str,
    statement: str,
    paper: float,
    ours: float,
    error: float,
    reason: str = "",
    *,
    repetitions: int,
) -> Statement:
    """Return a mean of the paper beside our mean and its standard error.

    They agree within three standard errors of their difference, the paper's taken as ours over a
    hundred repetitions.
    """
    combined = error * np.sqrt(1 + repetitions / _PAPER_REPETITIONS)
    shown = f"{ours:.3g} ± {error:.2g}"
    agrees = within(abs(ours - paper), 3 * combined)
    return Statement(section, statement, f"{paper:g}", shown, agrees, reason)


def within(distance: float, limit: float) -> str:
    """Say whether a distance is within its limit; open if the limit is not known."""
    if np.isnan(limit):
        return "open"
    return "yes" if distance <= limit else "no"
