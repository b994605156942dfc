"""How a model scores prepared rows, as a tree of functions that are not compiled yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.arrays import Doubles
from ._preparation import Prepared, Unsupported

__all__ = ["Ask", "Combined", "Scored", "Scoring", "added", "averaged"]


@dataclass(frozen=True)
class Ask:
    """What a classifier is asked for: one of its outputs, for one of the labels."""

    method: str
    label: Any
    classes: Any = None

    def place(self, learner: Any) -> int:
        """Return the column of the label."""
        known = np.asarray(learner.classes_).tolist()
        if self.label not in known:
            raise Unsupported(f"{type(learner).__name__} without the label {self.label!r}")
        return known.index(self.label)


@dataclass(frozen=True)
class Scored:
    """A function of prepared rows.

    `is_exact` says that it has the bits of the model; `own` names a classifier that scores itself.
    """

    prepared: Prepared
    score: Callable[[Doubles], Doubles]
    is_exact: bool = True
    own: str | None = None


@dataclass(frozen=True)
class Combined:
    """A function of the scores of several parts, which rises with each of them."""

    parts: list[Scored | Combined]
    combine: Callable[[list[Doubles]], Doubles]
    is_exact: bool = True


Scoring = Scored | Combined


def added(scores: list[Doubles]) -> Doubles:
    """Add up scores in their order, as NumPy does for several rows."""
    total = scores[0].copy()
    for more in scores[1:]:
        total += more
    return total


def averaged(scores: list[Doubles]) -> Doubles:
    """Average scores: add up in order, and divide."""
    return added(scores) / len(scores) if len(scores) > 1 else scores[0]
