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
    REASONS,
    SEEN_BEFORE,
    Decision,
    DecisionBatch,
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
    "REASONS",
    "SCENARIOS",
    "SEEN_BEFORE",
    "SIDES",
    "BudgetController",
    "CalendarPeriod",
    "Controller",
    "Decision",
    "DecisionBatch",
    "DriftAlarm",
    "EmaController",
    "FixedPeriod",
    "QuantileTracker",
    "RateAlarm",
    "Replay",
    "Stream",
    "TailScale",
    "TokenBucketController",
    "WindowController",
    "read_period",
    "replay",
    "simulate_stream",
]
