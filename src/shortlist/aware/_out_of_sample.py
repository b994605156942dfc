"""What tree ensembles share: they score their own items out of sample, or hold some out."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._wrapping.fitting import hold_out
from ._base import CapacityAwareBase, Doubles, Mask, Places
from ._checks import check_share

__all__ = ["OutOfSampleBase"]


class OutOfSampleBase(CapacityAwareBase):
    """A classifier that learns from all items, and scores each by trees that have not seen it.

    A subclass implements `_grow` and `_sum_up`.
    """

    hold_out: Any
    _takes_gaps = True

    def _check_params(self) -> None:
        super()._check_params()
        if self.hold_out is not None:
            check_share("hold_out", self.hold_out)
        elif self.guarantee != "plug-in":
            raise ValueError(
                f"guarantee={self.guarantee!r} needs scores of the model in use, and hold_out=None "
                "takes those of its parts. Pass hold_out=0.25, or guarantee='plug-in'."
            )

    def _learn_and_score(
        self, X: Doubles, is_rare: Mask, rng: np.random.Generator
    ) -> tuple[Places, Doubles]:
        if self.hold_out is None:
            return self._grow(X, is_rare, rng)
        learned_on, unseen = hold_out(is_rare.astype(np.intp), self.hold_out, rng)
        self._grow(X[learned_on], is_rare[learned_on], rng)
        return unseen, self._sum_up(X[unseen])

    def _grow(self, X: Doubles, is_rare: Mask, rng: np.random.Generator) -> tuple[Places, Doubles]:
        """Learn what `_sum_up` needs, and return rows with scores by what has not seen them."""
        raise NotImplementedError
