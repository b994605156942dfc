r"""With more data, rules for several rare classes approach the optimal one (section 5.1).

    python -m studies.learners.several_classes

Two rare classes lie inside a common one, in the plane. Half of n items train a model, the other
half sets the plug-in prices. The optimal rule has the known posteriors and prices from 100,000
items. The study measures, on 50,000 other items, the disagreement with it, and how much less of the
objective is reached: the sum of the sensitivities of all classes, from the known posteriors, where
flags beyond the capacity of a class are paid for as in M.

How complexity grows with the number m of training items was fixed beforehand, as in `consistency`:
quadratic features, which contain the true log-odds; :math:`k = m^{2/3}` neighbours; 100 trees with
leaves of at least :math:`\sqrt m` items.

`several_classes.csv` has the means for each family and n; `several_classes_trends.csv` tests
whether they fall.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from shortlist import Capacity, MulticlassCapacityClassifier
from shortlist.theory import KnownDensities
from studies.harness import run_stored, study_parser
from studies.learners.consistency import (
    ConsistencyConfig,
    Repetition,
    repetitions_of,
    summary,
    trends,
)
from studies.tables import Table, write_table

HERE = Path(__file__).parent
SHARES = {0: 0.05, 1: 0.08, 2: 0.87}
CAPACITIES = {0: Capacity.fraction(0.1), 1: Capacity.fraction(0.12)}
KNOWN = KnownDensities(
    {
        0: stats.multivariate_normal([1.2, 0], 0.15),
        1: stats.multivariate_normal([-1, 1], 0.3),
        2: stats.multivariate_normal([0, 0]),
    },
    SHARES,
)
SIZES = {250: 20, 1_000: 20, 4_000: 10, 16_000: 5}
_N_PRICES, _N_TEST = 100_000, 50_000


class Oracle(ClassifierMixin, BaseEstimator):
    """A model that knows the densities."""

    classes_ = KNOWN.classes

    def fit(self, X: Any, y: Any) -> Oracle:
        """Learn nothing."""
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the posteriors."""
        return KNOWN.posterior(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _logistic(m: int, seed: int) -> Any:
    return make_pipeline(PolynomialFeatures(2), LogisticRegression(C=1e6, max_iter=10_000))


def _knn(m: int, seed: int) -> Any:
    return KNeighborsClassifier(round(m ** (2 / 3)))


def _forest(m: int, seed: int) -> Any:
    return RandomForestClassifier(100, min_samples_leaf=round(m**0.5), random_state=seed)


LEARNERS: dict[str, Callable[[int, int], Any]] = {
    "logistic regression, quadratic": _logistic,
    "nearest neighbours": _knn,
    "random forest": _forest,
}


def rule(model: Any, seed: int, cv: Any = 0.5) -> MulticlassCapacityClassifier:
    """Return an unfitted rule for both rare classes with plug-in prices."""
    return MulticlassCapacityClassifier(
        model, capacities=CAPACITIES, cv=cv, guarantee="plug-in", random_state=seed
    )


@cache
def _optimum() -> tuple[Any, Any, Any]:
    """Return test items, what the optimal rule says about them, and what each label is worth."""
    X, y = KNOWN.sample(_N_PRICES, random_state=1)
    test, _ = KNOWN.sample(_N_TEST, random_state=2)
    worth = KNOWN.posterior(test) / np.array(list(SHARES.values()))
    return test, rule(Oracle(), 0, cv="prefit").fit(X, y).predict(test), worth


def run_repetition(config: Repetition) -> Table:
    """Draw a sample and compare a family with the optimal rule."""
    rng = np.random.default_rng([config.seed, config.n, config.repetition])
    X, y = KNOWN.sample(config.n, random_state=int(rng.integers(2**31)))
    seed = int(rng.integers(2**31))
    test, best, worth = _optimum()
    got = rule(LEARNERS[config.family](config.n // 2, seed), seed).fit(X, y).predict(test)
    return [
        {
            "dimension": config.dimension,
            "n": config.n,
            "repetition": config.repetition,
            "family": config.family,
            "disagreement": float(np.mean(got != best)),
            "gap": _objective(best, worth) - _objective(got, worth),
        }
    ]


def _objective(labels: Any, worth: Any) -> float:
    """Return the sum of the sensitivities, that of a rare class paid for as in M."""
    reached = 0.0
    for label, own in enumerate(worth.T):
        rate = float(np.mean(labels == label))
        room = CAPACITIES[label].as_fraction() if label in CAPACITIES else 1.0
        reached += float(np.mean(own * (labels == label))) * min(1.0, room / max(rate, 1e-9))
    return reached


def main() -> None:
    """Run and save."""
    parser = study_parser(__doc__, HERE, reps=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), choices=SIZES)
    options = parser.parse_args()
    config = ConsistencyConfig(
        dimensions=(2,),
        sizes=tuple(options.sizes),
        repetitions=tuple(min(options.reps, SIZES[size]) for size in options.sizes),
        families=tuple(LEARNERS),
    )
    trials = repetitions_of(config)
    rows = run_stored("several_classes", run_repetition, trials, n_jobs=options.jobs)
    write_table(summary(rows), options.out / "several_classes.csv")
    write_table(trends(rows), options.out / "several_classes_trends.csv")


if __name__ == "__main__":
    main()
