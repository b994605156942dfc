"""Which rows train, which are scored by models that have not seen them, and which only test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, StratifiedGroupKFold, StratifiedKFold
from sklearn.model_selection import train_test_split as split_rows

from .._core.arrays import Mask, Rows
from ..exceptions import TableError
from ..thresholds.promise import FOLD_GUARANTEES
from .columns import MISSING_CATEGORY
from .schema import TableRows, TableSchema

__all__ = ["Parts", "Sidelined", "divide_rows", "make_folds", "set_aside"]

#: Each score of a row comes from a model of the other nine tenths.
N_FOLDS = 10
#: Guarantees that do not hold with several thresholds need one model, and rows it has not seen.
_SHARE_FOR_THRESHOLD = 0.25
#: The latest rows that test, if a time column is named and no share.
LATEST_SHARE = 0.2


class Parts(NamedTuple):
    """Rows to learn from, and rows that only test the finished model."""

    learn: Rows
    test: Rows


class Sidelined(NamedTuple):
    """Columns that order or group the rows; they are never learned from."""

    times: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None

    def groups_of(self, places: Rows) -> NDArray[Any] | None:
        """Return the groups at some positions."""
        return None if self.groups is None else self.groups[places]


def set_aside(
    rows: TableRows, schema: TableSchema, *, time: str | None, group: str | None
) -> Sidelined:
    """Return the columns that `time` and `group` name."""
    kinds = {feature.name: feature.kind for feature in schema.features}
    for option, name in (("time", time), ("group", group)):
        if name is not None and name not in kinds:
            raise TableError(
                f"{option}=... names {name!r}, which is not a column of features: "
                f"{', '.join(repr(known) for known in kinds)}."
            )
    if time is not None and kinds[time] == "categorical":
        raise TableError(
            f"time=... names {time!r}, which holds texts. It needs dates or numbers that rise with "
            f"time. If it holds dates, say how they are written: date_format='{time}=DD/MM/YYYY'"
        )
    times = None if time is None else rows.X[time].to_numpy(dtype=np.float64)
    if times is not None and np.isnan(times).any():
        raise TableError(
            f"time=... names {time!r}, which has {int(np.isnan(times).sum())} missing values. Fill "
            "them, or leave these rows out: it is not known whether they belong to the past."
        )
    groups = None if group is None else rows.X[group].to_numpy()
    if groups is not None and rows.X[group].nunique() == 1:
        raise TableError(
            f"group=... names {group!r}, which is the same in all rows: a model would have no "
            "other group to learn from. Name another column."
        )
    if group is not None and (n_gaps := int(rows.X[group].isin([np.nan, MISSING_CATEGORY]).sum())):
        raise TableError(
            f"group=... names {group!r}, which has {n_gaps} missing values. Fill them, or leave "
            "these rows out: rows without a group might belong together."
        )
    return Sidelined(times, groups)


def divide_rows(is_rare: Mask, aside: Sidelined, *, test_share: float, random_state: int) -> Parts:
    """Keep rows aside that only test: the latest, or whole groups, or a random share."""
    everything = np.arange(is_rare.size)
    if test_share == 0:
        return Parts(everything, everything[:0])
    if aside.times is not None:
        return _latest(aside.times, test_share)
    if aside.groups is not None:
        split = GroupShuffleSplit(1, test_size=test_share, random_state=random_state)
        return Parts(*next(split.split(everything, groups=aside.groups)))
    if round(test_share * is_rare.size) < 2:
        raise TableError(
            f"test_share={test_share:g} of {is_rare.size:,} rows leaves none to test with. Raise "
            "it, or leave it out."
        )
    learn, test = split_rows(
        everything, test_size=test_share, stratify=is_rare, random_state=random_state
    )
    return Parts(np.sort(learn), np.sort(test))


def _latest(times: NDArray[np.float64], share: float) -> Parts:
    """Divide at a moment: rows of the same moment are on the same side."""
    start = np.quantile(times, 1 - share, method="higher")
    if start == times.min():
        raise TableError(
            f"time=... leaves no past to learn from: {np.mean(times == start):.0%} of the rows "
            "have the earliest time. Name a column with more times, or test without it."
        )
    return Parts(np.flatnonzero(times < start), np.flatnonzero(times >= start))


def make_folds(
    is_rare: Mask,
    groups: NDArray[Any] | None,
    guarantee: str,
    *,
    folds: int = N_FOLDS,
    random_state: int,
) -> list[tuple[Rows, Rows]]:
    """Return pairs of rows: to learn from, and to be scored by what was learned.

    Ten folds score every row by a model of nine tenths. One fold is a quarter of the rows, which
    sets the threshold of one model; so it is for guarantees that do not hold with several.
    """
    single = folds == 1 or guarantee not in FOLD_GUARANTEES
    n_folds = round(1 / _SHARE_FOR_THRESHOLD) if single else folds
    options: dict[str, Any] = {"shuffle": True, "random_state": random_state}
    n_folds = min(n_folds, int(is_rare.sum()), int((~is_rare).sum()))
    if groups is None:
        pairs = list(StratifiedKFold(n_folds, **options).split(is_rare, is_rare))
    else:
        n_folds = min(n_folds, np.unique(groups).size)
        pairs = list(StratifiedGroupKFold(n_folds, **options).split(is_rare, is_rare, groups))
    if groups is not None and not all(is_rare[learn].any() for learn, _ in pairs):
        raise TableError(
            "group=... puts all rare rows into one group, and a model would have none to learn "
            "from. Name another column."
        )
    return pairs[:1] if single else pairs
