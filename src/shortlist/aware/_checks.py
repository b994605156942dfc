"""Checks on the numbers that capacity-aware classifiers are given."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from .._core.validation import check_number

__all__ = ["check_count", "check_positive", "check_share"]


def check_count(name: str, value: Any, *, at_least: int = 1) -> None:
    """Complain about what is not a whole number, or too small."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}; got {value!r}.")


def check_positive(name: str, value: Any) -> None:
    """Complain about what is not greater than 0."""
    if not float(check_number(name, value)) > 0:
        raise ValueError(f"{name} must be greater than 0; got {value!r}.")


def check_share(name: str, value: Any) -> None:
    """Complain about a share of held-out data that leaves nothing on one side."""
    if not 0 < float(check_number(name, value)) < 1:
        raise ValueError(
            f"{name}={value!r} is the share of the data held out for the threshold, and must "
            "lie strictly between 0 and 1."
        )
