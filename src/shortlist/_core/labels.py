"""Which label is the rare one, and where it stands."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["EstimatedShare", "count_labels", "find_rare", "rare_share", "rarest_label"]

Counted = tuple[NDArray[Any], NDArray[np.intp]]


def find_rare(
    y: ArrayLike, rare_label: Any = None, *, counted: Counted | None = None
) -> tuple[NDArray[np.bool_], Any]:
    """Return a mask of the rare items and the rare label itself.

    `None` takes the rarest label. A label that does not occur is an error: it is most often
    a slip of type, such as "1" for 1. The labels of `y` need not be `counted` again.
    """
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"Labels must be one-dimensional; got shape {y.shape}.")
    if rare_label is None:
        rare_label = rarest_label(y, counted=counted)
    is_rare = np.asarray(y == rare_label)
    if is_rare.shape != y.shape or not is_rare.any():
        labels = np.unique(y).tolist()
        shown = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
        raise ValueError(f"rare_label={rare_label!r} does not occur among the labels: {shown}.")
    # As it stands in y, whatever equal number or string was asked for.
    return is_rare, y[int(np.argmax(is_rare))].item() if y.dtype != object else rare_label


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


def rarest_label(y: NDArray[Any], *, counted: Counted | None = None) -> Any:
    """Return the label with the fewest items; equal counts go to the last in sorting order."""
    labels, counts = count_labels(y) if counted is None else counted
    labels = labels.astype(object)
    if labels.size < 2:
        raise ValueError(
            f"The rare class cannot be told from labels of {labels.size} class"
            f"{'' if labels.size == 1 else 'es'} ({labels.tolist()}); at least two are needed. "
            "Pass rare_label=..., or check how the labels were made."
        )
    return labels[labels.size - 1 - np.argmin(counts[::-1])]
