"""Joint capacities in a batch: the best column for each row, solved exactly, with prices."""

from .assigned import assign

__all__ = ["assign"]
