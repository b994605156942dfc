r"""Thresholds from items that come in groups, such as several rows of one customer.

The items of a group are alike; G groups say much less than as many items as they have. Here the
*groups* are exchangeable: those of calibration with each other and with a new one. The promises
are about **an item that is drawn at random from a new group**. Let :math:`L_g(t)` be the share of
the items of group g above the threshold t, so that :math:`R(t) = E[L(t)]` is the rate.

*Expected* (conformal risk control; Angelopoulos, Bates, Fisch, Lei and Schuster, 2024). Take the
lowest t with :math:`\sum_g L_g(t) + 1 \le c \, (G + 1)`. Then :math:`E[R(t)] \le c`. Proof: let t'
be the lowest threshold with :math:`\sum_g L_g(t') \le c \, (G + 1)`, where the sum includes the new
group. No group has a share above 1, so :math:`t' \le t`, and shares only fall with the threshold.
Since t' treats all G + 1 groups alike, the expected share of the new one at t' is that of any
other, and their mean is at most c. With one item to a group, the rule is that of `expected_k`.

*Confident, simultaneous*: draw one item of each group by lot. The G items are independent draws of
"an item of a new group", and every rule for single items is exact for them.

The rate of all *items* is the same if the sizes of groups have nothing to do with their scores.
If large groups are the more suspicious ones it is higher. Therefore no rule here flags more than
the capacity among the calibration items themselves. That adds to the promise and takes nothing from
it: a threshold may always be raised.

The lots come from a hash of the sample and a seed: the same sample has the same lots, in any order
of its rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from .._core.arrays import Floats, Mask, Rows
from .._core.ranking import BEFORE_ALL, Cut, TieKeys, cut_after, keys_within, rank
from .guarantees import expected_sample_size, plug_in_k
from .promise import Promise, promised_k, walked_k, warn_too_few

__all__ = ["cut_for_groups", "draw_one_of_each", "expected_k_in_groups", "group_costs", "stricter"]

_UNIT = "calibration groups"


def cut_for_groups(
    scores: Floats,
    groups: Rows,
    drawn: Rows,
    promise: Promise,
    tie_keys: TieKeys | None,
    *,
    walked: Mask | None = None,
    seed: int = 0,
) -> Cut:
    """Return the lowest cut that keeps a promise about an item of a new group.

    `drawn` are the positions of one item of each group. With the labels `walked`, the promise
    covers an unknown prevalence.
    """
    if promise.guarantee == "next-batch":
        raise ValueError(
            "guarantee='next-batch' is not possible with groups: how many flags a batch gets "
            "depends on how many items of one group it holds. Use guarantee='confident', or a "
            "BudgetController, which counts."
        )
    at_most = cut_after(scores, plug_in_k(scores.size, promise.ratio), tie_keys)
    if promise.guarantee == "plug-in":
        return at_most if promised_k(drawn.size, promise, unit=_UNIT) >= 0 else BEFORE_ALL
    if promise.guarantee == "expected":
        return _expected_cut(scores, groups, promise, tie_keys)
    own, keys = scores[drawn], None if tie_keys is None else keys_within(tie_keys, drawn)
    if walked is None:
        k = promised_k(drawn.size, promise, unit=_UNIT)
    else:
        k = walked_k(own, walked[drawn], promise, keys, seed)
    return stricter(cut_after(own, k, keys), at_most)


def _expected_cut(scores: Floats, groups: Rows, promise: Promise, tie_keys: TieKeys | None) -> Cut:
    if promise.ratio == 0:
        return BEFORE_ALL
    order, steps = rank(scores, tie_keys)
    k = expected_k_in_groups(groups[order], steps, promise.ratio)
    if k < 0:
        needed, n_groups = expected_sample_size(promise.ratio), np.unique(groups).size
        warn_too_few(promise, f"needs at least {needed} {_UNIT}; got {n_groups}")
    return cut_after(scores, k, tie_keys)


def expected_k_in_groups(groups: Rows, steps: Rows, c: Fraction) -> int:
    """Return the largest of some `steps` at which the expected share of a new group is at most `c`.

    `groups` are those of the items in ranking order, numbered from 0.
    """
    low, high, cost = -1, steps.size - 1, group_costs(groups, steps)
    while low < high:
        middle = (low + high + 1) // 2
        if cost(middle) <= c:
            low = middle
        else:
            high = middle - 1
    return int(steps[low]) if low >= 0 else -1


def group_costs(groups: Rows, steps: Rows) -> Callable[[int], Fraction]:
    """Return a function of a step's number: the share of a new group that it takes, on average.

    That is (sum of shares + 1) / (G + 1), or the share of all items before the step, if that is
    larger. `groups` are those of the items in ranking order.
    """
    sizes = np.bincount(groups)
    n_groups, size_of_item = int(np.count_nonzero(sizes)), sizes[groups]

    def cost(number: int) -> Fraction:
        k = int(steps[number])
        shares = _sum_of_shares(size_of_item[:k])
        return max((shares + 1) / (n_groups + 1), Fraction(k, groups.size))

    return cost


def _sum_of_shares(sizes: Rows) -> Fraction:
    """Add 1 / size over items, exactly."""
    counts = np.bincount(sizes)
    return sum(
        (Fraction(int(counts[size]), int(size)) for size in np.flatnonzero(counts)), Fraction()
    )


def stricter(first: Cut, second: Cut) -> Cut:
    """Return the cut that comes earlier in the ranking."""
    return min(first, second, key=lambda cut: (-cut.value, cut.key))


def draw_one_of_each(scores: Floats, groups: Rows, tie_keys: TieKeys | None, *, seed: int) -> Rows:
    """Draw one item of each group by lot, and return the positions."""
    keys = np.zeros(scores.size) if tie_keys is None else tie_keys(np.arange(scores.size))
    order = np.lexsort((keys, scores, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sizes = np.diff(np.append(starts, scores.size))
    digest = hashlib.blake2b(np.sort(scores).tobytes(), digest_size=16).digest()
    rng = np.random.default_rng([seed % 2**64, int.from_bytes(digest, "little")])
    # Lots go to the groups in an order that their scores determine, not their rows.
    ranked = scores[order]
    sums = np.add.reduceat(np.where(np.isfinite(ranked), ranked, 0), starts)
    in_turn = np.lexsort((sizes, sums, ranked[starts]))
    return order[starts[in_turn] + rng.integers(sizes[in_turn])]
