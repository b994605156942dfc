"""What users call to calibrate a threshold: it checks arguments, and `terms.py` does the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.ids import check_ids, keys_by_id, number_groups
from .._core.labels import ReferencePrevalence, find_rare
from .._core.ranking import Cut, Cuts, check_probabilities, check_scores, weigh
from .._core.validation import check_confidence, check_option, check_same_length, check_seed
from .._core.work import check_efforts, check_values
from ..capacity import Capacity, check_capacity, check_efforts_suit
from ..exceptions import CapacityError
from ..worth import Worth, check_worth
from .guarantees import Place
from .promise import TIES, Promise, check_guarantee, place_of, warn_too_few
from .samples import CalibrationSample
from .terms import Terms, described
from .threshold import CalibratedThreshold


def calibrate_threshold(
    scores: ArrayLike,
    capacity: Capacity,
    *,
    prevalence: Any = None,
    guarantee: str = "expected",
    confidence: float = 0.95,
    n_batches: int = 1,
    ties: str = "auto",
    ids: ArrayLike | None = None,
    y: ArrayLike | None = None,
    rare_label: Any = None,
    random_state: Any = None,
    groups: ArrayLike | None = None,
    values: ArrayLike | None = None,
    efforts: ArrayLike | None = None,
    max_effort: float | None = None,
    worth: Any = None,
) -> CalibratedThreshold:
    r"""Find the lowest threshold that keeps a capacity on future items.

    The calibration scores must come from the finished model, on items like the future ones that
    the model has not been trained on. No labels are needed.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        Calibration scores; higher is more suspicious. NaN is an error.
    capacity : Capacity
        How much can be followed up. A count needs `per`.
    prevalence : number, default=None
        Share of rare items, for a capacity that is a multiple of it. `None` takes the share in
        `y`; then ``guarantee="confident"`` and ``"simultaneous"`` cover the uncertainty of that
        share as well.
    guarantee : str, default="expected"
        What is promised, when calibration and future items are exchangeable, about the true flag
        rate R of the threshold and the capacity c:

        - ``"plug-in"``: the calibration sample itself is within capacity, as in the paper.
          R exceeds c in about half of all calibrations.
        - ``"expected"``: R is at most c on average over calibrations.
        - ``"confident"``: R exceeds c with probability at most 1 - `confidence`.
        - ``"next-batch"``: with ``Capacity.count(K, per=N)``, more than K flags among the next N
          items have probability at most 1 - `confidence`.
        - ``"simultaneous"``: as "confident", for every capacity at once. With probability
          `confidence`, no capacity that you might ask for is exceeded by its threshold. Use it if
          you choose the capacity after looking at the scores.
        - ``"anytime"``: as "confident", for all calibrations on a growing sample at once. With
          probability `confidence`, none of them exceeds the capacity, however often and until
          when you calibrate, if each has all scores so far, of the same model. Not with groups,
          efforts, a promised precision, or a multiple of an unknown prevalence.
    confidence : float, default=0.95
        For all guarantees but the first two, and for the interval of the true flag rate.
    n_batches : int, default=1
        For ``guarantee="next-batch"``: the promise is that *none* of the next `n_batches` batches
        of N items has more than K flags.
    ties : {"auto", "exclude", "hash"}, default="auto"
        Scores tied with the threshold are left out as a block, or flagged in part, chosen by a
        hash of their ids. "auto" hashes if there are `ids`. With coarse scores (nearest
        neighbours, forests, rules), only the hash uses the whole capacity.
    ids : array-like of shape (n_items,), default=None
        Identifiers for the hash; row positions when absent.
    y : array-like of shape (n_items,), default=None
        Labels of the calibration items, for the prevalence.
    rare_label : label, default=None
        The label that is looked for; `None` takes the rarest in `y`.
    random_state : int, RandomState instance or None, default=None
        Key of the hash; `None` is a fixed key.
    groups : array-like of shape (n_items,), default=None
        The group of each item, if several items belong together: the rows of one customer. Groups
        are then what is exchangeable, and R is the chance that a random item of a new group is
        flagged. The number of groups is what counts for the sample size.
    values : array-like of shape (n_items,), default=None
        What each item is worth if it is rare. The threshold is then one of value * probability,
        and scores must be probabilities. Values choose what is flagged; the promise does not
        depend on them.
    efforts : array-like of shape (n_items,), default=None
        How much work each item takes, for ``Capacity.effort(budget, per=n)``. The threshold is one
        of value * probability / effort, R is the mean work per item, flagged or not, and c the
        budget per item. If the work is known only afterwards, pass estimates, here and for future
        items: the promise is then about the estimates.
    max_effort : float, default=None
        The largest effort that any item can take, in future too. Required if efforts differ. The
        guarantee "next-batch" counts every flag at this effort.
    worth : number or Worth, default=None
        The least expected value per unit of effort for which capacity is used, or
        ``Worth.precision(0.2)``: with labels `y`, the share of the flags that are rare is at least
        this, on the calibration items for "plug-in" and "expected", and on unseen items with
        probability `confidence` for the other guarantees. Without labels, values and efforts,
        every flagged item has at least this probability.

    Returns
    -------
    CalibratedThreshold
        With `value`, `k`, `n_calibration`, `flagged_fraction`, `interval` and `flag(scores)`.

    Warns
    -----
    InsufficientCalibrationWarning
        When there are too few scores for the guarantee; for "plug-in", when even the highest
        score has an expected flag rate above the capacity. The threshold then flags nothing.

    Notes
    -----
    The threshold is an order statistic, so its flag rate follows a Beta distribution whatever the
    model. Formulas and references stand with each rule in the source.

    Examples
    --------
    A hundred scores, room for one item in ten. On average over calibrations, at most one in ten
    future items exceeds the tenth largest score:

    >>> import numpy as np
    >>> from shortlist import Capacity, calibrate_threshold
    >>> scores = np.arange(100)
    >>> calibrate_threshold(scores, Capacity.fraction(0.1)).value
    90.0

    To be 95 % sure of the capacity, only the top four may lie above the threshold:

    >>> safe = calibrate_threshold(scores, Capacity.fraction(0.1), guarantee="confident")
    >>> safe.value, safe.k
    (95.0, 4)
    >>> safe.flag([96, 95, 12]).tolist()
    [True, False, False]

    Eight hours for every thousand cases, which take from 5 to 60 minutes each:

    >>> rng = np.random.default_rng(0)
    >>> p, minutes = rng.beta(1, 20, size=5_000), rng.integers(5, 61, size=5_000)
    >>> budget = Capacity.effort(480, per=1_000)
    >>> found = calibrate_threshold(p, budget, efforts=minutes, max_effort=60)
    >>> round(found.effort_spent * 1_000), found.flag([0.3], efforts=[45]).tolist()
    (397, [False])
    """
    scores = check_scores(scores)
    if check_option("ties", ties, ("auto", *TIES)) == "auto":
        ties = "exclude" if ids is None else "hash"
    y = None if y is None else np.asarray(y)
    check_same_length(scores=scores, y=y)
    ids, seed = check_ids(ids, scores.size), check_seed(random_state)
    worth, capacity = check_worth(worth), check_capacity(capacity)
    values, efforts = check_values(values, scores.size), check_efforts(efforts, scores.size)
    check_efforts_suit(capacity, efforts)
    if max_effort is not None and capacity.kind != "effort":
        raise CapacityError(
            f"max_effort belongs to Capacity.effort(...); {capacity!r} limits the number of flags."
        )
    needs_labels = capacity.kind == "multiple" and prevalence is None
    by_precision = worth is not None and worth.kind == "precision"
    is_rare = None
    if y is not None and (needs_labels or by_precision):
        is_rare = find_rare(y, rare_label)[0]
    if worth is not None and not (by_precision and is_rare is not None):
        check_probabilities(scores)
        if values is None and efforts is None:  # the probability itself is what an item is worth
            worth = Worth.value(worth.least)
    sample = CalibrationSample(
        weigh(scores, values, efforts),
        keys_by_id(ids, seed=seed) if ties == "hash" else None,
        is_rare=is_rare,
        groups=number_groups(groups, scores.size),
        efforts=efforts,
        has_values=values is not None,
    )
    reference = ReferencePrevalence.of_labels(is_rare, sample.groups, seed=seed)
    reference = reference._replace(stated=prevalence)
    terms = Terms(guarantee, confidence, reference, seed, n_batches, max_effort, worth)
    return terms.thresholds([sample], capacity)[0]


def calibrate_counts(
    n: int,
    capacity: Capacity,
    terms: Terms,
    *,
    find_cut: Callable[[int], tuple[Cut, int]],
    ties: str,
) -> CalibratedThreshold:
    """Calibrate a threshold from counts alone, for scores that are not held together.

    `find_cut` returns for a number k the cut at the (k + 1)-th largest score, and how many scores
    lie before it. The threshold is the same as from the scores themselves.
    """
    if n == 0:
        raise ValueError("Calibration needs at least one score; got none.")
    check_guarantee(terms.guarantee, capacity, terms.n_batches)
    ratio, error = capacity.as_ratio(terms.reference.value), 1 - check_confidence(terms.confidence)
    promise = Promise(capacity, ratio, terms.kind, error, terms.n_batches)
    place = place_of(n, promise) if ratio else Place(-1)
    if ties == "exclude":
        place = Place(place.k)
    upper, n_above = find_cut(place.k)
    lower, n_before = find_cut(place.k + 1) if place.share else (upper, n_above)
    cuts, counts = Cuts(upper, lower, place.share), (n, n_above, n_before - n_above)
    known = {"ties": ties, "confidence": terms.confidence, "seed": terms.seed}
    found = described(promise, place, cuts, counts, **known)
    warn_too_few(promise, [found])
    return found
