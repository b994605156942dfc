"""Segmentations that cross, by SciPy's HiGHS: a mixed-integer program, and its relaxation."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from .._core.arrays import Floats, Ints, Rows
from .problem import Problem


def solve_with_highs(problem: Problem) -> tuple[Ints, Floats]:
    """Solve any problem without splitting rows; return columns and the prices of the relaxation.

    The prices are in the order of the limits: classes, total, segments.
    """
    rows, classes = np.nonzero(np.isfinite(problem.gains) & (problem.gains > 0))
    gains = problem.gains[rows, classes]
    columns = np.zeros(problem.n_rows, dtype=np.int64)
    limits, limit = _limits(problem, rows, classes)
    if not rows.size:
        return columns, np.zeros(limit.size - problem.n_rows)
    scale = gains.max()  # HiGHS measures with absolute tolerances
    found = milp(
        -gains / scale,
        integrality=np.ones(rows.size),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(limits, -np.inf, limit),
        options={"mip_rel_gap": 0},
    )
    if found.status != 0:
        raise RuntimeError(f"HiGHS found no best assignment: {found.message}")
    flagged = found.x > 0.5
    if np.any(limits @ flagged > limit):
        raise RuntimeError("HiGHS returned an assignment that exceeds the limits.")
    columns[rows[flagged]] = classes[flagged] + 1
    relaxed = linprog(-gains / scale, A_ub=limits, b_ub=limit, bounds=(0, None), method="highs")
    return columns, np.maximum(-relaxed.ineqlin.marginals[problem.n_rows :], 0) * scale


def _limits(problem: Problem, rows: Rows, classes: Rows) -> tuple[sparse.csr_array, Floats]:
    """Write each limit as a row over the candidate flags: rows, classes, total, segments."""
    families = [
        (rows, np.ones(problem.n_rows)),
        (classes, problem.class_limits),
        (np.zeros_like(rows), np.array([problem.total])),
        *((part.codes[rows], part.limits) for part in problem.segmentations),
    ]
    flags = np.arange(rows.size)
    blocks = [
        sparse.coo_array((np.ones(rows.size), (group, flags)), shape=(limit.size, rows.size))
        for group, limit in families
    ]
    limit = np.concatenate([limit for _, limit in families]).astype(np.float64)
    return sparse.csr_array(sparse.vstack(blocks)), limit
