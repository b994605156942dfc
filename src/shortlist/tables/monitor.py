"""What visibly breaks a promise: units, unseen categories, empty columns, too many flags.

A monitor sees rows pass in chunks and compares them with the model card, in constant memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from .._core.arrays import Mask
from .columns import MISSING_CATEGORY
from .drift import SIGNIFICANT, ColumnProfile, chances_of_flags
from .model import TableModel
from .schema import TableRows

# A finding must be less probable than this if nothing has changed, by an exact test.
_UNLIKELY = 0.001
_FEWEST_ROWS = 10
# A jump: so much more of a column lies beyond its outermost tenth, or is missing.
_JUMP, _MORE_MISSING = 0.5, 0.1
# A unit: all tenths have grown or shrunk by about the same factor, and by at least this one.
_LEAST_FACTOR, _SAME_FACTOR, _NEARLY = 3.0, 1.5, 1.3
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
        "unit", "jump", "stand-in", "unseen", "empty", "missing", "constant", "many flags" or "few
        flags".
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
    """Compares rows with the model card while they pass.

    Examples
    --------
    See :func:`~shortlist.tables.check_table`, which is built on it.
    """

    def __init__(self, model: TableModel) -> None:
        self._model = model
        profiles = () if model.card is None else model.card.profiles
        self._columns = [_Column(profile) for profile in profiles]
        self.n_items = self.n_flagged = 0
        self._decided = False

    def add(self, rows: TableRows, flagged: Mask | None = None) -> None:
        """Look at some rows, and at their flags if each was decided on its own."""
        self.n_items += len(rows.X)
        for column in self._columns:
            column.add(rows.X[column.profile.name].to_numpy())
        if flagged is not None:
            self._decided = True
            self.n_flagged += int(flagged.sum())

    @property
    def counts(self) -> list[tuple[int, ...]]:
        """The counts of all columns in the bins of their profiles."""
        return [tuple(column.counts.tolist()) for column in self._columns]

    @property
    def room(self) -> int:
        """How many of the rows the capacity allows to flag."""
        prevalence = self._model.classifier.reference_prevalence_
        return self._model.flag_capacity.max_flags(self.n_items, prevalence)

    @property
    def _allowed(self) -> str:
        if self._model.classifier.capacity.kind == "effort":
            return f"of as many rows of the calibration the budget paid for {self.room:,}"
        return f"the capacity allows {self.room:,}"

    @property
    def chances(self) -> tuple[float, float]:
        """The chances of as many flags or more, and of as few or fewer, if nothing has changed."""
        calibrations = self._model.classifier.calibrations_
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
        is_many = self.n_flagged > self.room and as_many < SIGNIFICANT
        if not is_many and as_few >= _UNLIKELY:
            return None
        kind, chance = ("many", as_many) if is_many else ("few", as_few)
        shown = f"{chance:.2%}" if chance >= 0.0001 else "below 0.01 %"
        stop = " To stop before too many are flagged, use: shortlist flag at_most=..."
        return Finding(
            f"{kind} flags",
            None,
            f"{'' if is_many else 'Only '}{self.n_flagged:,} of {self.n_items:,} rows are flagged, "
            f"and {self._allowed}. If these rows were like those of the calibration, the "
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
            self._add_texts(Counter(values.tolist()))
        elif (present := values[~np.isnan(values)]).size:
            self._add_numbers(present)

    def _add_texts(self, counted: Counter[str]) -> None:
        for value in set(counted) - {MISSING_CATEGORY, *self.profile.bins}:
            if value in self._unseen or len(self._unseen) < _MOST_VALUES:
                self._unseen[value] += counted[value]

    def _add_numbers(self, present: NDArray[np.float64]) -> None:
        """Count the two lowest and the two highest values of all rows so far, and keep some."""
        low, high = present.min(), present.max()
        inner = present[(present > low) & (present < high)]
        ends = {low, high} if inner.size == 0 else {low, high, inner.min(), inner.max()}
        for value in ends:
            self._ends[float(value)] += int((present == value).sum())
        kept = sorted(self._ends)
        kept = kept if len(kept) < 4 else [*kept[:2], *kept[-2:]]
        self._ends = Counter({value: self._ends[value] for value in kept})
        if self._sample.size < _MOST_SAMPLED:
            places = np.linspace(0, present.size - 1, min(present.size, _PER_CHUNK)).astype(int)
            self._sample = np.concatenate([self._sample, present[places]])

    def finding(self) -> Finding | None:
        """Return the first finding that holds."""
        finders: tuple[Callable[[], Finding | None], ...] = (self._constant,)
        if self.profile.kind == "categorical":
            finders += (self._unseen_values,)
        elif self.profile.bins and self.profile.kind != "boolean":
            finders += (self._unit, self._jump, self._stand_in)
        return next(filter(None, (find() for find in (*finders, self._missing))), None)

    # --- shared by the findings ---

    @property
    def _n(self) -> int:
        return int(self.counts.sum())

    def _shares(self, place: int) -> tuple[float, float]:
        """Return the shares of rows in one bin, before and now."""
        before = self.profile.counts
        return before[place] / sum(before), float(self.counts[place] / self._n)

    def _is_surprising(self, place: int, least_rise: float) -> bool:
        """Return whether a bin has more rows, by an exact test."""
        before, now = self._shares(place)
        n_before, n_here = sum(self.profile.counts), int(self.counts[place])
        law = (n_before + self._n, self.profile.counts[place] + n_here, self._n)
        return now - before >= least_rise and float(hypergeom.sf(n_here - 1, *law)) < _UNLIKELY

    def _tells(self, kind: str, message: str, *, is_serious: bool = True) -> Finding:
        return Finding(kind, self.profile.name, f"{self.profile.name!r} {message}", is_serious)

    # --- all kinds of columns ---

    def _missing(self) -> Finding | None:
        before, now = self._shares(-1)
        is_empty = now == 1
        if not self._is_surprising(-1, 0.0 if is_empty else _MORE_MISSING):
            return None
        rows = f"all {self._n:,} rows" if is_empty else f"{now:.1%} of the rows"
        return self._tells(
            "empty" if is_empty else "missing",
            f"is empty in {rows}; in the calibration it was in {before:.1%}. Check how the table "
            "was made, and fill the column, or fit a new model without it.",
        )

    def _constant(self) -> Finding | None:
        bins, counts = self.profile.bins, self.profile.counts
        values = [*self._ends, *self._unseen]
        if self.profile.kind == "categorical":
            values += [name for name, n in zip(bins, self.counts, strict=False) if n]
        usual = (max(counts) + 1) / (sum(counts) + 2)
        if len(values) != 1 or self._n < _FEWEST_ROWS or self.counts[-1]:
            return None
        if usual**self._n >= _UNLIKELY:
            return None
        return self._tells(
            "constant",
            f"is {shown_value(values[0], self.profile.kind)} in all {self._n:,} rows, and varied "
            "in the calibration. Check how the table was made.",
        )

    # --- numbers and dates ---

    def _unit(self) -> Finding | None:
        if self.profile.kind != "numeric" or self._sample.size < _FEWEST_ROWS:
            return None
        present = np.asarray(self.profile.counts[:-1], dtype=np.float64)
        shares = np.cumsum(present)[:-1] / max(present.sum(), 1)
        factor = _common_factor(np.asarray(self.profile.bins), self._sample, shares)
        if factor is None:
            return None
        size = max(factor, 1 / factor)
        ten = 10.0 ** round(np.log10(size))  # a unit is often a power of ten
        size = ten if max(size / ten, ten / size) < _NEARLY else size
        shown = f"{size:,.0f}" if size >= 100 else f"{size:.3g}"
        return self._tells(
            "unit",
            f"is about {shown} times as {'large' if factor > 1 else 'small'}: its values are like "
            "those of the calibration in another unit. Convert the column back, or fit a new "
            "model.",
        )

    def _jump(self) -> Finding | None:
        ends, kind = self.profile.bins, self.profile.kind
        if self._n < _FEWEST_ROWS:
            return None
        for place, side in ((0, "at or below"), (len(ends), "above")):
            if not self._is_surprising(place, _JUMP):
                continue
            if kind == "date" and place:  # later dates are only natural
                spread = max(ends[-1] - ends[0], _FAR_LATER)
                if np.median(self._sample) < ends[-1] + spread:
                    continue
            before, now = self._shares(place)
            return self._tells(
                "jump",
                f"lies {side} {shown_value(ends[min(place, len(ends) - 1)], kind)} in {now:.1%} of "
                f"the rows; in the calibration {before:.1%} did. Check "
                f"{'the date format' if kind == 'date' else 'the unit and the sign'}, convert the "
                "column back, or fit a new model.",
            )
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
        jumped = self._is_surprising(place, _MORE_MISSING)
        if not self._unseen or not (all_known or jumped):
            return None
        what = "values that the fit did not see" if all_known else "more rare or unseen values"
        return self._tells(
            "unseen",
            f"holds {what}, in {n_unseen:,} of {self._n:,} rows ({n_unseen / self._n:.1%}): "
            f"{self._listed()}. They count as rare categories. Correct the spelling, or fit a new "
            "model on recent rows.",
            is_serious=jumped or n_unseen > _SERIOUS_SHARE * self._n,
        )

    def _listed(self) -> str:
        known = {name.casefold(): name for name in self.profile.bins}
        shown = []
        for value, _ in self._unseen.most_common(_SHOWN):
            twin = known.get(value.casefold())
            shown.append(f"{value!r:.80}" + (f" (before: {twin!r:.80})" if twin else ""))
        more = len(self._unseen) - len(shown)
        return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _common_factor(
    ends: NDArray[np.float64], sample: NDArray[np.float64], shares: NDArray[np.float64]
) -> float | None:
    """Return by what factor all quantiles have grown; None if they have not, or differ."""
    quantiles = np.quantile(sample, shares)
    usable = (ends != 0) & (quantiles != 0) & (np.sign(ends) == np.sign(quantiles))
    if not usable.any() or usable.sum() < np.count_nonzero(ends) / 2:
        return None
    factors = quantiles[usable] / ends[usable]
    factor = float(np.median(factors))
    if max(factor, 1 / factor) < _LEAST_FACTOR:
        return None
    alike = np.abs(np.log(factors / factor)) < np.log(_SAME_FACTOR)
    return factor if alike.mean() >= 0.5 else None


def is_of_nines(value: float) -> bool:
    """Return whether a number often stands for a missing one: -1, 99, -999 and so on.

    >>> is_of_nines(-1.0), is_of_nines(9999.0), is_of_nines(98.0)
    (True, True, False)
    """
    return value == -1 or re.fullmatch(r"-?99+(\.0)?", repr(value)) is not None


def shown_value(value: Any, kind: str) -> str:
    """Return a number or a date as `na` takes it, or a category in quotes.

    >>> shown_value(-999.0, "numeric"), shown_value(19724.0, "date")
    ('-999', '2024-01-02')
    """
    if kind == "categorical":
        return f"{value!r:.80}"
    return date_text(value) if kind == "date" else f"{value:.15g}"


def date_text(days: float) -> str:
    """Return a number of days since 1970 as a date, with the time if there is one.

    Examples
    --------
    >>> date_text(19724.0)
    '2024-01-02'
    """
    moment = np.datetime64(round(days * 86_400), "s")
    return str(moment.astype("datetime64[D]") if days == int(days) else moment)
