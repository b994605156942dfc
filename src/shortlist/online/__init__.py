"""Decide about one item at a time, and keep a capacity over time."""

from ._alarms import DriftAlarm, RateAlarm
from ._budget import BudgetController
from ._ema import EmaController
from ._tracker import QuantileTracker
from ._window import WindowController
from .controller import Controller
from .decisions import Decision
from .periods import CalendarPeriod, FixedPeriod

__all__ = [
    "BudgetController",
    "CalendarPeriod",
    "Controller",
    "Decision",
    "DriftAlarm",
    "EmaController",
    "FixedPeriod",
    "QuantileTracker",
    "RateAlarm",
    "WindowController",
]
