"""When a slot is worth using: a least value per unit of effort, or a least precision."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from numpy.typing import ArrayLike

from ._core.arrays import Doubles, Floats, Mask
from ._core.ranking import check_probabilities, check_scores
from ._core.ranking import expected_worth as worth_of
from ._core.validation import check_number
from ._core.work import check_efforts, check_values, reaches

__all__ = ["Worth", "expected_worth"]


def expected_worth(
    scores: ArrayLike, *, values: ArrayLike | None = None, efforts: ArrayLike | None = None
) -> Doubles:
    """Return what each item is expected to bring per unit of work: value * probability / effort.

    The list that finds most value is filled in this order. It is the score to pass to a controller
    with a budget of work.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        Probabilities of being rare.
    values, efforts : array-like of shape (n_items,), default=None
        As for :func:`~shortlist.select`; what is not given counts as 1.

    Returns
    -------
    ndarray of shape (n_items,)
        In the unit of the values per unit of the efforts.

    Examples
    --------
    >>> from shortlist.worth import expected_worth
    >>> expected_worth([0.5, 0.25], values=[100, 600], efforts=[20, 30]).tolist()
    [2.5, 5.0]
    """
    checked = check_scores(scores)
    check_probabilities(checked)
    return worth_of(
        checked, check_values(values, checked.size), check_efforts(efforts, checked.size)
    )


@dataclass(frozen=True, slots=True, repr=False)
class Worth:
    """What an item must be worth before a slot is used for it. Below that, slots stay empty.

    Wherever `worth=` is an argument, a plain number stands for ``Worth.value(number)``.

    Attributes
    ----------
    kind : {"value", "precision"}
        What is compared.
    least : float
        With what.

    Examples
    --------
    >>> from shortlist import Capacity, Worth, select
    >>> select([0.9, 0.4, 0.1], Capacity.count(2), worth=Worth.value(0.5)).tolist()
    [True, False, False]
    >>> half = Worth.precision(0.5)
    >>> select([0.9, 0.4, 0.1], Capacity.count(2), worth=half, common_scores=[0.3] * 20).tolist()
    [True, True, False]
    """

    kind: Literal["value", "precision"]
    least: float

    def __post_init__(self) -> None:
        if self.kind not in ("value", "precision"):
            raise ValueError(f"Worth kind must be 'value' or 'precision'; got {self.kind!r}.")
        least = float(check_number(f"Worth.{self.kind}(...)", self.least))
        if least < 0:
            raise ValueError(f"Worth.{self.kind}({self.least!r}) must not be negative.")
        if self.kind == "precision" and least > 1:
            raise ValueError(
                f"Worth.precision({self.least!r}) must be at most 1: it is the share of the flags "
                "that are rare."
            )
        object.__setattr__(self, "least", least)

    @classmethod
    def value(cls, least: Any) -> Worth:
        """Ask for an expected value (value times probability) per unit of effort.

        Parameters
        ----------
        least : number
            At least 0. What a unit of effort costs is a natural choice: a minute at 1.20 euros is
            not spent on an item that brings less per minute. Without values and efforts, each
            counts as 1, and this is a probability.
        """
        return cls("value", least)

    @classmethod
    def precision(cls, least: Any) -> Worth:
        """Ask for a share of the flags that is rare.

        Parameters
        ----------
        least : number
            Between 0 and 1. A list of a batch promises it on average; see
            :func:`~shortlist.select`. A calibrated threshold can promise it on unseen items; see
            :func:`~shortlist.calibrate_threshold`. Where scores of single items are judged, each
            must be at least this.
        """
        return cls("precision", least)

    def suffices(self, scores: Floats, values: Doubles | None, efforts: Doubles | None) -> Mask:
        """Return for each item whether it is worth a slot; scores must be probabilities.

        Parameters
        ----------
        scores : ndarray of shape (n_items,)
            Probabilities of being rare.
        values, efforts : ndarray of shape (n_items,) or None
            As for :func:`~shortlist.select`, checked.
        """
        check_probabilities(scores)
        if self.kind == "precision":
            return reaches(scores, self.least)
        return reaches(worth_of(scores, values, efforts), self.least)

    def __repr__(self) -> str:
        return f"Worth.{self.kind}({self.least:g})"


def check_worth(worth: Any) -> Worth | None:
    """Return what a slot must be worth; a plain number is a value per unit of effort."""
    if worth is None or isinstance(worth, Worth):
        return worth
    if isinstance(worth, Real) and not isinstance(worth, bool):
        return Worth.value(worth)
    raise TypeError(
        "worth must be a number (the least expected value per unit of effort) or "
        f"Worth.precision(0.2), say; got {worth!r} of type {type(worth).__name__}."
    )
