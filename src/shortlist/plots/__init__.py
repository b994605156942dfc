"""Draws tables that others computed; never computes a statistic itself."""

from ._capacity_curve import CapacityCurveDisplay

__all__ = ["CapacityCurveDisplay"]
