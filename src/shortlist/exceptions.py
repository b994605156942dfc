"""Errors and warnings of shortlist.

::

    ValueError
    ├── CapacityError                    a capacity that cannot be kept or understood
    │   └── CapacityTypeError            ... because it is not a number at all (a TypeError too)
    ├── TableError                       a table that cannot be read, or does not fit its model
    ├── TooManyFlagsError                more rows would be flagged than a limit allows
    ├── ModelFileError                   a file that is not a model, or not one for this version
    └── StateFileError                   a saved state that is damaged, in use, or of another stream
    UserWarning
    ├── InsufficientCalibrationWarning   too few scores to flag anything for sure
    └── TableNote                        how something in a table was read, or left out

Messages name a parameter as one passes it in Python: ``rare=...``, ``n_batches=5``,
``Capacity.fraction(0.06)``. The command line shows the option in its place.
"""

__all__ = [
    "CapacityError",
    "CapacityTypeError",
    "InsufficientCalibrationWarning",
    "ModelFileError",
    "StateFileError",
    "TableError",
    "TableNote",
    "TooManyFlagsError",
]


class CapacityError(ValueError):
    """A capacity is impossible, or not defined in the place where it is used."""


class CapacityTypeError(CapacityError, TypeError):
    """A capacity was given as a bool, a string or something else that is not a number."""


class TableError(ValueError):
    """A table cannot be read, has no usable labels, or does not fit the model it is meant for."""


class TooManyFlagsError(ValueError):
    """More rows would be flagged than the limit that was given; nothing was written."""


class ModelFileError(ValueError):
    """A file is not a model of shortlist, is damaged, or was written by another version."""


class StateFileError(ValueError):
    """The saved state of a stream is damaged, in use, or belongs to another stream."""


class InsufficientCalibrationWarning(UserWarning):
    """Too few items to flag any for sure, or too few rare ones to divide them at the first draw."""


class TableNote(UserWarning):
    """Something in a table was read in one of several possible ways, or left out."""
