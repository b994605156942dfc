"""How much can be followed up: a count, a fraction, a multiple of the prevalence, or an effort."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from ._core.arrays import Doubles
from ._core.formatting import number, stated_percent
from ._core.labels import EstimatedShare
from ._core.ranking import are_equal
from ._core.validation import check_number
from ._core.work import check_max_effort
from .exceptions import CapacityError, CapacityTypeError

__all__ = ["Capacity"]

Kind = Literal["multiple", "fraction", "count", "effort"]


@dataclass(frozen=True, slots=True, repr=False)
class Capacity:
    """A limit on the number of items that may be flagged, or on the work that they make.

    Make one with :meth:`count`, :meth:`fraction` or :meth:`multiple`; the three say the same
    thing in different units. Where cases take different amounts of work, :meth:`effort` is a budget
    of it. A capacity is immutable and hashable. It can be a parameter of an estimator and a value
    in a parameter grid.

    All arithmetic reads numbers as they are written in decimal: 0.29 of 100 items is 29, where
    binary floating point would give 28.

    Attributes
    ----------
    kind : {"multiple", "fraction", "count", "effort"}
        The unit.
    value : int, float or Fraction
        The number in that unit.
    per : int or None
        For a count or an effort, the number of items it refers to.

    Examples
    --------
    >>> from shortlist import Capacity
    >>> Capacity.fraction(0.29).max_flags(100)
    29
    >>> Capacity.multiple(3).max_flags(10_000, prevalence=0.02)
    600
    >>> Capacity.count(600, per=10_000).as_fraction()
    0.06
    >>> Capacity.count(50)
    Capacity.count(50)
    """

    kind: Kind
    value: int | float | Fraction
    per: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("multiple", "fraction", "count", "effort"):
            raise CapacityError(
                "Capacity kind must be 'multiple', 'fraction', 'count' or 'effort'; got "
                f"{self.kind!r}."
            )
        if self.kind == "count":
            check_whole("Capacity.count", self.value)
        else:
            _check_rate(self.kind, self.value)
        if self.per is not None:
            _check_per(self.kind, self.value, self.per)
        # Plain numbers compare, print and serialise alike, whatever library they came from.
        object.__setattr__(self, "value", _plain(self.value))
        if self.per is not None:
            object.__setattr__(self, "per", operator.index(self.per))

    @classmethod
    def multiple(cls, b: Any) -> Capacity:
        """Flag at most `b` items for each rare item there is: the paper's b.

        Parameters
        ----------
        b : number
            At least 0. `b = 1` allows as many flags as there are rare items, `b = 3` three times
            as many. Turning it into a number of flags needs the prevalence.

        Examples
        --------
        >>> Capacity.multiple(2).as_fraction(prevalence=0.01)
        0.02
        """
        return cls("multiple", b)

    @classmethod
    def fraction(cls, c: Any) -> Capacity:
        """Flag at most the fraction `c` of all items.

        Parameters
        ----------
        c : number
            Between 0 and 1.

        Examples
        --------
        >>> Capacity.fraction(0.072).max_flags(375)
        27
        """
        return cls("fraction", c)

    @classmethod
    def count(cls, k: Any, per: Any = None) -> Capacity:
        """Flag at most `k` items, of those at hand or for every `per` items.

        Parameters
        ----------
        k : int
            A whole number, at least 0.
        per : int, default=None
            The number of items that `k` refers to. `None` means "whatever arrives in one batch":
            enough for :func:`~shortlist.select`, too little to calibrate a threshold.

        Examples
        --------
        >>> Capacity.count(50).max_flags(1_000), Capacity.count(50).max_flags(20)
        (50, 20)
        >>> Capacity.count(50, per=1_000).max_flags(500)
        25
        """
        return cls("count", k, per)

    @classmethod
    def effort(cls, budget: Any, per: Any = None) -> Capacity:
        """Spend at most `budget` units of work, on the items at hand or for every `per` items.

        The unit is yours: minutes, hours, euros. Say how much of it each item takes with
        ``efforts=...`` wherever you pass this capacity.

        Parameters
        ----------
        budget : number
            At least 0, in the unit of the efforts.
        per : int, default=None
            The number of items, flagged or not, that the budget refers to. `None` means "whatever
            arrives in one batch": enough for :func:`~shortlist.select`, too little to calibrate a
            threshold.

        Examples
        --------
        Eight hours, in minutes; the same for every 10,000 items:

        >>> Capacity.effort(480).max_effort(1_000)
        Fraction(480, 1)
        >>> Capacity.effort(480, per=10_000).max_effort(5_000)
        Fraction(240, 1)
        """
        return cls("effort", budget, per)

    @classmethod
    def for_detection(cls, detection: Any, curve: Any) -> Capacity:
        """Follow up as many items as it surely takes to find a share of the rare ones.

        Parameters
        ----------
        detection : number
            The share of the rare items to find, above 0 and at most 1.
        curve : CapacityCurve
            Made by :func:`~shortlist.capacity_curve` from scores of items that the model has not
            seen. Its confidence is that of this promise.

        Examples
        --------
        Forty rare items, all at the top of a thousand. To find half of them for sure takes
        a little more than twenty reviews for every thousand items:

        >>> import numpy as np
        >>> from shortlist import Capacity, capacity_curve
        >>> curve = capacity_curve(np.arange(1_000) < 40, -np.arange(1_000), rare_label=True)
        >>> Capacity.for_detection(0.5, curve)
        Capacity.fraction(0.035)
        """
        share = curve.needed_for(detection).high
        exactly = Fraction(share).limit_denominator(curve.n_items)
        # Written in decimal, a share such as a third is too small for one of the reviews.
        return cls.fraction(exactly if exact(share) < exactly else share)

    def as_ratio(self, prevalence: Any = None) -> Fraction:
        """Return the capacity as an exact fraction of all items, a :class:`fractions.Fraction`.

        Parameters
        ----------
        prevalence : number, default=None
            Share of rare items; needed by a multiple, ignored otherwise. A
            :class:`~fractions.Fraction` such as ``Fraction(1, 3)`` is taken exactly. A multiple
            of a *stated* prevalence must not exceed 1. A multiple of one that the library has
            counted in labels is capped at 1, because luck must not decide whether it is valid.

        Examples
        --------
        >>> from fractions import Fraction
        >>> Capacity.multiple(2).as_ratio(prevalence=Fraction(1, 3))
        Fraction(2, 3)
        """
        if self.kind == "fraction":
            return exact(self.value)
        if self.kind == "count":
            if self.per is None:
                raise CapacityError(
                    f"{self!r} is a number of flags, but a rate is needed here. "
                    f"Say how many items it refers to, as in Capacity.count({self.value}, "
                    "per=10_000), or use Capacity.fraction(...)."
                )
            return Fraction(int(self.value), self.per)
        if self.kind == "effort":
            raise CapacityError(
                f"{self!r} is a budget of work, and a number of flags is needed here. Use "
                "Capacity.count(...), Capacity.fraction(...) or Capacity.multiple(...); budgets of "
                "work are kept by select, calibrate_threshold, CapacityClassifier and "
                "BudgetController."
            )
        if prevalence is None:
            raise CapacityError(
                f"{self!r} counts in units of the prevalence, which is unknown here. Use "
                "Capacity.fraction(...) or Capacity.count(..., per=...), or pass prevalence=..."
            )
        ratio = exact(self.value) * check_prevalence(prevalence)
        if ratio > 1 and isinstance(prevalence, EstimatedShare):
            return Fraction(1)
        if ratio > 1:
            raise CapacityError(
                f"{self!r} at prevalence {float(prevalence):.6g} would flag {float(ratio):.6g} of "
                "all items. The multiple can be at most 1 / prevalence."
            )
        return ratio

    def as_fraction(self, prevalence: Any = None) -> float:
        """Return the capacity as a fraction of all items.

        Parameters
        ----------
        prevalence : number, default=None
            Share of rare items; needed by a multiple, ignored otherwise.

        Examples
        --------
        >>> Capacity.multiple(3).as_fraction(prevalence=0.02)
        0.06
        """
        return float(self.as_ratio(prevalence))

    def max_flags(self, n: Any, prevalence: Any = None) -> int:
        """Return the whole number of flags allowed among `n` items: rounded down, exactly.

        Parameters
        ----------
        n : int
            Number of items.
        prevalence : number, default=None
            Share of rare items; needed by a multiple, ignored otherwise.

        Examples
        --------
        >>> Capacity.fraction(0.5).max_flags(3)
        1
        """
        n = check_whole("n", n)
        if self.kind == "count" and self.per is None:
            return min(int(self.value), n)
        return math.floor(self.as_ratio(prevalence) * n)

    def max_effort(self, n: Any) -> Fraction:
        """Return the work that may be spent on `n` items, flagged or not: an exact fraction.

        Parameters
        ----------
        n : int
            Number of items.

        Examples
        --------
        >>> Capacity.effort(0.5, per=3).max_effort(1)
        Fraction(1, 6)
        """
        n = check_whole("n", n)
        if self.kind != "effort":
            raise CapacityError(
                f"{self!r} limits the number of flags, not their work. Use Capacity.effort(...)."
            )
        return exact(self.value) if self.per is None else exact(self.value) * n / self.per

    def effort_per_item(self) -> Fraction:
        """Return the work that may be spent per item, flagged or not: an exact fraction.

        Examples
        --------
        >>> Capacity.effort(480, per=10_000).effort_per_item()
        Fraction(6, 125)
        """
        if self.kind == "effort" and self.per is None:
            raise CapacityError(
                f"{self!r} is a budget for one batch, but a rate is needed here. Say how many "
                f"items it refers to, as in Capacity.effort({self.value}, per=10_000)."
            )
        return self.max_effort(1)

    def as_flags(self, effort: Any) -> Capacity:
        """Return a budget of work as a number of flags that take the same effort each, exactly.

        Any other capacity is returned as it is.

        Parameters
        ----------
        effort : number
            Greater than 0, in the unit of the budget.

        Examples
        --------
        >>> Capacity.effort(480).as_flags(50), Capacity.effort(480, per=1_000).as_flags(20)
        (Capacity.count(9), Capacity.count(24, per=1000))
        """
        if self.kind != "effort":
            return self
        each = exact(check_number("effort", effort))
        if each <= 0:
            raise CapacityError(f"effort must be greater than 0; got {effort!r}.")
        most = math.floor(exact(self.value) / each)
        return Capacity.count(most if self.per is None else min(most, self.per), per=self.per)

    def to_json(self) -> dict[str, Any]:
        """Return the capacity as a plain dict, in the form that every file and state uses.

        Returns
        -------
        dict
            With "kind", "value" and "per". A value that no decimal number equals, such as
            ``Fraction(1, 3)``, is a text.

        Examples
        --------
        >>> Capacity.count(50, per=1_000).to_json()
        {'kind': 'count', 'value': 50, 'per': 1000}
        """
        value = str(self.value) if isinstance(self.value, Fraction) else self.value
        return {"kind": self.kind, "value": value, "per": self.per}

    @classmethod
    def from_json(cls, form: Any) -> Capacity:
        """Read a capacity that :meth:`to_json` has written; anything else is a CapacityError.

        Parameters
        ----------
        form : dict
            With "kind", "value" and "per".

        Examples
        --------
        >>> Capacity.from_json({"kind": "fraction", "value": "1/3", "per": None})
        Capacity.fraction(1/3)
        """
        if not isinstance(form, dict) or form.keys() != {"kind", "value", "per"}:
            raise CapacityError(
                "A capacity in JSON has the form {'kind': 'count', 'value': 50, 'per': 1000}; got "
                f"{form!r}."
            )
        value = form["value"]
        try:
            return cls(
                form["kind"], Fraction(value) if isinstance(value, str) else value, form["per"]
            )
        except (ValueError, ZeroDivisionError) as error:
            raise CapacityError(f"{form!r} is not a capacity: {error}") from error

    def __repr__(self) -> str:
        per = "" if self.per is None else f", per={self.per}"
        return f"Capacity.{self.kind}({self.value}{per})"


def exact(number: Any) -> Fraction:
    """Read a number as it is written in decimal: 0.29 is 29/100, not its binary neighbour."""
    return number if isinstance(number, Fraction) else Fraction(str(number))


def check_capacity(capacity: Any) -> Capacity:
    """Return `capacity`, or say how to write what was probably meant."""
    if isinstance(capacity, Capacity):
        return capacity
    raise CapacityTypeError(
        f"capacity must be a Capacity; got {capacity!r}. Write Capacity.count(50, per=1_000), "
        "Capacity.fraction(0.05), Capacity.multiple(2), Capacity.count(50) for a single batch, or "
        "Capacity.effort(480) for a budget of work."
    )


def capacity_in_words(capacity: Capacity, *, unit: str = "units", cases: str = "cases") -> str:
    """Describe how many cases can be followed up, or how much work may be spent on them."""
    value, per = float(capacity.value), f"{capacity.per:,}" if capacity.per else ""
    return {
        "count": f"{value:,.0f} of every {per} {cases}" if per else f"{value:,.0f} {cases}",
        "fraction": f"{stated_percent(value)} of all {cases}",
        "multiple": f"{number(value, 12)} follow-ups for each rare case",
        "effort": f"{number(value, 12)} {unit}" + (f" for every {per} {cases}" if per else ""),
    }[capacity.kind]


def _plain(value: Any) -> int | float | Fraction:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    # float(str(x)) keeps the decimal that a float32 shows: 0.29, not 0.28999999165534973.
    return float(str(value))


def _check_rate(kind: str, value: Any) -> None:
    try:
        value = check_number(f"Capacity.{kind}(...)", value)
    except TypeError as error:
        raise CapacityTypeError(str(error)) from None
    if value < 0:
        raise CapacityError(f"Capacity.{kind}({value!r}) must not be negative.")
    if kind == "fraction" and exact(value) > 1:
        raise CapacityError(
            f"Capacity.fraction({value!r}) must be at most 1. For a number of items use "
            f"Capacity.count({value!r}); for {value!r} % use Capacity.fraction({value / 100:.12g})."
        )


def _check_per(kind: str, value: Any, per: Any) -> None:
    if kind not in ("count", "effort"):
        raise CapacityError(f"per= belongs to Capacity.count and Capacity.effort, not to {kind!r}.")
    per = check_whole("per", per)
    if per == 0 or (kind == "count" and value > per):
        raise CapacityError(
            f"Capacity.{kind}({value!r}, per={per}) must refer to at least one item, and must not "
            "flag more items than there are."
        )


def check_whole(name: str, value: Any) -> int:
    """Return a whole number that is not negative, of any type that has whole numbers."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        whole = operator.index(value)
    except TypeError:
        raise CapacityTypeError(
            f"{name} must be a whole number such as 50; got {value!r} of type "
            f"{type(value).__name__}."
        ) from None
    if whole < 0:
        raise CapacityError(f"{name} must not be negative; got {whole}.")
    return whole


