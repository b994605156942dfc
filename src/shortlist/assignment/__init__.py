"""Joint capacities in a batch: the best column for each row, solved exactly, with prices."""

from ._assign import Assignment, assign, solve_assignment
from ._solve import FixedPoint, IntegerSolution, solve_integers

__all__ = [
    "Assignment",
    "FixedPoint",
    "IntegerSolution",
    "assign",
    "solve_assignment",
    "solve_integers",
]
