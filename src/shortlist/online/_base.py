"""The interface of all controllers: decide, observe, change, save."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.validation import check_ids
from ..capacity import Capacity, check_capacity
from ._decision import ABOVE, DUPLICATE, REASONS, Decision, DecisionBatch
from ._input import check_calibration, check_id, check_score, check_score_array
from ._saved import load, save
from ._tail import tail_scale
from ._timeline import Clock, Timeline

__all__ = ["Controller"]


class Controller(Timeline):
    """Decides one item at a time, and keeps a capacity over time.

    A subclass names its compiled kernels, fills their arrays in `_first_arrays`, and says in `_use`
    what a capacity means for them; answers, ids, the clock, scheduled changes and saved state come
    from here. What its constructor hands on as options must be its own arguments, by name.
    :func:`~shortlist.online.checks.check_controller` tests what it must keep.

    A lock lets threads share a controller: their items are decided one after the other.
    """

    @property
    def capacity(self) -> Capacity:
        """The capacity in force."""
        return self._capacity

    def decide(self, score: float, *, at: Any = None, id: str | int | None = None) -> Decision:
        """Decide whether to follow up one item.

        Parameters
        ----------
        score : float
            Higher is more suspicious. NaN and infinite scores are errors.
        at : float or datetime, default=None
            When the item came, in seconds or as a datetime (UTC if it has no time zone). `None`
            asks the clock, if there is one. An item from the past counts as of the latest moment
            seen, so that a clock that runs backwards opens no budget twice.
        id : str or int, default=None
            An id that was seen before gets its first answer again, whatever the score, and changes
            nothing. The last `remember` ids are known.

        Returns
        -------
        Decision
            With `flag`, `threshold` and `reason`.
        """
        with self._lock:
            if id is not None and (known := self._answers.get(check_id(id))) is not None:
                return Decision(known[0], known[1], REASONS[DUPLICATE])
            score = check_score(score)
            code, threshold = self._step(score, self._advance(at), True, self._real, self._whole)
            flag = code == ABOVE
            if id is not None:
                self._answers.keep(id, flag, threshold)
            return Decision(flag, threshold, REASONS[code])

    def decide_many(
        self, scores: ArrayLike, *, at: Any = None, ids: ArrayLike | None = None
    ) -> DecisionBatch:
        """Decide about many items in order: the same answers as one by one, only faster.

        Everything is checked before the first decision, so that an error changes nothing.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Scores.
        at : array-like of shape (n_items,), float or datetime, default=None
            A moment for each item, or one for all.
        ids : array-like of shape (n_items,), default=None
            Their ids.

        Returns
        -------
        DecisionBatch
            With `flagged`, `thresholds` and `reasons`.
        """
        values = check_score_array(scores)
        keys = None if ids is None else _check_each(ids, values.size)
        with self._lock:
            moments = self._moments(at, values.size)
            if keys is not None:
                return self._decide_with_ids(values, moments, keys)
            codes, thresholds = self._run(values, moments, deciding=True)
            return DecisionBatch(codes == ABOVE, thresholds, codes)

    def observe(self, scores: ArrayLike, *, at: Any = None) -> Self:
        """Learn from items without deciding about them: no flag is used up.

        Parameters
        ----------
        scores : float or array-like of shape (n_items,)
            Scores of items that were decided elsewhere, or not at all.
        at : float, datetime or array-like of them, default=None
            When they came.

        Returns
        -------
        self
        """
        values = check_score_array(np.atleast_1d(np.asarray(scores)))
        with self._lock:
            self._run(values, self._moments(at, values.size), deciding=False)
        return self

    def set_capacity(self, capacity: Capacity, *, at: Any = None) -> Self:
        """Change the capacity: now, from a later moment on, or as of an earlier one.

        Parameters
        ----------
        capacity : Capacity
            The new capacity.
        at : float or datetime, default=None
            From when it holds. `None` is now: the clock's moment, or the latest item's if there is
            no clock. A moment to come is kept until then; an earlier one is an announcement that
            came late, which controllers of a rate make up for.

        Returns
        -------
        self
        """
        self._check(check_capacity(capacity))
        with self._lock:
            self._announce(capacity, at)
        return self

    def swap_model(self, calibration_scores: ArrayLike) -> Self:
        """Go over to another model without a jump in the flag rate.

        Parameters
        ----------
        calibration_scores : array-like of shape (n_items,)
            Scores of the new model for recent items like those the old scale came from.

        Returns
        -------
        self
        """
        new = tail_scale(check_calibration(calibration_scores))
        with self._lock:
            self._swap(self._scale, new)
            self._scale = new
        return self

    def state(self) -> dict[str, Any]:
        """Return everything that later decisions depend on, as plain JSON.

        Returns
        -------
        dict
            For :meth:`from_state`. The clock is not part of it.
        """
        with self._lock:
            return save(self)

    @classmethod
    def from_state(cls, state: dict[str, Any], *, clock: Clock | None = None) -> Self:
        """Return the controller that :meth:`state` was called on.

        Parameters
        ----------
        state : dict
            What `state` returned, also after a way through JSON. A state that contradicts itself
            is an error.
        clock : callable, default=None
            As for the constructor.

        Returns
        -------
        Controller
            Of the class that is named in the state.
        """
        made: Self = load(cls, state, clock)
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self._capacity!r})"

    def _decide_with_ids(
        self, scores: NDArray[np.float64], moments: NDArray[np.float64], ids: list[Any]
    ) -> DecisionBatch:
        """Decide about each id once: first find out which ids are new, then ask the kernel."""
        sources = np.array(self._answers.plan(ids), dtype=np.intp)
        new = np.flatnonzero(sources == np.arange(sources.size))
        codes = np.full(scores.size, DUPLICATE, dtype=np.int8)
        flagged, thresholds = np.zeros(scores.size, dtype=bool), np.empty(scores.size)
        for i in np.flatnonzero(sources < 0).tolist():
            flagged[i], thresholds[i] = self._answers.get(ids[i]) or (False, np.inf)
        # A repeated id changes nothing: not even its moment reaches the kernel.
        codes[new], thresholds[new] = self._run(scores[new], moments[new], deciding=True)
        flagged[new] = codes[new] == ABOVE
        repeated = np.flatnonzero((sources >= 0) & (codes == DUPLICATE))
        flagged[repeated] = flagged[sources[repeated]]
        thresholds[repeated] = thresholds[sources[repeated]]
        for i in new.tolist():
            self._answers.keep(ids[i], bool(flagged[i]), float(thresholds[i]))
        return DecisionBatch(flagged, thresholds, codes)


def _check_each(ids: ArrayLike, n: int) -> list[Any]:
    checked = check_ids(ids, n)
    return [] if checked is None else [check_id(id) for id in checked.tolist()]
