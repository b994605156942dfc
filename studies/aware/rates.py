r"""Do scores that learn for the capacity approach the optimal rule as n grows?

    python -m studies.aware.rates

The problem, and what is measured, are those of `studies.learners.consistency` in the plane. All
settings were fixed before the first run: defaults of each class, quadratic features for the linear
score (the true log-odds are quadratic), a Gaussian kernel with :math:`\gamma = 1`, and for the
paper's greedy choice either 30 support vectors whatever n is, or :math:`\sqrt n`.

`rates.csv` has the means for each family and n; `rates_trends.csv` tests whether they fall.

    python -m studies.aware.rates --clusters

There, the rare items lie in 49 small clusters, more than 30 support vectors can cover, and
:math:`\gamma` suits the clusters: `clusters.csv` and `clusters_trends.csv`. After a first look at n
of up to 4,000, a faster growth of n / 40 support vectors was added.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from shortlist import Capacity, aware
from studies.harness import run_stored, study_parser
from studies.learners.consistency import (
    ConsistencyConfig,
    Repetition,
    compare,
    draw,
    repetitions_of,
    summary,
    trends,
)
from studies.learners.known_problem import Grid
from studies.tables import Table, read_table, write_table

HERE = Path(__file__).parent
SIZES = {250: 20, 1_000: 20, 4_000: 10, 16_000: 5}
CENTRES = np.stack(np.meshgrid(*[np.arange(-3.0, 4.0)] * 2), axis=-1).reshape(-1, 2)
_DEVIATION, _WIDTH = 0.1, 2.0


def _linear(m: int, dimension: int, seed: int) -> Any:
    features = PolynomialFeatures(2, include_bias=False)
    return make_pipeline(features, aware.CapacityAwareLinearClassifier())


def _forest(m: int, dimension: int, seed: int) -> Any:
    return aware.CapacityAwareForestClassifier(n_estimators=100, random_state=seed)


def _boosting(m: int, dimension: int, seed: int) -> Any:
    return aware.CapacityAwareBoostingClassifier(random_state=seed)


def _network(m: int, dimension: int, seed: int) -> Any:
    return aware.CapacityAwareNetworkClassifier(random_state=seed)


def _swapped(m: int, dimension: int, seed: int) -> Any:
    return aware.CapacityAwareSVC(gamma=1.0, random_state=seed)


def _greedy(most: Callable[[int], int], m: int, dimension: int, seed: int) -> Any:
    options: Any = {"selection": "paper", "tie_break": "first", "oob_score": True}
    return aware.CapacityAwareSVC(gamma=1.0, max_support=most(2 * m), random_state=seed, **options)


FIXED, GROWING = "g_b*, 30 support vectors", "g_b*, root of n support vectors"
FASTER = "g_b*, n / 40 support vectors"
LEARNERS: dict[str, Callable[[int, int, int], Any]] = {
    "linear": _linear,
    "forest": _forest,
    "boosting": _boosting,
    "network": _network,
    "support vectors, cross-fitted": _swapped,
    FIXED: partial(_greedy, lambda n: 30),
    GROWING: partial(_greedy, lambda n: round(n**0.5)),
}
_OF_CLUSTERS = {
    FIXED: LEARNERS[FIXED],
    GROWING: LEARNERS[GROWING],
    FASTER: partial(_greedy, lambda n: n // 40),
    "forest": _forest,
}


def run_repetition(config: Repetition) -> Table:
    """Draw a sample and compare a family with the optimal rule."""
    cv = "oob" if config.family in (FIXED, GROWING) else 0.5
    return compare(config, LEARNERS[config.family], cv)


# --- more clusters than 30 support vectors can cover ---------------------------------------------


class Clusters:
    """Rare items in 49 clusters on a square grid, among normal ones; a tenth are rare, b = 1."""

    capacity, prevalence = Capacity.fraction(0.1), 0.1

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Any, NDArray[np.int64]]:
        """Draw n independent items and their labels, 1 for the rare ones."""
        y = (rng.uniform(size=n) < self.prevalence).astype(np.int64)
        X = rng.normal(size=(n, 2)) * np.where(y, _DEVIATION, _WIDTH)[:, np.newaxis]
        X[y == 1] += CENTRES[rng.integers(len(CENTRES), size=int(y.sum()))]
        return X, y

    def log_ratio(self, X: Any) -> Any:
        """Return the logarithm of the likelihood ratio."""
        around = [multivariate_normal(centre, _DEVIATION**2).logpdf(X) for centre in CENTRES]
        rare = logsumexp(around, axis=0) - np.log(len(CENTRES))
        return rare - multivariate_normal([0, 0], _WIDTH**2).logpdf(X)


@cache
def _clusters() -> tuple[Clusters, Grid, NDArray[np.bool_]]:
    """Return the problem, 50,000 items of it, and which of these the optimal rule flags."""
    problem, n = Clusters(), 50_000
    X, y = problem.sample(n, np.random.default_rng(1))
    ratios = problem.log_ratio(X)
    cut = np.sort(ratios)[-problem.capacity.max_flags(n) - 1]
    return problem, Grid(X, y == 1, np.full(n, 1 / n)), ratios > cut


def run_clusters(config: Repetition) -> Table:
    """Draw a sample of clusters and compare a family with the optimal rule."""
    cv = 0.5 if config.family == "forest" else "oob"
    learner = _OF_CLUSTERS[config.family]

    def suited(m: int, dimension: int, seed: int) -> Any:
        model = learner(m, dimension, seed)
        return (
            model.set_params(gamma=1 / (4 * _DEVIATION**2))
            if "gamma" in model.get_params()
            else model
        )

    return compare(config, suited, cv, _clusters())


def main() -> None:
    """Run, save and draw."""
    parser = study_parser(__doc__, HERE, reps=20)
    parser.add_argument("--clusters", action="store_true", help="the problem of 49 clusters")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), choices=SIZES)
    options = parser.parse_args()
    name = "clusters" if options.clusters else "rates"
    if not options.table:
        config = ConsistencyConfig(
            dimensions=(2,),
            sizes=tuple(options.sizes),
            repetitions=tuple(min(options.reps, SIZES[size]) for size in options.sizes),
            families=tuple(_OF_CLUSTERS if options.clusters else LEARNERS),
        )
        trials = repetitions_of(config)
        work = run_clusters if options.clusters else run_repetition
        rows = run_stored(name, work, trials, n_jobs=options.jobs)
        write_table(summary(rows), options.out / f"{name}.csv")
        write_table(trends(rows), options.out / f"{name}_trends.csv")
    draw(read_table(options.out / f"{name}.csv"), options.out / f"{name}.png")


if __name__ == "__main__":
    main()
