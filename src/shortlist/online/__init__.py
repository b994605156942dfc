"""Decide one case at a time, and keep the capacity."""

from ._alarm import SIDES, RateAlarm
from ._base import Controller
from ._bucket import TokenBucketController
from ._budget import PACES, BudgetController
from ._decision import REASONS, Decision, DecisionBatch
from ._ema import EmaController
from ._replay import Replay, replay
from ._simulate import SCENARIOS, Stream, simulate_stream
from ._tracker import QuantileTracker
from ._window import WindowController

__all__ = [
    "PACES",
    "REASONS",
    "SCENARIOS",
    "SIDES",
    "BudgetController",
    "Controller",
    "Decision",
    "DecisionBatch",
    "EmaController",
    "QuantileTracker",
    "RateAlarm",
    "Replay",
    "Stream",
    "TokenBucketController",
    "WindowController",
    "replay",
    "simulate_stream",
]
