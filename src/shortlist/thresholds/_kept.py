"""A calibration sample that does not grow: the scores that later capacities need, with counts.

Of more than 1,048,576 scores, a rule keeps those that matter: the highest half million, those next
to its threshold, and a sample of the others. With each it keeps how many scores come before it, of
all of them. A cut at a kept score is therefore exact; a capacity whose cut lies between two kept
scores gets the stricter one. So every capacity can be asked for later, no promise is weakened, and
at most a few flags in ten thousand are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Floats, Mask
from .._core.ranking import AFTER_ALL, BEFORE_ALL, Cut
from ..capacity import Capacity
from ..exceptions import CapacityError
from ._decisions import CalibratedThreshold
from ._described import calibrate_counts

if TYPE_CHECKING:
    from ._terms import CalibrationSample

__all__ = ["MOST_SCORES", "Blocks", "calibrate_kept", "kept_of", "representative", "thinned"]

#: A sample of at most so many scores is kept whole.
MOST_SCORES = 1 << 20
_TOP, _NEAR, _SAMPLED = 1 << 19, 1 << 16, 1 << 19
_CHUNK = 1 << 20
_ERRORS = 10.0  # standard errors of a guess
#: Scores, falling, with tie keys, rising: complex numbers have the order of the ranking.
_Places = NDArray[np.complex128]
#: Returns blocks of scores, and of tie keys or None.
Blocks = Callable[[], Iterator[tuple[Floats, Any]]]


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
    n = sample.scores.size
    if n <= MOST_SCORES or not _is_plain(sample):
        return sample

    def blocks() -> Iterator[tuple[Floats, Any]]:
        for start in range(0, n, _CHUNK):
            rows = slice(start, start + _CHUNK)
            yield sample.scores[rows], None if sample.tie_keys is None else sample.tie_keys[rows]

    kept, _ = kept_of(blocks, n, k)
    return replace(sample, **kept, is_rare=None)


def _is_plain(sample: CalibrationSample) -> bool:
    others = (sample.groups, sample.segments, sample.efforts, sample.before)
    is_weighed = sample.has_values or sample.out_of_bag
    return not is_weighed and all(each is None for each in others)


def kept_of(blocks: Blocks, n_items: int, k: int) -> tuple[dict[str, Any], Mask]:
    """Return what to keep of many scores whose threshold is at place `k`, in a few passes.

    Parameters
    ----------
    blocks : callable
        Returns blocks of scores and of tie keys, which are None where ties are left out.
    n_items, k : int
        Number of scores, and of those above the threshold.

    Returns
    -------
    (dict, ndarray of bool)
        Fields of a :class:`CalibrationSample`, and which of the kept scores tie with another one.
    """
    places = _kept_places(blocks, n_items, k)
    values, codes = np.unique(places.real, return_inverse=True)
    before, tied = np.zeros(places.size + 1, np.int64), np.zeros(values.size + 1, np.int64)
    for scores, keys in blocks():
        block = _places(scores, keys)
        before += np.bincount(np.searchsorted(places, block, "right"), minlength=before.size)
        at = np.searchsorted(values, block.real)
        at[values.take(at, mode="clip") != block.real] = values.size
        tied += np.bincount(at, minlength=tied.size)
    kept = {
        "scores": (-places.real).astype(scores.dtype),
        "tie_keys": None if keys is None else places.imag.copy(),
        "before": np.cumsum(before)[:-1],
        "n_items": n_items,
    }
    return kept, tied[codes] > 1


def _kept_places(blocks: Blocks, n: int, k: int) -> _Places:
    """Return the places to keep, in the order of the ranking."""
    sample = np.sort(_sampled(blocks, n))
    limits = [
        [_place_at(blocks, sample, n, rank) for rank in ends]
        for ends in ((-1, _TOP), (k - _NEAR, k + _NEAR))
    ]
    kept = [sample]
    for scores, keys in blocks():
        block = _places(scores, keys)
        kept += [block[(block >= low) & (block <= high)] for low, high in limits]
    return np.unique(np.concatenate(kept))


def _sampled(blocks: Blocks, n: int) -> _Places:
    step, start, drawn = max(1, n // _SAMPLED), 0, []
    for scores, keys in blocks():
        drawn.append(_places(scores, keys)[-start % step :: step])
        start += scores.size
    return np.concatenate(drawn)


def _place_at(blocks: Blocks, sample: _Places, n: int, rank: int) -> Any:
    """Return the place of the given rank; the sample guesses two places around it."""
    if rank < 0:
        return complex(-np.inf, 0)
    if rank >= n:
        return complex(np.inf, 1)
    middle, errors = rank / n * sample.size, _ERRORS
    while True:
        room = errors * np.sqrt(middle * (1 - rank / n) + 1)
        first, last = int(middle - room), int(middle + room) + 1
        low = sample[first] if first >= 0 else complex(-np.inf, -1)
        high = sample[last] if last < sample.size else complex(np.inf, 2)
        above, inside = 0, [sample[:0]]
        for scores, keys in blocks():
            block = _places(scores, keys)
            above += int(np.count_nonzero(block < low))
            inside.append(block[(block >= low) & (block <= high)])
        between = np.concatenate(inside)
        if above <= rank < above + between.size:
            return np.partition(between, rank - above)[rank - above]
        errors *= 10  # the guess was wrong, which hardly ever happens


def _places(scores: Floats, keys: Any) -> _Places:
    places = np.zeros(scores.size, dtype=np.complex128)
    places.real = -scores + 0.0  # one zero
    if keys is not None:
        places.imag = keys
    return places


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
