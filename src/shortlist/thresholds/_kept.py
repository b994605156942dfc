"""A calibration sample that does not grow: the scores that later capacities need, with counts.

Of more than 1,048,576 scores, a rule keeps those that matter: the highest half million, those next
to its threshold, and a sample of the others. With each it keeps how many scores come before it, of
all of them. A cut at a kept score is therefore exact; a capacity whose cut lies between two kept
scores gets the stricter one. So every capacity can be asked for later, no promise is weakened, and
at most a few flags in ten thousand are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Rows
from .._core.ranking import AFTER_ALL, BEFORE_ALL, Cut, cut_after
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._decisions import CalibratedThreshold
from ._described import calibrate_counts

if TYPE_CHECKING:
    from ._terms import CalibrationSample

__all__ = ["MOST_SCORES", "calibrate_kept", "representative", "thinned"]

#: A sample of at most so many scores is kept whole.
MOST_SCORES = 1 << 20
_TOP, _NEAR, _SAMPLED = 1 << 19, 1 << 16, 1 << 19
_CHUNK = 1 << 20
#: Scores, falling, with tie keys, rising: complex numbers have the order of the ranking.
_Places = NDArray[np.complex128]


def thinned(sample: CalibrationSample, k: int) -> CalibrationSample:
    """Return what to keep of a sample whose threshold is at place `k`.

    Parameters
    ----------
    sample : CalibrationSample
        Items in groups, in segments, with efforts or out of bag are all kept.
    k : int
        The number of scores above the threshold.

    Returns
    -------
    CalibrationSample
        The same one, if it is small or cannot be thinned.
    """
    if sample.scores.size <= MOST_SCORES or not _is_plain(sample):
        return sample
    places = _kept_places(sample, k)
    above = np.zeros(places.size + 1, dtype=np.int64)
    for chunk in _chunks(sample):
        above += np.bincount(np.searchsorted(places, chunk, "right"), minlength=above.size)
    return replace(
        sample,
        scores=(-places.real).astype(sample.scores.dtype),
        tie_keys=None if sample.tie_keys is None else places.imag.copy(),
        is_rare=None,
        before=np.cumsum(above)[:-1],
        n_items=sample.scores.size,
    )


def _is_plain(sample: CalibrationSample) -> bool:
    others = (sample.groups, sample.segments, sample.efforts, sample.before)
    is_weighed = sample.has_values or sample.out_of_bag
    return not is_weighed and all(each is None for each in others)


def _kept_places(sample: CalibrationSample, k: int) -> _Places:
    """Return the places to keep, in the order of the ranking."""
    n, keys = sample.scores.size, None if sample.tie_keys is None else sample.keys_of
    ends = [(-1, _TOP), (k - _NEAR, k + _NEAR)]
    limits = [[_as_place(cut_after(sample.scores, end, keys)) for end in pair] for pair in ends]
    kept = [_places(sample, np.arange(0, n, max(1, n // _SAMPLED)))]
    for chunk in _chunks(sample):
        kept += [chunk[(chunk >= low) & (chunk <= high)] for low, high in limits]
    return np.unique(np.concatenate(kept))


def _as_place(cut: Cut) -> complex:
    return complex(-cut.value, cut.key)


def _places(sample: CalibrationSample, rows: Rows | slice) -> _Places:
    scores = sample.scores[rows]
    places = np.zeros(scores.size, dtype=np.complex128)
    places.real = -scores + 0.0  # one zero
    if sample.tie_keys is not None:
        places.imag = sample.tie_keys[rows]
    return places


def _chunks(sample: CalibrationSample) -> Iterator[_Places]:
    for start in range(0, sample.scores.size, _CHUNK):
        yield _places(sample, slice(start, start + _CHUNK))


def calibrate_kept(
    sample: CalibrationSample, capacity: Capacity, options: dict[str, Any]
) -> CalibratedThreshold:
    """Calibrate a threshold on a thinned sample, with the options of `calibrate_scores`.

    The cut lies at a kept score; if the wanted one was not kept, at the next stricter one.
    """
    if capacity.kind == "effort" or options.get("worth") is not None:
        raise CapacityError(
            "A budget of work, values and a worth need every calibration score, and of "
            f"{sample.n_items:,} this model keeps {sample.scores.size:,}. Recalibrate it with them."
        )
    names = ("prevalence", "guarantee", "confidence", "seed", "n_batches")
    return calibrate_counts(
        sample.n_items,
        capacity,
        find_cut=lambda k: _cut_within(sample, k),
        ties="exclude" if sample.tie_keys is None else "hash",
        **{name: options[name] for name in names},
    )


def _cut_within(sample: CalibrationSample, k: int) -> tuple[Cut, int]:
    """Return the last kept place with at most `k` items before it, and how many there are."""
    assert sample.before is not None
    if k < 0:
        return BEFORE_ALL, 0
    if k >= sample.n_items:
        return AFTER_ALL, sample.n_items
    at = int(np.searchsorted(sample.before, k, side="right")) - 1
    key = 0.0 if sample.tie_keys is None else float(sample.tie_keys[at])
    return Cut(float(sample.scores[at]), key), int(sample.before[at])


def representative(sample: CalibrationSample) -> Floats:
    """Return the scores; of a thinned sample, 1,048,576 that are spread evenly over the ranking."""
    if sample.before is None:
        return sample.scores
    middles = (np.arange(MOST_SCORES) + 0.5) * (sample.n_items / MOST_SCORES)
    return sample.scores[np.searchsorted(sample.before, middles, side="right") - 1]
