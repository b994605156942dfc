"""A list with reasons: who is on it by score, who as a probe, and how likely that was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask
from .._core.probing import BY_SCORE, NOT_SELECTED, PROBE, check_probe, draw_probes
from .._core.ranking import TieKeys
from .._core.validation import check_count

__all__ = ["Selection", "make_selection"]


@dataclass(frozen=True)
class Selection:
    """A list of cases to follow up, with the reason and the probability of each answer.

    Attributes
    ----------
    flagged : ndarray of bool
        The cases to follow up.
    reasons : ndarray of str
        ``"score"``, ``"probe"``, or ``"not selected"``.
    probabilities : ndarray of float
        The probability with which the case was selected: 1 by score, and below the cut the share
        that was drawn, for drawn cases and for all others.
    """

    flagged: Mask
    reasons: NDArray[np.str_]
    probabilities: Floats

    @property
    def is_probe(self) -> Mask:
        """The cases that were drawn below the cut."""
        return self.reasons == PROBE


def make_selection(
    flagged: Mask,
    scores: Floats,
    tie_keys: TieKeys,
    draw_keys: TieKeys,
    probe: Any,
    *,
    strata: Any = 1,
    groups: NDArray[np.intp] | None = None,
) -> Selection:
    """Draw the probes of a list, and give every case its reason."""
    drawn = draw_probes(
        flagged,
        scores,
        tie_keys,
        draw_keys,
        check_probe(probe),
        groups=groups,
        strata=check_count("strata", strata),
    )
    listed = np.where(drawn.flagged, BY_SCORE, NOT_SELECTED)
    return Selection(drawn.flagged, np.where(drawn.is_probe, PROBE, listed), drawn.probabilities)
