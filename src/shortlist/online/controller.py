"""The base class of all controllers: decide, observe, change the capacity, save and load."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import threading
from collections import OrderedDict
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.arrays import Floats, Ints
from .._core.ids import check_id
from .._core.probing import uniform_number
from ..capacity import Capacity, check_capacity, check_prevalence
from ..exceptions import CapacityError
from .decisions import (
    MOMENT_REFUSED,
    PROBE_WITHOUT_SLOT,
    REASONS,
    SEEN_BEFORE,
    Decision,
    DecisionBatch,
    TailScale,
    check_calibration_scores,
    check_names,
    check_options,
    check_score,
    check_score_array,
    check_work,
    is_flag,
    to_seconds,
)
from .periods import Timeline

#: The format of saved states, and its version.
FORMAT = ("shortlist.online", 10)


class Controller:
    """Decides about one item at a time, and keeps a capacity over time.

    The base class of all controllers: decisions, ids, the clock, scheduled changes and saved state
    live here. A lock lets threads share a controller, which decides about their items one after
    the other. Everything that a controller learns lives in `state_floats` and `state_ints`, which
    its two compiled functions read and change. A subclass provides these functions, the two methods
    below that raise `NotImplementedError`, and a constructor. That one passes its own arguments on
    to this one as options, by the same names; then it makes the two arrays and applies the capacity
    to them.

    Parameters
    ----------
    capacity : Capacity
        What :meth:`check_capacity` accepts.
    calibration_scores : array-like of shape (n_items,)
        Recent scores of the model. No labels are needed.
    remember : int, default=10000
        How many ids are remembered with their answers.
    **options
        The subclass's own arguments, as plain JSON; saved with the state. An option called
        `period` that is not None means that the controller keeps time: in seconds, or in periods of
        a calendar (:class:`CalendarPeriod`), which the compiled functions see as 1 long. An option
        called `probe_key` means that the controller draws probes. A multiple refers to the option
        `prevalence`.

    Attributes
    ----------
    capacity : Capacity
        The capacity in force; :meth:`set_capacity` changes it.
    counts_work : bool
        Whether the capacity is a budget of work: every item then needs its effort.
    is_timed : bool
        Whether the capacity refers to a period of time. If so, every item needs a moment.
    calendar : CalendarPeriod or None
        The calendar, if the period is one of a calendar.
    has_probes : bool
        Whether some flags go to items below the threshold, drawn at random.
    farthest_jump : float
        How many seconds the next moment may lie ahead: 31 periods, and at least a week. Moments
        beyond are refused until five in a row agree. Infinite without a period.
    """

    #: ``step(score, at, deciding, work, number, floats, ints)`` decides about one item and returns
    #: the code of the reason, the threshold and the probability of a flag. `at` is in seconds, or
    #: the item's number without a period; `work` is in millionths, `number` decides about probes.
    #: If `deciding` is false, the item is only observed, and no flag is used up.
    compiled_step: ClassVar[Any]
    #: ``loop(items, deciding, answers, floats, ints)`` does the same for arrays: `items` are the
    #: scores, times, works and numbers, `answers` the codes, thresholds and probabilities to fill.
    compiled_loop: ClassVar[Any]

    def __init__(
        self,
        capacity: Capacity,
        *,
        calibration_scores: ArrayLike,
        remember: int = 10_000,
        **options: Any,
    ) -> None:
        self.options = check_options({"remember": remember, **options})
        self.lock = threading.RLock()
        self.capacity = check_capacity(capacity)
        self.counts_work = capacity.kind == "effort"
        self._time = Timeline(self.options.get("period"))
        self.is_timed, self.calendar = self._time.is_timed, self._time.calendar
        self.farthest_jump = self._time.farthest
        self._probe_key: str | None = options.get("probe_key")
        self.has_probes = self._probe_key is not None
        # The answers to the most recent ids: code, threshold, probability. The oldest go first.
        self._answers: OrderedDict[Any, tuple[int, float, float]] = OrderedDict()
        self.scale = TailScale.from_scores(check_calibration_scores(calibration_scores))
        self.state_floats: Floats = np.zeros(0)
        self.state_ints: NDArray[np.int64] = np.zeros(0, np.int64)
        self.check_capacity(capacity)

    @property
    def now(self) -> float:
        """The latest moment seen, in seconds; minus infinity before the first."""
        return self._time.now

    @property
    def n_items(self) -> int:
        """How many items have been decided or observed. A repeated id does not count."""
        return self._time.n_items

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self.capacity!r})"

    # --- for subclasses ------------------------------------------------------------------------

    def check_capacity(self, capacity: Capacity) -> None:
        """Raise an error for a capacity that :meth:`apply_capacity` cannot take; rates are fine."""
        self.ratio(capacity)

    def ratio(self, capacity: Capacity) -> Fraction:
        """Return the share of items that a capacity allows."""
        return capacity.as_ratio(self.options.get("prevalence"))

    def apply_capacity(self, capacity: Capacity) -> None:
        """Set the numbers that follow from a capacity."""
        raise NotImplementedError

    def change_scale(self, old: TailScale, new: TailScale) -> None:
        """Translate all scores in the arrays from the old model to the new one."""
        raise NotImplementedError

    def is_sound(self, n_floats: int, n_ints: int) -> bool:
        """Whether loaded arrays have the lengths of new ones, and all places in them lie within.

        Override this if their lengths vary, or if compiled functions find a place by a number.
        """
        return self.state_floats.size == n_floats and self.state_ints.size == n_ints

    # --- decisions -----------------------------------------------------------------------------

    def decide(
        self,
        score: float,
        *,
        at: Any = None,
        id: str | int | None = None,
        effort: float | None = None,
    ) -> Decision:
        """Decide whether to follow up one item.

        Parameters
        ----------
        score : float
            Higher is more suspicious. NaN and infinite scores raise an error.
        at : float or datetime, default=None
            When the item arrived, in seconds or as a datetime (UTC if it has no time zone);
            required with a period. An item from the past counts as of the latest moment seen.
            Therefore a clock that runs backwards never opens a budget twice. An item more than
            `farthest_jump` ahead is not decided (``"moment refused"``) and changes nothing, because
            one moment in milliseconds would move the clock for good. The fifth such item in a row
            moves it.
        id : str or int, default=None
            An id that was seen before gets its first answer again, whatever its score is now, and
            changes nothing. The last `remember` ids are known.
        effort : float, default=None
            How much work the item takes, if the capacity is a ``Capacity.effort(...)``. The score
            is then what it is worth per unit of work: value * probability / effort.

        Returns
        -------
        Decision
            With `flag`, `threshold`, `reason` and `probability`.
        """
        with self.lock:
            id = None if id is None else check_id(id)
            if (known := self._repeat(id)) is not None:
                return known
            score, moment = check_score(score), self._time.moment(at)
            work = 1
            if effort is not None or self.counts_work:
                work = int(check_work(self.capacity, None if effort is None else [effort], 1)[0])
            return self._decide_new(score, moment, id, work)

    def decide_many(
        self,
        scores: ArrayLike,
        *,
        at: Any = None,
        ids: ArrayLike | None = None,
        efforts: ArrayLike | None = None,
    ) -> DecisionBatch:
        """Decide about many items in order. The decisions are those of :meth:`decide`, but faster.

        Everything is checked before the first decision. An error therefore changes nothing.

        Parameters
        ----------
        scores : array-like of shape (n_items,)
            Scores.
        at : array-like of shape (n_items,), float or datetime, default=None
            A moment for each item, or one for all.
        ids : array-like of shape (n_items,), default=None
            Their ids.
        efforts : array-like of shape (n_items,), default=None
            How much work each item takes, if the capacity is a ``Capacity.effort(...)``.

        Returns
        -------
        DecisionBatch
            With an array each: `flagged`, `thresholds`, `reasons`, `probabilities`, `selected_by`.
        """
        checked = check_score_array(scores)
        n = checked.size
        work, names = check_work(self.capacity, efforts, n), check_names(ids, n)
        with self.lock:
            return self._decide_items(checked, self._time.moments(at, n), work, names)

    def observe(self, scores: ArrayLike, *, at: Any = None) -> Self:
        """Learn from items without deciding about them. No flag is used up.

        Parameters
        ----------
        scores : float or array-like of shape (n_items,)
            Scores of items that were decided elsewhere, or not at all.
        at : float, datetime or array-like of them, default=None
            When they arrived.
        """
        checked = check_score_array(np.atleast_1d(np.asarray(scores)))
        work = np.ones(checked.size, np.int64)
        with self.lock:
            moments = self._time.moments(at, checked.size)
            self._decide_items(checked, moments, work, None, deciding=False)
        return self

    # --- changes -------------------------------------------------------------------------------

    def set_capacity(self, capacity: Capacity, *, at: Any = None) -> Self:
        """Change the capacity: now, from a later moment on, or as of an earlier one.

        Parameters
        ----------
        capacity : Capacity
            The new capacity.
        at : float or datetime, default=None
            When it begins. A change after the latest item waits until then; `None` or an earlier
            moment means now.
        """
        if (check_capacity(capacity).kind == "effort") != self.counts_work:
            raise CapacityError(
                f"This controller keeps {self.capacity!r}, and cannot change to {capacity!r}: "
                "flags and work are counted differently. Make a new controller."
            )
        self.check_capacity(capacity)
        with self.lock:
            moment = self.now if at is None else to_seconds(at)
            if moment > self.now:
                self._time.announce(moment, capacity)
            else:
                self._change_capacity(capacity)
        return self

    def set_prevalence(self, prevalence: Any) -> Self:
        """Let a multiple of the base rate follow the base rate, from now on.

        Parameters
        ----------
        prevalence : number
            The share of rare items, such as `prevalence_low` of
            :func:`~shortlist.feedback.estimate_missed` for the reviews of the last days: with its
            confidence, no more is then flagged than the multiple allows.
        """
        if self.capacity.kind != "multiple":
            raise CapacityError(
                f"{self.capacity!r} does not refer to the base rate. Use Capacity.multiple(b), or "
                "change the capacity with set_capacity."
            )
        value = float(check_prevalence(prevalence))
        with self.lock:
            for capacity in (self.capacity, *(each for _, each in self._time.changes)):
                if capacity.kind == "multiple":
                    capacity.as_ratio(value)  # an error changes nothing
            self.options = {**self.options, "prevalence": value}  # copies share the old ones
            self.apply_capacity(self.capacity)
        return self

    def swap_model(self, calibration_scores: ArrayLike) -> Self:
        """Switch to another model without a jump in the flag rate.

        Parameters
        ----------
        calibration_scores : array-like of shape (n_items,)
            Scores of the new model for recent items, comparable to those that the old scale was
            made from.
        """
        new = TailScale.from_scores(check_calibration_scores(calibration_scores))
        with self.lock:
            self.change_scale(self.scale, new)
            self.scale = new
        return self

    # --- saved state ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that later decisions depend on, as plain JSON.

        Returns
        -------
        dict
            For :meth:`from_state`.
        """
        with self.lock:
            parts = {
                "format": FORMAT[0],
                "version": FORMAT[1],
                "controller": type(self).__name__,
                "capacity": self.capacity.to_json(),
                "options": self.options,
                **self._time.state(),
                # JSON has no infinity.
                "answers": [[id, c, str(cut), p] for id, (c, cut, p) in self._answers.items()],
                "scale": _to_text(self.scale.knots),
                "floats": _to_text(self.state_floats),
                "ints": _to_text(self.state_ints),
                **self.own_state(),
            }
        digest = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16)
        return {**parts, "digest": digest.hexdigest()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the controller that :meth:`state` was called on.

        Parameters
        ----------
        state : dict
            What `state` returned, directly or through JSON. A state that was changed since raises
            an error.

        Returns
        -------
        Controller
            Of the class that is named in the state.
        """
        if not isinstance(state, dict) or (state.get("format"), state.get("version")) != FORMAT:
            raise ValueError(
                "state must be what state() of a controller returned, in the format and version "
                f"{FORMAT} that this release reads. Load an older one with the release that wrote "
                "it, or start a new controller at the beginning of the next period."
            )
        known = {each.__name__: each for each in (cls, *_subclasses(cls))}
        if state.get("controller") not in known:
            raise ValueError(
                f"state belongs to a {state.get('controller')!r}; this class loads {sorted(known)}."
                " Controller.from_state loads every kind."
            )
        # A state may have been truncated, edited or mixed up, and a wrong number could flag more
        # than the capacity. Therefore saving the loaded controller must lead to the same digest.
        try:
            knots = _from_text(state["scale"], np.float64).reshape(2, -1)
            capacity = Capacity.from_json(state["capacity"])
            made = known[state["controller"]](
                capacity, calibration_scores=knots[0], **state["options"]
            )
            sizes = made.state_floats.size, made.state_ints.size
            made._load(knots, state)
            digest = made.state()["digest"]
        except (TypeError, ValueError, LookupError, OverflowError, AttributeError) as error:
            raise ValueError(f"state cannot be read: {type(error).__name__}: {error}") from error
        # Compiled functions check no index, and whoever edits a state can compute its digest again.
        is_sound = made.is_sound(*sizes) and not np.isnan(made.state_floats).any()
        if digest != state.get("digest") or not is_sound:
            raise ValueError(
                "state contradicts itself: it is not what state() returned, or has lengths or "
                "places that no controller has. Load it unchanged, and change a capacity with "
                "set_capacity."
            )
        return made

    def own_state(self) -> dict[str, Any]:
        """Return what a subclass remembers beside the two arrays, as plain JSON."""
        return {}

    def load_own_state(self, state: dict[str, Any]) -> None:
        """Read what :meth:`own_state` returned."""

    def _load(self, knots: Floats, state: dict[str, Any]) -> None:
        """Put in everything that was learned."""
        self.load_own_state(state)
        self.scale = TailScale(knots)
        self._time.load(state)
        for id, code, threshold, probability in state["answers"]:
            self._keep(check_id(id), int(code), float(threshold), float(probability))
        self.state_floats = _from_text(state["floats"], np.float64)
        self.state_ints = _from_text(state["ints"], np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock out of copies."""
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Give each copy its own lock."""
        self.__dict__.update(saved)
        self.lock = threading.RLock()

    # --- helpers -------------------------------------------------------------------------------

    def announced(self) -> list[tuple[float, Capacity]]:
        """Return the capacity in force and those that wait for their moments, in order."""
        return [(-math.inf, self.capacity), *self._time.changes]

    def pass_over(self, code: int, *, at: Any, id: str | int | None = None) -> Decision:
        """Answer an item that is not to be decided: time passes, and its id is remembered."""
        id, moment = None if id is None else check_id(id), self._time.moment(at)
        with self.lock:
            if (known := self._repeat(id)) is not None:
                return known
            if not self._reach(moment):
                return Decision(False, math.inf, REASONS[MOMENT_REFUSED], 0.0)
            if id is not None:
                self._keep(id, code, math.inf, 0.0)
            return Decision(False, math.inf, REASONS[code], 0.0)

    def _reach(self, moment: float) -> bool:
        """Move the clock on, and make the changes that are due, unless the moment is refused."""
        if self._time.is_refused(moment):
            return False
        self._make_due_changes(moment)
        self._time.now = max(self._time.now, moment)
        return True

    def _repeat(self, id: Any) -> Decision | None:
        """Return the answer that an id has already got, if it is remembered."""
        known = None if id is None else self._answers.get(id)
        if known is None:
            return None
        code, threshold, probability = known
        # A probe without a slot stays one: its outcome is unknown, however often it comes.
        reason = REASONS[code if code == PROBE_WITHOUT_SLOT else SEEN_BEFORE]
        return Decision(bool(is_flag(code)), threshold, reason, probability)

    def _decide_new(
        self, score: float, moment: float, id: Any, work: int, deciding: bool = True
    ) -> Decision:
        """Decide about one item whose id is new, unless its moment is refused."""
        if not self._reach(moment):
            return Decision(False, math.inf, REASONS[MOMENT_REFUSED], 0.0)
        number = 1.0
        if self._probe_key is not None and deciding:
            number = uniform_number(self._probe_key, id, self.n_items)
        code, threshold, probability = self.compiled_step(
            score,
            self._time.count_one(moment),
            deciding,
            work,
            number,
            self.state_floats,
            self.state_ints,
        )
        if id is not None:
            self._keep(id, code, threshold, probability)
        return Decision(bool(is_flag(code)), threshold, REASONS[code], probability)

    def _make_due_changes(self, moment: float) -> None:
        if moment > self._time.now and self._time.changes:
            for capacity in self._time.due_changes(until=moment):
                self._change_capacity(capacity)

    def _decide_items(
        self,
        scores: Floats,
        moments: Floats,
        work: Ints,
        ids: list[Any] | None,
        *,
        deciding: bool = True,
    ) -> DecisionBatch:
        """Decide about items together, or one by one if anything is special about one of them."""
        if self._are_plain(moments, ids):
            return self._decide_together(scores, moments, work, ids, deciding)
        columns = scores.tolist(), moments.tolist(), ids or [None] * scores.size, work.tolist()
        return DecisionBatch.of(
            [
                self._repeat(id) or self._decide_new(score, moment, id, one, deciding)
                for score, moment, id, one in zip(*columns, strict=True)
            ]
        )

    def _are_plain(self, moments: Floats, ids: list[Any] | None) -> bool:
        """Whether all ids are new, and nothing is refused or due at any of the moments."""
        are_new = ids is None or (
            len(set(ids)) == len(ids) and self._answers.keys().isdisjoint(ids)
        )
        return are_new and self._time.are_plain(moments)

    def _decide_together(
        self, scores: Floats, moments: Floats, work: Ints, ids: list[Any] | None, deciding: bool
    ) -> DecisionBatch:
        """Run the compiled loop over items."""
        numbers = np.ones(scores.size)
        if self._probe_key is not None and deciding:
            first, names = self.n_items, ids or [None] * scores.size
            key = self._probe_key
            numbers[:] = [uniform_number(key, id, first + i) for i, id in enumerate(names)]
        batch = DecisionBatch.empty(scores.size)
        items = scores, self._time.count_many(moments), work, numbers
        answers = batch.codes, batch.thresholds, batch.probabilities
        self.compiled_loop(items, deciding, answers, self.state_floats, self.state_ints)
        batch.flagged[:] = is_flag(batch.codes)
        for id, *answer in zip(ids or (), *(each.tolist() for each in answers), strict=False):
            self._keep(id, *answer)
        return batch

    def _keep(self, id: Any, code: int, threshold: float, probability: float) -> None:
        """Remember an answer, and forget the oldest if there are too many."""
        self._answers[id] = code, threshold, probability
        if len(self._answers) > self.options["remember"]:
            self._answers.popitem(last=False)

    def _change_capacity(self, capacity: Capacity) -> None:
        self.apply_capacity(capacity)
        self.capacity = capacity


def _to_text(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _from_text(text: str, kind: type[np.generic]) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), kind).copy()


def _subclasses(kind: type[Any]) -> list[type[Any]]:
    return [each for child in kind.__subclasses__() for each in (child, *_subclasses(child))]
