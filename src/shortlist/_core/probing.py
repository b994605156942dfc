"""Probes: slots given to cases below the cut, drawn at random, so that their outcomes count."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats, Mask, Rows
from .ranking import TieKeys, keys_within, rank
from .validation import check_number, warn_user

__all__ = [
    "BY_SCORE",
    "NOT_SELECTED",
    "PROBE",
    "PROBE_WITHOUT_SLOT",
    "KeyedDraws",
    "Probed",
    "check_probe",
    "draw_probes",
    "probe_seed",
]

#: Why a case is on the list, or not.
BY_SCORE, PROBE, NOT_SELECTED = "score", "probe", "not selected"
PROBE_WITHOUT_SLOT = "probe without a slot"
_LONGEST_KEY = 64  # bytes
_OWN_KEY = 0x70726F6265  # so that draws do not depend on the order of tied scores


class Probed(NamedTuple):
    """A list with probes: what is on it, which are probes, and how likely each was drawn."""

    flagged: Mask
    is_probe: Mask
    probabilities: Floats


class KeyedDraws:
    """Uniform numbers of cases that come one at a time: a keyed hash of the id.

    The same id has the same number again, and it cannot be predicted without the key. An item
    without an id is known by its number in the stream.
    """

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        text = key.encode()
        self._key = text if len(text) <= _LONGEST_KEY else hashlib.blake2b(text).digest()

    def number(self, id: str | int | None, place: int) -> float:
        """Return the number of an id, in [0, 1); without one, that of a place in the stream."""
        if id is None:
            return self._number(b"place %d" % place)
        if isinstance(id, str):  # whole numbers and texts differ
            return self._number(b"text " + id.encode("utf-8", "surrogatepass"))
        return self._number(b"whole %d" % id)

    def _number(self, text: bytes) -> float:
        digest = hashlib.blake2b(text, digest_size=8, key=self._key).digest()
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


def draw_probes(
    flagged: Mask,
    scores: Floats,
    tie_keys: TieKeys,
    draw_keys: TieKeys,
    probe: Fraction,
    *,
    groups: NDArray[np.intp] | None = None,
    strata: int = 1,
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
    strata : int, default=1
        Parts of equal size, by score, in which equally many probes are drawn.

    Returns
    -------
    Probed
    """
    result = Probed(flagged.copy(), np.zeros(flagged.size, bool), np.where(flagged, 1.0, 0.0))
    codes = np.zeros(flagged.size, np.intp) if groups is None else groups

    def ranked(rows: Rows) -> Rows:
        return rows[rank(scores[rows], keys_within(tie_keys, rows))[0]]

    for group in np.unique(codes[flagged]):
        own = np.flatnonzero(codes == group)
        n_probes = _free_slots(result, ranked(own[flagged[own]]), probe)
        below = own[~result.flagged[own]]
        for part, n_drawn in _parts(below if strata == 1 else ranked(below), n_probes, strata):
            drawn = part[np.argsort(draw_keys(part), kind="stable")[:n_drawn]]
            result.flagged[drawn] = result.is_probe[drawn] = True
            result.probabilities[part] = n_drawn / part.size
    if probe > 0 and flagged.any() and not result.is_probe.any():
        warn_user(
            f"A share of {float(probe):g} of {int(flagged.sum())} slots is less than one probe: "
            "nothing is drawn below the cut. Raise probe=..., or leave it out.",
            UserWarning,
        )
    return result


def _free_slots(result: Probed, listed: Rows, probe: Fraction) -> int:
    """Take the last slots away from the listed cases, and return how many."""
    n_probes = int(probe * listed.size)
    result.flagged[listed[listed.size - n_probes :]] = False
    return n_probes


def _parts(below: Rows, n_probes: int, strata: int) -> list[tuple[Rows, int]]:
    """Cut the cases into strata, with equally many probes in each; the first ones get the rest."""
    n_parts = min(strata, n_probes)
    if n_parts == 0:
        return []
    each, rest = divmod(n_probes, n_parts)
    parts = np.array_split(below, n_parts)
    return [(part, each + (place < rest)) for place, part in enumerate(parts)]
