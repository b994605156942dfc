"""Decide about one item at a time, and keep a capacity over time."""

from ._alarms import DriftAlarm
from ._budget import BudgetController
from ._pull import PullController, WaitingCase
from ._tracker import QuantileTracker
from ._window import EmaController, WindowController
from .cases import EntityCases
from .controller import Controller
from .decisions import Decision
from .periods import CalendarPeriod

__all__ = [
    "BudgetController",
    "CalendarPeriod",
    "Controller",
    "Decision",
    "DriftAlarm",
    "EmaController",
    "EntityCases",
    "PullController",
    "QuantileTracker",
    "WaitingCase",
    "WindowController",
]
