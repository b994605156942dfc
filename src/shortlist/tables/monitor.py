"""What visibly breaks a promise: units, unseen categories, empty columns, too many flags.

A monitor sees rows pass in chunks and compares them with the model card, in constant memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, hypergeom

from .._core.arrays import Mask
from .._core.formatting import number, percent
from ..thresholds import CalibratedThreshold
from .columns import MISSING_CATEGORY, is_of_nines, shown_value
from .learned_rows import ColumnProfile
from .model import TableModel
from .schema import TableRows

#: A shift, and too many flags, must be less probable than this if nothing has changed.
SIGNIFICANT = 0.01
# Another finding must be less probable than this if nothing has changed, by an exact test.
_UNLIKELY = 0.001
_FEWEST_ROWS = 10
# A jump: so much more of a column lies beyond its outermost tenth, or is missing.
_JUMP, _MORE_MISSING = 0.5, 0.1
_MOST_SAMPLED, _PER_CHUNK = 20_000, 2_000
_MOST_VALUES, _SHOWN = 1_000, 3
_MOST_BINS = 20  # of a profile: with fewer categories than this, all of them are known
_SERIOUS_SHARE = 0.01
_FAR_LATER = 730  # days
_LOOK = "Look for the cause with: shortlist check."


@dataclass(frozen=True)
class Finding:
    """Something that does not fit the model card, and what to do about it.

    Attributes
    ----------
    kind : str
        "jump", "stand-in", "unseen", "empty", "missing", "constant", "many flags" or "few flags".
    column : str or None
        The column, if it is one column.
    message : str
        What was seen, and the remedy.
    is_serious : bool
        Whether the promise is in danger; a few unseen values or stand-ins are not serious.
    """

    kind: str
    column: str | None
    message: str
    is_serious: bool = True


class DriftMonitor:
    """Compares rows with the model card while they pass."""

    def __init__(self, model: TableModel) -> None:
        self.model = model
        self._columns = [_Column(profile) for profile in model.card.profiles]
        self.n_items = self.n_flagged = 0
        self._decided = False

    def add(self, rows: TableRows) -> None:
        """Look at some rows."""
        self.n_items += len(rows.X)
        for column in self._columns:
            column.add(rows.X[column.profile.name].to_numpy())

    def add_flags(self, flagged: Mask) -> None:
        """Count the flags of rows that were decided each on its own."""
        self._decided = True
        self.n_flagged += int(flagged.sum())

    @property
    def counts(self) -> list[tuple[int, ...]]:
        """The counts of all columns in the bins of their profiles."""
        return [tuple(column.counts.tolist()) for column in self._columns]

    @property
    def room(self) -> int:
        """How many of the rows the capacity allows to flag."""
        prevalence = self.model.classifier.reference_prevalence_
        return self.model.flag_capacity.max_flags(self.n_items, prevalence)

    @property
    def chances(self) -> tuple[float, float]:
        """The chances of as many flags or more, and of as few or fewer, if nothing has changed."""
        calibrations = self.model.classifier.calibrations_
        return chances_of_flags(calibrations, self.n_items, self.n_flagged)

    def findings(self, *, advice: str = _LOOK) -> list[Finding]:
        """Return what does not fit the model card, columns first."""
        if self.n_items == 0:
            return []
        found = [column.finding() for column in self._columns]
        flags = self._finding_on_flags(advice) if self._decided else None
        return [finding for finding in (*found, flags) if finding is not None]

    def _finding_on_flags(self, advice: str) -> Finding | None:
        as_many, as_few = self.chances
        is_many = as_many < SIGNIFICANT and self.n_flagged > self.room
        if not is_many and as_few >= _UNLIKELY:
            return None
        kind, chance = ("many", as_many) if is_many else ("few", as_few)
        shown = percent(max(chance, 1e-9))  # 0 is underflow
        stop = " To stop before too many are flagged, use: shortlist flag at_most=..."
        allowed = "the capacity allows"
        if self.model.classifier.capacity.kind == "effort":
            allowed = "of as many rows of the calibration the budget paid for"
        return Finding(
            f"{kind} flags",
            None,
            f"{'' if is_many else 'Only '}{self.n_flagged:,} of {self.n_items:,} rows are flagged, "
            f"and {allowed} {self.room:,}. If these rows were like those of the calibration, the "
            f"probability of so {kind} would be {shown}. {advice} If the cases themselves have "
            f"changed, set a new threshold with: shortlist recalibrate.{stop if is_many else ''}",
        )


class _Column:
    """What is kept of one column: counts, a sample, the outermost numbers and unseen categories."""

    def __init__(self, profile: ColumnProfile) -> None:
        self.profile = profile
        self.counts = np.zeros(len(profile.counts), dtype=np.int64)
        self._sample = np.zeros(0)
        self._unseen: Counter[str] = Counter()
        self._ends: Counter[float] = Counter()

    def add(self, values: NDArray[Any]) -> None:
        """Count some values."""
        self.counts += np.asarray(self.profile.count(values), dtype=np.int64)
        if self.profile.kind == "categorical":
            counted = Counter(values.tolist())
            for value in set(counted) - {MISSING_CATEGORY, *self.profile.bins}:
                if value in self._unseen or len(self._unseen) < _MOST_VALUES:
                    self._unseen[value] += counted[value]
        elif (present := values[~np.isnan(values)]).size:
            self._add_numbers(present)

    def _add_numbers(self, present: NDArray[np.float64]) -> None:
        """Count the two lowest and the two highest values of all rows so far, and keep some."""
        low, high = present.min(), present.max()
        inner = present[(present > low) & (present < high)]
        ends = {low, high} if inner.size == 0 else {low, high, inner.min(), inner.max()}
        for value in ends:
            self._ends[float(value)] += int((present == value).sum())
        for value in sorted(self._ends)[2:-2]:
            del self._ends[value]
        if self._sample.size < _MOST_SAMPLED:
            places = np.linspace(0, present.size - 1, min(present.size, _PER_CHUNK)).astype(int)
            self._sample = np.concatenate([self._sample, present[places]])

    def finding(self) -> Finding | None:
        """Return the first finding that holds."""
        finders: tuple[Callable[[], Finding | None], ...] = (self._constant,)
        if self.profile.kind == "categorical":
            finders += (self._unseen_values,)
        elif self.profile.bins and self.profile.kind != "boolean":
            finders += (self._jump, self._stand_in)
        return next(filter(None, (find() for find in (*finders, self._missing))), None)

    # --- shared by the findings ---

    @property
    def _n(self) -> int:
        return int(self.counts.sum())

    def _has_risen(self, place: int, least_rise: float) -> bool:
        """Return whether a bin has more rows, by an exact test."""
        n_before, n_here = sum(self.profile.counts), int(self.counts[place])
        law = (n_before + self._n, self.profile.counts[place] + n_here, self._n)
        rise = n_here / self._n - self.profile.counts[place] / n_before
        return rise >= least_rise and float(hypergeom.sf(n_here - 1, *law)) < _UNLIKELY

    def _more_than_before(self, kind: str, place: int, where: str, remedy: str) -> Finding:
        """Say that more rows lie in a bin than in the calibration."""
        before = self.profile.counts[place] / sum(self.profile.counts)
        now = self.counts[place] / self._n
        rows = f"all {self._n:,}" if now == 1 else f"{percent(now)} of the"
        message = f"{where} in {rows} rows; in the calibration in {percent(before)}. {remedy}"
        return self._tells(kind, message)

    def _tells(self, kind: str, message: str, *, is_serious: bool = True) -> Finding:
        return Finding(kind, self.profile.name, f"{self.profile.name!r} {message}", is_serious)

    # --- all kinds of columns ---

    def _missing(self) -> Finding | None:
        is_empty = self.counts[-1] == self._n
        if not self._has_risen(-1, 0.0 if is_empty else _MORE_MISSING):
            return None
        remedy = "Check how the table was made. Fill the column, or fit a new model without it."
        return self._more_than_before("empty" if is_empty else "missing", -1, "is empty", remedy)

    def _constant(self) -> Finding | None:
        counts = self.profile.counts
        values = [*self._ends, *self._unseen]
        if self.profile.kind == "categorical":
            values += [name for name, n in zip(self.profile.bins, self.counts, strict=False) if n]
        usual = (max(counts) + 1) / (sum(counts) + 2)
        is_odd = self._n >= _FEWEST_ROWS and usual**self._n < _UNLIKELY
        if len(values) != 1 or self.counts[-1] or not is_odd:
            return None
        return self._tells(
            "constant",
            f"is {shown_value(values[0], self.profile.kind)} in all {self._n:,} rows, and varied "
            "in the calibration. Check how the table was made.",
        )

    # --- numbers and dates ---

    def _jump(self) -> Finding | None:
        """Find many more rows beyond the outermost tenths, such as all of them in another unit."""
        ends, kind = self.profile.bins, self.profile.kind
        sides = {0: f"lies at or below {shown_value(ends[0], kind)}"}
        middle = float(np.median(self._sample)) if self._sample.size else math.nan
        # Later dates are only natural.
        if kind != "date" or middle >= ends[-1] + max(ends[-1] - ends[0], _FAR_LATER):
            sides[len(ends)] = f"lies above {shown_value(ends[-1], kind)}"
        for place, where in sides.items():
            if self._n >= _FEWEST_ROWS and self._has_risen(place, _JUMP):
                what, usual = "the unit and the sign", ends[len(ends) // 2]
                if kind == "date":
                    what = "the date format"
                elif usual and middle / usual > 0:
                    what += f" (the median is {number(middle / usual, 2)} times as large)"
                remedy = f"Check {what}, convert the column back, or fit a new model."
                return self._more_than_before("jump", place, where, remedy)
        return None

    def _stand_in(self) -> Finding | None:
        """Find a repeated value far from all others, such as -999 or the year 9999."""
        ends, kind = sorted(self._ends), self.profile.kind
        if len(ends) < 2 or not self.profile.ends:
            return None
        low, high = self.profile.ends
        far = max(high - low, _FAR_LATER if kind == "date" else 0)
        for value, next_one in ((ends[0], ends[1]), (ends[-1], ends[-2])):
            is_new = self._ends[value] > 1 and not low <= value <= high
            is_code = kind == "numeric" and value < 0 <= low and is_of_nines(value)
            if is_new and (is_code or abs(value - next_one) > far):
                shown = shown_value(value, kind)
                return self._tells(
                    "stand-in",
                    f"is {shown} in {self._ends[value]:,} of {self._n:,} rows, far from other "
                    f"values and from those of the fit. If that means missing, use na='{shown}'",
                    is_serious=self._ends[value] > _SERIOUS_SHARE * self._n,
                )
        return None

    # --- categories ---

    def _unseen_values(self) -> Finding | None:
        n_unseen, place = int(self.counts[-2]), len(self.profile.bins)
        all_known = place < _MOST_BINS and self.profile.counts[place] == 0
        jumped = self._has_risen(place, _MORE_MISSING)
        if not self._unseen or not (all_known or jumped):
            return None
        what = "values that the fit did not see" if all_known else "more rare or unseen values"
        known = {name.casefold(): f" (before: {name!r:.80})" for name in self.profile.bins}
        shown = [
            f"{value!r:.80}{known.get(value.casefold(), '')}"
            for value, _ in self._unseen.most_common(_SHOWN)
        ]
        more = len(self._unseen) - len(shown)
        return self._tells(
            "unseen",
            f"holds {what}, in {n_unseen:,} of {self._n:,} rows ({percent(n_unseen / self._n)}): "
            f"{', '.join(shown)}{f' and {more:,} more' if more else ''}. They count as rare "
            "categories. Correct the spelling, or fit a new model on recent rows.",
            is_serious=jumped or n_unseen > _SERIOUS_SHARE * self._n,
        )


def law_of_flags(calibrations: list[CalibratedThreshold], n_items: int) -> Any:
    """Return the distribution of the number of flags; None if that number is certain.

    If new cases are like calibration cases, the flag rate of a threshold at the (k + 1)-th largest
    of n scores follows Beta(k + 1, n - k), and the number of flags among N cases follows a
    beta-binomial distribution. It covers the randomness of calibration and of the new cases. A
    share s between this place and the next counts as k + s. (This is an approximation, as it is for
    a confident multiple, where k depends on the labels, and for several thresholds, one for each
    fold, which are taken as one from all their scores.)
    """
    above = sum(each.k + 1 + each.share for each in calibrations)
    below = sum(each.n_calibration - each.k - each.share for each in calibrations)
    # Otherwise, nothing or everything is flagged.
    return betabinom(n_items, above, below) if above > 0 and below > 0 else None


def chances_of_flags(
    calibrations: list[CalibratedThreshold], n_items: int, n_flagged: int
) -> tuple[float, float]:
    """Return the chances of as many flags or more, and of as few or fewer."""
    law = law_of_flags(calibrations, n_items)
    return (1.0, 1.0) if law is None else (float(law.sf(n_flagged - 1)), float(law.cdf(n_flagged)))
