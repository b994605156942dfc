"""Assignment problems written out, and the best value by SciPy's HiGHS, a mixed-integer program."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


class Problem(NamedTuple):
    """Gains over column 0, the values of that column, and all limits as whole numbers."""

    gains: Any
    left_alone: Any
    classes: Any
    segments: Any
    total: int
    segment_of: Any
    names: list


def written_out(values, capacities, total=None, segments=None, segment_capacities=None):
    """Return a problem with a limit everywhere: None is as many as there are rows."""
    values = np.asarray(values, dtype=float)
    n = len(values)

    def whole(limits):
        return np.array([n if limit is None else min(limit, n) for limit in limits], dtype=int)

    names, codes = np.unique(np.zeros(n) if segments is None else segments, return_inverse=True)
    by_segment = {} if segment_capacities is None else segment_capacities
    limits = whole(by_segment.get(name) for name in names.tolist())
    gains = values[:, 1:] - values[:, :1]
    total = int(whole([total])[0])
    named = [] if segments is None else names.tolist()
    return Problem(gains, values[:, 0], whole(capacities), limits, total, codes, named)


def best_value(*args, **options):
    """Return the largest sum of values within the limits."""
    problem = written_out(*args, **options)
    rows, classes = np.nonzero(np.isfinite(problem.gains) & (problem.gains > 0))
    alone = float(problem.left_alone.sum())
    if not rows.size:
        return alone
    gains = problem.gains[rows, classes]
    families = [
        (rows, np.ones(len(problem.gains))),
        (classes, problem.classes),
        (np.zeros_like(rows), np.array([problem.total])),
        (problem.segment_of[rows], problem.segments),
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
