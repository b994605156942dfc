"""Draws tables that others computed; never computes a statistic itself."""

from ._capacity_curve import CapacityCurveDisplay
from ._replay import ReplayDisplay

__all__ = ["CapacityCurveDisplay", "ReplayDisplay"]
