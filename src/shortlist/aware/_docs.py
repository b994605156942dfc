"""Parts of docstrings that all capacity-aware classifiers share, written once."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["shares_docs"]

Class = TypeVar("Class", bound=type)

_PARTS = {
    "{threshold_parameters}": """\
rare_label : label, default=None
        The label that is looked for; `None` takes the rarer one in `y`.
    prevalence : number, default=None
        Share of rare items that a multiple refers to; `None` takes the share in `y`.
    guarantee : {"plug-in", "expected", "confident", "next-batch"}, default="plug-in"
        What is promised about future flags; see :func:`~shortlist.calibrate_threshold`.
    confidence : float, default=0.95
        How surely, for the last two guarantees.
    ties : {"exclude", "hash"}, default="exclude"
        Items tied with the threshold are left out, or flagged in part by a hash.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices, and the key of the hash.""",
    "{threshold_attributes}": """\
classes_, rare_label_, prevalence_, capacity_fraction_, threshold_, calibration_
        As in :class:`~shortlist.CapacityClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.""",
}


def shares_docs(cls: Class) -> Class:
    """Fill the shared parts into the docstring of a class, where their names stand in braces."""
    for name, part in _PARTS.items():
        if cls.__doc__:  # None when Python strips docstrings
            cls.__doc__ = cls.__doc__.replace(name, part)
    return cls
