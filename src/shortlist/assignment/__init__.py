"""Joint capacities in a batch: the best column for each row, solved exactly, with prices."""

from .assigned import assign, solve_assignment

__all__ = ["assign", "solve_assignment"]
