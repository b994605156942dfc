"""What all controllers share: answers, the clock, changes of capacity, and saved state."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_ids, check_number, check_scores
from ..capacity import Capacity, check_capacity
from ._answers import Answers, check_id, check_memory
from ._decision import ABOVE, DUPLICATE, REASONS, Decision, DecisionBatch
from ._state import check_state, pack, pack_capacity, unpack, unpack_capacity
from ._tail import check_calibration, tail_scale
from ._time import check_times, seconds

__all__ = ["Controller"]

Clock = Callable[[], Any]
_KEYS = {"capacity", "options", "now", "n_items", "pending", "answers", "scale", "arrays"}
_LARGEST = float(np.finfo(np.float64).max)


class Controller:
    """Decides one item at a time, and keeps a capacity over time.

    A subclass names its compiled kernels and arrays, fills the arrays in its constructor, and says
    in `_use` what a capacity means for them; answers, ids, the clock, scheduled changes and saved
    state come from here. :func:`~shortlist.online.checks.check_controller` tests what it must keep.
    """

    #: Compiled: ``step(score, at, deciding, *arrays)`` and the loop over it.
    _step: ClassVar[Any]
    _many: ClassVar[Any]
    #: Names and types of the arrays, in the order in which the kernels take them.
    _ARRAYS: ClassVar[dict[str, Any]]

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        clock: Clock | None = None,
        remember: int = 10_000,
        **options: Any,
    ) -> None:
        self._set_options({"remember": check_memory(remember), **options})
        self._clock = clock
        self._capacity = check_capacity(capacity)
        self._now, self._n_items = -math.inf, 0
        self._pending: list[tuple[float, Capacity]] = []
        self._answers = Answers(self._options["remember"])
        scores = check_calibration(calibration_scores)
        self._scale = tail_scale(scores)
        self._set_arrays(self._first_arrays(scores))
        self._use(self._capacity)

    # --- for subclasses ------------------------------------------------------------------------

    def _first_arrays(self, calibration: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        raise NotImplementedError

    def _use(self, capacity: Capacity, *, since: float | None = None) -> None:
        """Set the numbers of the arrays for a capacity, which may hold since an earlier moment."""
        raise NotImplementedError

    def _check(self, capacity: Capacity) -> None:
        """Raise if `_use` could not take this capacity."""
        raise NotImplementedError

    def _swap(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        """Carry the arrays over to the scores of another model, given both tail scales."""
        raise NotImplementedError

    def _mark(self, times: Sequence[float] | NDArray[np.float64], first: int) -> None:
        """Note when items came, for a subclass that corrects late announcements."""

    # --- deciding ------------------------------------------------------------------------------

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
        if id is not None and (known := self._answers.get(check_id(id))) is not None:
            return Decision(known[0], known[1], REASONS[DUPLICATE])
        score = _check_score(score)
        code, threshold = self._step(score, self._advance(at), True, *self._arrays)
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
        values = _check_many(scores)
        moments = self._moments(at, values.size)
        if ids is None:
            codes, thresholds = self._run(values, moments, deciding=True)
            return DecisionBatch(codes == ABOVE, thresholds, codes)
        checked = check_ids(ids, values.size)
        assert checked is not None
        return self._decide_with_ids(values, moments, [check_id(one) for one in checked.tolist()])

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
        values = _check_many(np.atleast_1d(np.asarray(scores)))
        self._run(values, self._moments(at, values.size), deciding=False)
        return self

    # --- what may change -----------------------------------------------------------------------

    def set_capacity(self, capacity: Capacity, *, at: Any = None) -> Self:
        """Change the capacity: now, from a later moment on, or as of an earlier one.

        Parameters
        ----------
        capacity : Capacity
            The new capacity.
        at : float or datetime, default=None
            From when it holds. `None` is now. A moment to come is kept until then; an earlier one
            is an announcement that came late, which controllers of a rate make up for.

        Returns
        -------
        self
        """
        self._check(check_capacity(capacity))
        moment = self._now if at is None else seconds(at)
        if moment > self._now:
            bisect.insort(self._pending, (moment, capacity), key=lambda change: change[0])
        else:
            self._use(capacity, since=None if at is None else moment)
            self._capacity = capacity
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
        self._swap(self._scale, new)
        self._scale = new
        return self

    # --- saved state ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that later decisions depend on, as plain JSON.

        Returns
        -------
        dict
            For :meth:`from_state`. The clock is not part of it.
        """
        return {
            "format": "shortlist.online",
            "version": 1,
            "controller": type(self).__name__,
            "capacity": pack_capacity(self._capacity),
            "options": pack(self._options),
            "now": pack(self._now),
            "n_items": self._n_items,
            "pending": [[pack(at), pack_capacity(change)] for at, change in self._pending],
            "answers": self._answers.to_list(),
            "scale": pack(self._scale.tolist()),
            "arrays": {
                name: pack(array.tolist())
                for name, array in zip(self._ARRAYS, self._arrays, strict=True)
            },
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], *, clock: Clock | None = None) -> Self:
        """Return the controller that :meth:`state` was called on.

        Parameters
        ----------
        state : dict
            What `state` returned, also after a way through JSON.
        clock : callable, default=None
            As for the constructor.

        Returns
        -------
        Controller
            Of the class that is named in the state.
        """
        known = {kind.__name__: kind for kind in (cls, *_subclasses(cls))}
        check_state(state, known, _KEYS)
        made: Any = object.__new__(known[state["controller"]])
        made._clock = clock
        made._capacity = unpack_capacity(state["capacity"])
        made._set_options(unpack(state["options"]))
        made._now, made._n_items = unpack(state["now"]), int(state["n_items"])
        made._pending = [(unpack(at), unpack_capacity(change)) for at, change in state["pending"]]
        made._answers = Answers(made._options["remember"])
        made._answers.fill(state["answers"])
        made._scale = np.array(unpack(state["scale"]), dtype=np.float64)
        made._set_arrays(
            {
                name: np.array(unpack(state["arrays"][name]), dtype=dtype)
                for name, dtype in made._ARRAYS.items()
            }
        )
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self._capacity!r})"

    # --- inside --------------------------------------------------------------------------------

    def _set_options(self, options: dict[str, Any]) -> None:
        self._options = options
        # Without a period, time is the number of items.
        self._timed = options.get("period") is not None

    def _set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._arrays = tuple(
            np.ascontiguousarray(arrays[name], dtype=dtype) for name, dtype in self._ARRAYS.items()
        )

    def _array(self, name: str) -> NDArray[Any]:
        return self._arrays[list(self._ARRAYS).index(name)]

    def _moment(self, at: Any) -> float:
        """Return a moment in seconds, or ask the clock, or stay where we are."""
        if at is not None:
            return seconds(at)
        if self._clock is not None:
            return seconds(self._clock())
        if self._timed:
            raise ValueError(
                f"{type(self).__name__} keeps a number per period, so it must know when an item "
                "came. Pass at=..., or give the controller a clock=..."
            )
        return self._now

    def _moments(self, at: Any, n: int) -> NDArray[np.float64]:
        return check_times(at, n) if at is not None else np.full(n, self._moment(None))

    def _advance(self, at: Any) -> float:
        """Move the clock to an item, carry out what is due, and return the kernel's time."""
        moment = self._moment(at)
        if moment > self._now:
            if self._pending:
                self._carry_out(until=moment)
            self._now = moment
        self._mark((self._now,), self._n_items)
        self._n_items += 1
        return self._now if self._timed else float(self._n_items - 1)

    def _carry_out(self, *, until: float) -> None:
        """Make the changes that are due, each at its own moment."""
        while self._pending and self._pending[0][0] <= until:
            self._now, self._capacity = self._pending.pop(0)
            self._use(self._capacity)

    def _run(
        self, scores: NDArray[np.float64], moments: NDArray[np.float64], *, deciding: bool
    ) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
        """Run the kernel over checked items, stopping where the capacity changes."""
        codes, thresholds = np.empty(scores.size, np.int8), np.empty(scores.size)
        moments = np.maximum.accumulate(np.maximum(moments, self._now))
        start = 0
        while start < scores.size:
            self._carry_out(until=moments[start])
            due = self._pending[0][0] if self._pending else math.inf
            stop = start + int(np.searchsorted(moments[start:], due))
            part = slice(start, stop)
            times = moments[part]
            self._mark(times, self._n_items)
            if not self._timed:
                times = np.arange(self._n_items, self._n_items + stop - start, dtype=np.float64)
            self._many(scores[part], times, deciding, codes[part], thresholds[part], *self._arrays)
            self._n_items += stop - start
            self._now = float(moments[stop - 1])
            start = stop
        return codes, thresholds

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


def _subclasses(kind: type) -> list[type]:
    children: list[type] = kind.__subclasses__()
    return [each for child in children for each in (child, *_subclasses(child))]


def _check_score(score: Any) -> float:
    if type(score) is float and -_LARGEST <= score <= _LARGEST:  # the common case, kept short
        return score
    return float(check_number("score", score))


def _check_many(scores: ArrayLike) -> NDArray[np.float64]:
    values = np.ascontiguousarray(check_scores(scores), dtype=np.float64)
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"scores must be finite; got {values[bad]} in row {bad}. Nothing has been changed."
        )
    return values
