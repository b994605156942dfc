"""The compiled step or loop of a controller: plain, with work, or with draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats
from .._core.probing import KeyedDraws
from ._inputs import Arrivals

__all__ = ["Stepper", "Steps", "joined"]


class Steps(NamedTuple):
    """What compiled functions answer: codes of reasons, thresholds, and probabilities if any."""

    codes: NDArray[np.int8]
    thresholds: Floats
    probabilities: Floats | None


def joined(parts: list[Steps]) -> Steps:
    """Return the steps of several parts as those of one."""
    if len(parts) == 1:
        return parts[0]
    codes, thresholds, probabilities = zip(*parts, strict=True)
    drawn = None if probabilities[0] is None else np.concatenate(probabilities)
    return Steps(np.concatenate(codes), np.concatenate(thresholds), drawn)


class Stepper:
    """Calls the compiled functions of a kind of controller.

    Parameters
    ----------
    kind : type
        The class with the compiled functions.
    probe_key : str or None
        The key of the draws, if there are probes.
    """

    def __init__(self, kind: Any, probe_key: str | None) -> None:
        self._kind = kind
        self.draws = None if probe_key is None else KeyedDraws(probe_key)

    def one(
        self, score: float, at: float, state: Any, *, id: Any, place: int, work: int | None
    ) -> tuple[int, float, float | None]:
        """Decide about one item; `place` is its number in the stream."""
        if self.draws is not None:
            number = self.draws.of_place(place) if id is None else self.draws.of_id(id)
            code, threshold, probability = self._kind.compiled_probe_step(
                score, at, True, *state, number
            )
            return code, threshold, probability
        if work is None:
            return *self._kind.compiled_step(score, at, True, *state), None
        return *self._kind.compiled_work_step(score, at, True, *state, work), None

    def many(
        self, items: Arrivals, times: Floats, state: Any, *, deciding: bool, place: int
    ) -> Steps:
        """Decide about items in order, or only observe them; `place` is that of the first."""
        codes, thresholds = np.empty(items.size, np.int8), np.empty(items.size)
        arguments = items.scores, times, deciding, codes, thresholds, *state
        if self.draws is not None:
            numbers, probabilities = self._numbers(items, deciding, place), np.empty(items.size)
            self._kind.compiled_probe_loop(*arguments, numbers, probabilities)
            return Steps(codes, thresholds, probabilities)
        if items.work is None:
            self._kind.compiled_loop(*arguments)
        else:
            self._kind.compiled_work_loop(*arguments, items.work)
        return Steps(codes, thresholds, None)

    def _numbers(self, items: Arrivals, deciding: bool, place: int) -> Floats:
        """Return the number of each item; one that is only observed is never drawn."""
        if self.draws is None or not deciding:
            return np.ones(items.size)
        if items.ids is not None:
            return self.draws.of_ids(items.ids)
        return np.array([self.draws.of_place(place + i) for i in range(items.size)])
