"""The best assignment by SciPy's HiGHS, as a mixed-integer program: what `assign` must equal."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from shortlist.assignment.problem import check_problem


def best_value(values, capacities, total=None, segments=None, segment_capacities=None):
    """Return the largest sum of values within the limits."""
    problem = check_problem(
        values,
        capacities,
        total=total,
        segments=segments,
        segment_capacities=segment_capacities,
    )
    rows, classes = np.nonzero(np.isfinite(problem.gains) & (problem.gains > 0))
    alone = float(problem.left_alone.sum())
    if not rows.size:
        return alone
    gains, limits = problem.gains[rows, classes], problem.limits
    families = [
        (rows, np.ones(len(problem.gains))),
        (classes, limits.classes),
        (np.zeros_like(rows), np.array([limits.total])),
        (problem.segment_of[rows], limits.segments),
    ]
    constraints = [
        LinearConstraint(np.arange(limit.size)[:, np.newaxis] == group, -np.inf, limit)
        for group, limit in families
    ]
    scale = gains.max()  # HiGHS measures with absolute tolerances
    found = milp(
        -gains / scale,
        integrality=np.ones(rows.size),
        bounds=Bounds(0, 1),
        constraints=constraints,
        options={"mip_rel_gap": 0},
    )
    assert found.status == 0
    return alone - found.fun * scale
