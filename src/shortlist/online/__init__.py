"""Decide one case at a time, and keep the capacity."""

from ._base import Controller
from ._bucket import TokenBucketController
from ._budget import PACES, BudgetController
from ._decision import REASONS, Decision, DecisionBatch
from ._ema import EmaController
from ._simulate import SCENARIOS, Stream, simulate_stream
from ._tracker import QuantileTracker
from ._window import WindowController

__all__ = [
    "PACES",
    "REASONS",
    "SCENARIOS",
    "BudgetController",
    "Controller",
    "Decision",
    "DecisionBatch",
    "EmaController",
    "QuantileTracker",
    "Stream",
    "TokenBucketController",
    "WindowController",
    "simulate_stream",
]