def check_prevalence(prevalence: Any) -> Fraction:
    """Return the prevalence as an exact fraction between 0 and 1."""
    check_number("prevalence", prevalence)
    ratio = exact(prevalence)
    if not 0 <= ratio <= 1:
        raise ValueError(f"prevalence must lie between 0 and 1; got {prevalence!r}.")
    return ratio


def check_efforts_suit(capacity: Capacity, efforts: Doubles | None) -> None:
    """Raise an error if a budget comes without efforts, or efforts come without a budget."""
    if capacity.kind == "effort" and efforts is None:
        raise CapacityError(
            f"{capacity!r} is a budget of work. Pass efforts=..., the work that each item takes, "
            "or limit the number of flags: Capacity.count(...)."
        )
    if (
        capacity.kind != "effort"
        and efforts is not None
        and not (are_equal(efforts) and efforts[:1].sum() == efforts[:1].size)
    ):
        raise CapacityError(
            f"efforts were given, but {capacity!r} limits the number of flags, whatever they take. "
            "Use Capacity.effort(480), say, for a budget in the unit of the efforts."
        )


def largest_effort(capacity: Capacity, efforts: Doubles | None, max_effort: Any) -> float:
    """Return what no item takes more of; efforts that differ need a stated bound."""
    check_efforts_suit(capacity, efforts)
    assert efforts is not None
    capacity.effort_per_item()  # raises an error for a budget without `per`
    if max_effort is not None:
        return check_max_effort(max_effort, efforts)
    if not are_equal(efforts):
        raise ValueError(
            "Efforts that differ need max_effort=..., the largest effort that any item can take, "
            f"in future too (the largest here is {efforts.max():g}). A promise about effort "
            "without such a bound is impossible: a single case could take everything. If work is "
            "cut off after some hours, that is the bound."
        )
    return float(efforts[0])
