"""When a slot is worth using: a least value per unit of effort, or a least precision."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from ._core.arrays import Doubles, Floats, Mask
from ._core.validation import check_number
from ._core.work import check_probabilities, expected_worth, reaches

__all__ = ["Worth", "check_worth"]


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
    >>> select([0.9, 0.4, 0.1], Capacity.count(2), worth=Worth.precision(0.5)).tolist()
    [True, False, False]
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
        """Ask for a probability of being rare.

        Parameters
        ----------
        least : number
            Between 0 and 1. In a batch, each flagged item has at least this probability. A
            calibrated threshold can promise the precision of its flags on unseen items; see
            :func:`~shortlist.calibrate_threshold`.
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
        return reaches(expected_worth(scores, values, efforts), self.least)

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
