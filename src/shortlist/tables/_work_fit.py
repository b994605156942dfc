"""What a fit must know about values and efforts: their bound, the folds they allow, the promise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._core.validation import name_rows
from ..capacity import Capacity
from ..exceptions import TableError
from .schema import TableRows, TableSchema

__all__ = ["affordable_folds", "as_flags", "check_rate", "promise_about_work", "with_bound"]

_LARGE_CASES_PER_FOLD = 10
_FEWEST_FOLDS = 2


def with_bound(
    schema: TableSchema, rows: TableRows, capacity: Capacity, guarantee: str
) -> tuple[TableSchema, list[str]]:
    """Bound the work of a case by that of the table, where nothing was said; note that.

    The promise stays exact: a case that takes more is never flagged. For "expected" this follows
    from the symmetry of all cases, the new one among them: if it is not the largest, the bound is
    that of all of them, and if it is, it costs nothing.
    """
    work = schema.work
    if work is None or rows.efforts is None or capacity.kind != "effort":
        return schema, []
    most = float(rows.efforts.max())
    if work.max_effort is not None and most > work.max_effort:
        above = np.flatnonzero(rows.efforts > work.max_effort)
        raise TableError(
            f"--max-effort {work.max_effort:g} must be at least the effort of every case; got "
            f"{most:g} at most, and more than that in {name_rows(above + 1)}. Raise it, or leave "
            "these cases out."
        )
    if work.max_effort is not None:
        return schema, []
    if guarantee not in ("plug-in", "expected"):
        raise TableError(
            f"--guarantee {guarantee} needs --max-effort, the most {work.unit} that any case can "
            f"take, in future too; the most in the table is {most:g}. If work is cut off after "
            "some hours, that is the bound."
        )
    note = (
        f"No case of the table takes more than {most:g} {work.unit}. Later cases that take more "
        "are never flagged. To allow more, use --max-effort."
    )
    return replace(schema, work=replace(work, max_effort=most)), [note]


def promise_about_work(schema: TableSchema, capacity: Capacity) -> dict[str, Any]:
    """Return the parameters of a classifier that weighs values and efforts."""
    if schema.work is None:
        return {}
    most = schema.work.max_effort if capacity.kind == "effort" else None
    return {"worth": schema.work.worth, "max_effort": most}


def affordable_folds(folds: int, rows: TableRows, schema: TableSchema, capacity: Capacity) -> int:
    """Return so many folds that each has a budget for some of the largest cases.

    Each fold keeps the budget by itself, and its promise costs the effort of one largest case.
    """
    if capacity.kind != "effort" or schema.work is None or not schema.work.max_effort:
        return folds
    budget = float(capacity.effort_per_item() * len(rows.X))
    most = int(budget / (_LARGE_CASES_PER_FOLD * schema.work.max_effort))
    return min(folds, max(most, _FEWEST_FOLDS))


def as_flags(capacity: Capacity, rows: TableRows) -> Capacity:
    """Return about how many flags a budget of work allows, for learners that are told of it."""
    if capacity.kind != "effort" or rows.efforts is None:
        return capacity
    share = capacity.effort_per_item() / Fraction(float(np.mean(rows.efforts)))
    return Capacity.fraction(min(share, Fraction(1)))


def check_rate(capacity: Capacity, prevalence: Any) -> None:
    """Raise an error for a capacity that is no rate, such as a count or an effort without `per`."""
    if capacity.kind == "effort":
        capacity.effort_per_item()
    else:
        capacity.as_ratio(prevalence)
