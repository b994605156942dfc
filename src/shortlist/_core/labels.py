"""Which label is the rare one, where it stands, and how frequent it is."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Mask, Rows
from .ids import is_missing, values_of
from .intervals import clopper_pearson_lower

#: The largest balanced samples that scikit-learn asks every classifier to fit: with names as
#: labels, and with numbers.
SMALL_SAMPLE = {"names": 30, "numbers": 300}

Counted = tuple[NDArray[Any], NDArray[np.intp]]


def find_rare(
    y: ArrayLike,
    rare_label: Any = None,
    *,
    counted: Counted | None = None,
    on_tie: str = "error",
) -> tuple[NDArray[np.bool_], Any]:
    """Return a mask of the rare items and the rare label itself.

    `None` takes the rarest label. A label that does not occur is an error: it is most often
    a slip of type, such as "1" for 1. The labels of `y` need not be `counted` again. If several
    labels are equally rare, that is an error; with `on_tie="warn"`, a warning in small samples.
    """
    y = without_gaps(y)
    if y.ndim != 1:
        raise ValueError(f"Labels must be one-dimensional; got shape {y.shape}.")
    if rare_label is None:
        rare_label = rarest_label(y, counted=counted, on_tie=on_tie)
    is_rare = np.asarray(y == rare_label)
    if is_rare.shape != y.shape or not is_rare.any():
        labels = np.unique(y).tolist()
        shown = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
        raise ValueError(f"rare_label={rare_label!r} does not occur among the labels: {shown}.")
    # As it stands in y, whatever equal number or string was asked for.
    return is_rare, y[int(np.argmax(is_rare))].item() if y.dtype != object else rare_label


def without_gaps(y: Any) -> NDArray[Any]:
    """Return labels as an array; a missing one is an error, and no label of its own."""
    given, missing = values_of(y), np.zeros(0, dtype=np.intp)
    if given.dtype.kind in "Of":
        is_float = given.dtype.kind == "f"
        missing = np.flatnonzero(np.isnan(given) if is_float else [is_missing(v) for v in given])
    if missing.size:
        raise ValueError(
            f"Input y contains NaN or None: {missing.size:,} of {given.size:,} labels are missing, "
            f"the first at place {missing[0]:,}. Leave out the items without a label."
        )
    return np.asarray(y)


class EstimatedShare(Fraction):
    """A share counted in a sample, rather than stated: the next sample has another one.

    A capacity that is a multiple of an estimated share is at most everything; whether a sample
    has more rare items than the population is luck, and no mistake of the user.
    """


def rare_share(is_rare: NDArray[np.bool_]) -> EstimatedShare:
    """Return the share of rare items exactly: one of three is 1/3, which no decimal is."""
    return EstimatedShare(int(np.count_nonzero(is_rare)), is_rare.size)


def count_labels(y: NDArray[Any]) -> Counted:
    """Return the labels in sorting order, and how often each occurs."""
    # Asked for counts, NumPy sorts; otherwise it hashes, which takes ten times as long.
    return np.unique(y, return_counts=True)


def rarest_label(y: NDArray[Any], *, counted: Counted | None = None, on_tie: str = "error") -> Any:
    """Return the label with the fewest items; a tie is an error, because either may be meant.

    scikit-learn's checks fit small balanced samples, of up to `SMALL_SAMPLE` items. With
    `on_tie="warn"`, estimators take the last label of these in sorting order, and say so.
    """
    labels, counts = count_labels(y) if counted is None else counted
    labels = labels.astype(object)
    if labels.size < 2:
        raise ValueError(
            f"The rare class cannot be found among labels of {labels.size} class"
            f"{'' if labels.size == 1 else 'es'} ({labels.tolist()}); at least two are needed. "
            "Pass rare_label=..., or check how the labels were made."
        )
    rarest = np.flatnonzero(counts == counts.min())
    if rarest.size > 1:
        tie = (
            f"The labels {labels[rarest[0]]!r} and {labels[rarest[-1]]!r} are equally rare, with "
            f"{int(counts.min())} items each. Say which one to look for with rare_label=..."
        )
        kind = "names" if isinstance(labels[0], str) else "numbers"
        if on_tie != "warn" or y.size > SMALL_SAMPLE[kind]:
            raise ValueError(tie)
        warnings.warn(f"{tie} {labels[rarest[-1]]!r} is taken.", UserWarning, stacklevel=5)
    return labels[rarest[-1]]


class ReferencePrevalence(NamedTuple):
    """The prevalence that a multiple refers to: as stated, or else the share in labelled items.

    `counts` are rare and all labelled items; `independent` those of one item of each group, which
    a lower bound rests on.
    """

    stated: Any = None
    counts: tuple[int, int] | None = None
    independent: tuple[int, int] = (0, 1)

    @classmethod
    def of_labels(
        cls, is_rare: Mask | None, groups: Rows | None = None, *, seed: int = 0
    ) -> ReferencePrevalence:
        """Count the rare items, and those of one item of each group, drawn by lot."""
        if is_rare is None:
            return cls()
        drawn = is_rare
        if groups is not None:
            shuffled = np.random.default_rng(seed % 2**64).permutation(groups.size)
            drawn = is_rare[shuffled[np.unique(groups[shuffled], return_index=True)[1]]]
        of_all, of_drawn = ((int(np.count_nonzero(each)), each.size) for each in (is_rare, drawn))
        return cls(None, of_all, of_drawn)

    @property
    def share(self) -> EstimatedShare | None:
        """The share of rare items among the labelled ones, exactly; None without labels."""
        return None if self.counts is None else EstimatedShare(*self.counts)

    @property
    def value(self) -> Any:
        """The prevalence, or None where it is not known."""
        return self.share if self.stated is None else self.stated

    @property
    def is_estimated(self) -> bool:
        """Whether the prevalence was counted in labels, and not stated."""
        return self.stated is None and self.counts is not None

    def lower_bound(self, *, error: float) -> EstimatedShare:
        """Return what the share in the population exceeds, except with probability `error`."""
        return EstimatedShare(float(clopper_pearson_lower(*self.independent, error=error)))
