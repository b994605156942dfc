"""Joint capacities in a batch: the best column for each row, solved exactly, with prices."""

from ._assign import Assignment, assign, solve_assignment

__all__ = ["Assignment", "assign", "solve_assignment"]
