"""Decide about one item at a time, and keep a capacity over time."""

from ._alarm import SIDES, RateAlarm
from ._bucket import TokenBucketController
from ._budget import PACES, BudgetController
from ._controller import Controller
from ._decisions import (
    ABOVE_THRESHOLD,
    BELOW_THRESHOLD,
    CAPACITY_USED_UP,
    MOMENT_REFUSED,
    PROBE,
    PROBE_WITHOUT_SLOT,
    REASONS,
    SEEN_BEFORE,
    USED_UP_ELSEWHERE,
    Decision,
    DecisionBatch,
    ProbedBatch,
    ProbedDecision,
    is_flag,
)
from ._drift import DriftAlarm
from ._ema import EmaController
from ._periods import CALENDARS, CalendarPeriod, FixedPeriod, read_period
from ._replay import Replay, replay
from ._scale import TailScale
from ._simulate import SCENARIOS, Stream, simulate_stream
from ._tracker import QuantileTracker
from ._window import WindowController

__all__ = [
    "ABOVE_THRESHOLD",
    "BELOW_THRESHOLD",
    "CALENDARS",
    "CAPACITY_USED_UP",
    "MOMENT_REFUSED",
    "PACES",
    "PROBE",
    "PROBE_WITHOUT_SLOT",
    "REASONS",
    "SCENARIOS",
    "SEEN_BEFORE",
    "SIDES",
    "USED_UP_ELSEWHERE",
    "BudgetController",
    "CalendarPeriod",
    "Controller",
    "Decision",
    "DecisionBatch",
    "DriftAlarm",
    "EmaController",
    "FixedPeriod",
    "ProbedBatch",
    "ProbedDecision",
    "QuantileTracker",
    "RateAlarm",
    "Replay",
    "Stream",
    "TailScale",
    "TokenBucketController",
    "WindowController",
    "is_flag",
    "read_period",
    "replay",
    "simulate_stream",
]
