"""Probes: slots given to cases below the cut, drawn at random, so that their outcomes count."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import Doubles, Floats, Mask, Rows, TieKeys
from .ranking import keys_within, rank
from .validation import check_number, warn_user

#: Why a case is on the list, or not.
BY_SCORE, PROBE, NOT_SELECTED = "score", "probe", "not selected"
PROBE_WITHOUT_SLOT = "probe without a slot"
_LONGEST_KEY = 64  # bytes
_MOST_PARTS = 4  # of different expected loss
_OWN_KEY = 0x70726F6265  # so that draws do not depend on the order of tied scores


class Probed(NamedTuple):
    """A list with probes: what is on it, which are probes, and how likely each was drawn."""

    flagged: Mask
    is_probe: Mask
    probabilities: Floats


def uniform_number(key: str, id: str | int | None, place: int) -> float:
    """Return a number in [0, 1): a keyed hash of an id, or else of a place in the stream.

    The same id has the same number again, and it cannot be predicted without the key.
    """
    if id is None:
        text = b"place %d" % place
    elif isinstance(id, str):  # whole numbers and texts differ
        text = b"text " + id.encode("utf-8", "surrogatepass")
    else:
        text = b"whole %d" % id
    secret = key.encode("utf-8", "surrogatepass")
    if len(secret) > _LONGEST_KEY:
        secret = hashlib.blake2b(secret).digest()
    digest = hashlib.blake2b(text, digest_size=8, key=secret).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def check_probe(probe: Any) -> Fraction:
    """Return the share of the slots that goes to probes as an exact number from 0 to 1."""
    number = check_number("probe", probe)
    share = Fraction(number if isinstance(number, Rational) else str(float(number)))
    if not 0 <= share <= 1:
        raise ValueError(f"probe is a share of the slots, from 0 to 1; got {probe!r}.")
    return share


def probe_seed(seed: int) -> int:
    """Return the key of the draw that belongs to the key of the ties."""
    return (seed ^ _OWN_KEY) % 2**64


def expected_losses(probabilities: Floats, values: Doubles) -> Doubles:
    """Return what is lost on average with each case that is rare and not listed.

    As much by the base rate as by the model, which may be wrong about a large value.
    """
    return values * (probabilities + probabilities.sum() / max(probabilities.size, 1))


def draw_probes(
    flagged: Mask,
    scores: Floats,
    tie_keys: TieKeys,
    draw_keys: TieKeys,
    probe: Fraction,
    *,
    groups: NDArray[np.intp] | None = None,
    losses: Doubles | None = None,
) -> Probed:
    """Give a share of the slots to cases below the cut, and say how likely each was drawn.

    Parameters
    ----------
    flagged : ndarray of bool
        The list without probes. It keeps its length, in each group.
    scores : ndarray
        The scores that ranked it.
    tie_keys : TieKeys
        The order of tied scores.
    draw_keys : TieKeys
        Uniform numbers of the cases that draw the probes: the smallest are drawn.
    probe : Fraction
        The share of the slots, rounded down to whole probes.
    groups : ndarray of int, default=None
        The group of each case; the slots of a group go to its own cases.
    losses : ndarray, default=None
        What is lost on average with each case; where more is at stake, more are drawn.

    Returns
    -------
    Probed
    """
    result = Probed(flagged.copy(), np.zeros(flagged.size, bool), np.where(flagged, 1.0, 0.0))
    codes = np.zeros(flagged.size, np.intp) if groups is None else groups

    for group in np.unique(codes[flagged]):
        own = np.flatnonzero(codes == group)
        listed = own[flagged[own]]
        listed = listed[rank(scores[listed], keys_within(tie_keys, listed))[0]]
        n_probes = int(probe * listed.size)  # the last slots are taken away
        result.flagged[listed[listed.size - n_probes :]] = False
        below = own[~result.flagged[own]]
        for part, n_drawn in _parts(below, n_probes, losses, tie_keys):
            drawn = part[np.argsort(draw_keys(part), kind="stable")[:n_drawn]]
            result.flagged[drawn] = result.is_probe[drawn] = True
            result.probabilities[part] = n_drawn / part.size
    if probe > 0 and flagged.any() and (n_never := np.count_nonzero(result.probabilities == 0)):
        warn_user(
            f"A share of {float(probe):g} of {int(flagged.sum())} slots is less than one probe for "
            f"{n_never:,} cases below the cut: what is missed among them stays unknown. Raise "
            "probe=..., or leave it out.",
            UserWarning,
        )
    return result


def _parts(
    below: Rows, n_probes: int, losses: Doubles | None, tie_keys: TieKeys
) -> list[tuple[Rows, int]]:
    """Divide cases into parts of equal expected loss, and the probes equally among the parts.

    What is left of the probes goes to the part of least loss a case, which has most cases. Each
    part has a probe, and no case is drawn more than so many times less often than without losses.
    """
    n_parts = min(_MOST_PARTS, n_probes)
    if losses is None or n_parts == 0 or not losses[below].any():
        return [(below, n_probes)] if n_probes else []
    ranked = below[rank(losses[below], keys_within(tie_keys, below))[0]]
    before = np.cumsum(losses[ranked]) - losses[ranked] / 2
    codes = np.minimum(n_parts * before / losses[ranked].sum(), n_parts - 1).astype(np.intp)
    parts = [ranked[codes == code] for code in np.unique(codes)]
    counts = [min(part.size, n_probes // n_parts) for part in parts]
    for place in reversed(range(len(parts))):
        counts[place] += min(parts[place].size - counts[place], n_probes - sum(counts))
    return list(zip(parts, counts, strict=True))
