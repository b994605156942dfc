"""Errors and warnings of shortlist.

::

    ValueError
    └── CapacityError                    a capacity that cannot be kept or understood
        └── CapacityTypeError            ... because it is not a number at all (a TypeError too)
    UserWarning
    └── InsufficientCalibrationWarning   too few scores for the guarantee: nothing is flagged
"""

__all__ = ["CapacityError", "CapacityTypeError", "InsufficientCalibrationWarning"]


class CapacityError(ValueError):
    """A capacity is impossible, or not defined in the place where it is used."""


class CapacityTypeError(CapacityError, TypeError):
    """A capacity was given as a bool, a string or something else that is not a number."""


class InsufficientCalibrationWarning(UserWarning):
    """The calibration sample is too small for the guarantee, so nothing will be flagged."""
