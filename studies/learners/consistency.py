r"""With more data, every family of learners approaches the optimal rule (section 3 of the paper).

    python -m studies.learners.consistency --jobs 2

The problem is that of `KnownProblem`, on a line and in the plane. Half of n items train a score,
the other half sets the plug-in threshold. The study measures the disagreement
:math:`P(\hat g_b \neq g_b)` and the gap in M to the optimal rule, both as integrals over the known
distributions. M corrects for flags beyond the capacity: no rule has a larger M than the optimal
one, and the gap is zero only at the optimum.

How complexity grows with the number m of training items was fixed beforehand by theory, in d
dimensions; constants are 1, or the usual ones.

- Densities: Scott's bandwidths, :math:`h \sim m^{-1/(d+4)}`; then :math:`h \to 0` and
  :math:`m h^d \to \infty`.
- Neighbours: :math:`k = m^{4/(4+d)}`, the best rate for smooth densities; then
  :math:`k \to \infty` and :math:`k/m \to 0`.
- Support vectors: squared hinge loss, Gaussian kernel with :math:`\gamma = 1`, and
  :math:`C = m^{0.45}` against the *mean* loss; then :math:`C \to \infty` and
  :math:`C / \sqrt m \to 0`. Beside it the hinge loss of the paper, with the same kernel and C:
  against the mean, to which Steinwart's condition belongs, and against the sum, as it is printed.
- Forest: 100 trees with leaves of at least :math:`m^{2/(2+d)}` items, the balance of bias and
  variance for a histogram with as many bins.
- Network: one layer of :math:`k = m^{1/3}` units; then :math:`k \log m / m \to 0`.

The hinge loss itself does not rank: its minimum is the sign of :math:`\eta - 1/2`, which says
nothing about other levels of :math:`\eta`, while that of the squared hinge is :math:`2 \eta - 1`
(Bartlett, Jordan and McAuliffe, 2006). For the squared hinge, the kernel is approximated by
Nyström's method on :math:`\sqrt m` landmarks (at least 50), without which many training items
would take hours.

`consistency.csv` has the means for each dimension, family and n; `consistency_trends.csv` tests
whether they fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from shortlist import CapacityClassifier
from shortlist.learners import KernelDensityClassifier, KernelKNeighborsClassifier
from studies.harness import run_stored, study_parser
from studies.learners.known_problem import Grid, KnownProblem
from studies.tables import Table, read_table, select_rows, summarise, write_table

HERE = Path(__file__).parent
#: The measured values, with their names in the picture.
VALUES = {
    "disagreement": "disagreement with the optimal rule",
    "gap": "M below that of the optimal rule",
}
#: Error of the integrals: smaller means, also negative ones, are drawn at this height.
RESOLUTION = 1e-3


@dataclass(frozen=True)
class ConsistencyConfig:
    """Settings of the experiment; `repetitions` of each size, fewer of the slow ones."""

    dimensions: tuple[int, ...] = (1, 2)
    sizes: tuple[int, ...] = (250, 1_000, 4_000, 16_000, 64_000)
    repetitions: tuple[int, ...] = (20, 20, 20, 10, 3)
    families: tuple[str, ...] = ("kde", "knn", "svm", "hinge", "hinge-sum", "forest", "network")
    n_grid: int = 8_192
    seed: int = 0


@dataclass(frozen=True)
class Repetition:
    """One family on one sample, which is the same for all families."""

    dimension: int
    n: int
    repetition: int
    family: str
    n_grid: int
    seed: int


def repetitions_of(config: ConsistencyConfig) -> list[Repetition]:
    """List the repetitions of each size, dimension and family."""
    return [
        Repetition(dimension, n, number, family, config.n_grid, config.seed)
        for n, count in zip(config.sizes, config.repetitions, strict=True)
        for number in range(count)
        for dimension in config.dimensions
        for family in config.families
        if n <= 16_000 or family not in SLOW
    ]


def run_repetition(config: Repetition) -> Table:
    """Draw a sample and compare a family with the optimal rule."""
    return compare(config, _LEARNERS[config.family])


def compare(
    config: Repetition,
    learner: Callable[[int, int, int], Any],
    cv: Any = 0.5,
    known: tuple[Any, Grid, NDArray[np.bool_]] | None = None,
) -> Table:
    """Fit a learner under the capacity, and return how far it is from the optimal rule.

    `known` is another problem, with a grid and what the optimal rule flags on it.
    """
    rng = np.random.default_rng([config.seed, config.dimension, config.n, config.repetition])
    problem, grid, optimal = known or _problem(config.dimension, config.n_grid)
    X, y = problem.sample(config.n, rng)
    seed = int(rng.integers(2**31))
    best = grid.adjusted_detection(optimal, problem.capacity)
    model = CapacityClassifier(
        learner(config.n // 2, config.dimension, seed),
        capacity=problem.capacity,
        rare_label=1,
        guarantee="plug-in",
        ties="hash",
        random_state=seed,
        cv=cv,
    )
    flagged = model.fit(X, y).flag(grid.X)
    return [
        {
            "dimension": config.dimension,
            "n": config.n,
            "repetition": config.repetition,
            "family": config.family,
            "disagreement": grid.probability(flagged != optimal),
            "gap": best - grid.adjusted_detection(flagged, problem.capacity),
        }
    ]


def summary(table: Table) -> Table:
    """Return the means of both values for each dimension, family and n."""
    by = ["dimension", "family", "n"]
    return [
        {"value": value, **row}
        for value in VALUES
        for row in sorted(
            summarise(table, by, value), key=lambda row: (row["dimension"], row["family"])
        )
    ]


def trends(table: Table) -> Table:
    """Return, for each dimension, family and value, how it falls with n, and a test that it does.

    The p-value is that of Kendall's one-sided rank correlation between n and the single
    repetitions, which assumes nothing about their distribution. The slope is that of the logarithm
    of the mean against log n; -0.5 is the best possible with a threshold from n / 2 items.
    """
    rows = []
    for value in VALUES:
        for dimension, family in dict.fromkeys((r["dimension"], r["family"]) for r in table):
            chosen = [r for r in table if (r["dimension"], r["family"]) == (dimension, family)]
            sizes, values = [row["n"] for row in chosen], [row[value] for row in chosen]
            means = summarise(chosen, ["n"], value)
            logs = np.log([[row["n"], max(row["mean"], RESOLUTION)] for row in means])
            rows.append(
                {
                    "value": value,
                    "dimension": dimension,
                    "family": family,
                    "first": means[0]["mean"],
                    "last": means[-1]["mean"],
                    "slope": float(stats.linregress(*logs.T).slope),
                    "p_value": float(stats.kendalltau(sizes, values, alternative="less").pvalue),
                }
            )
    return rows


def draw(table: Table, path: Path) -> Path:
    """Save a picture of the summary: a row for each dimension, disagreement and gap against n."""
    dimensions = list(dict.fromkeys(row["dimension"] for row in table))
    figure = Figure(figsize=(10, 4 * len(dimensions)), layout="constrained")
    panels = figure.subplots(len(dimensions), len(VALUES), squeeze=False)
    for axes_row, dimension in zip(panels, dimensions, strict=True):
        for axes, (value, label) in zip(axes_row, VALUES.items(), strict=True):
            _draw_panel(axes, select_rows(table, dimension=dimension, value=value))
            axes.set(xlabel="items n", ylabel=label, title=f"{dimension}-dimensional")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    figure.savefig(path, dpi=110)
    return path


def _draw_panel(axes: Any, table: Table) -> None:
    for family in dict.fromkeys(row["family"] for row in table):
        means = select_rows(table, family=family)
        heights = np.array([max(row["mean"], RESOLUTION) for row in means])
        errors = 2 * np.array([row["error"] for row in means])
        axes.errorbar(
            [row["n"] for row in means],
            heights,
            # Bars must stop above zero on a logarithmic axis.
            yerr=[np.minimum(errors, 0.9 * heights), errors],
            marker="o",
            markersize=4,
            capsize=2,
            label=FAMILIES.get(family, family),
        )
    axes.set(xscale="log", yscale="log")


@cache
def _problem(dimension: int, n_grid: int) -> tuple[KnownProblem, Grid, NDArray[np.bool_]]:
    problem = KnownProblem(dimension)
    grid = problem.grid(n_grid)
    return problem, grid, problem.flag(grid.X)


def _kde(m: int, dimension: int, seed: int) -> Any:
    return KernelDensityClassifier("scott")


def _knn(m: int, dimension: int, seed: int) -> Any:
    return KernelKNeighborsClassifier(round(m ** (4 / (4 + dimension))))


def _svm(m: int, dimension: int, seed: int) -> Any:
    landmarks = Nystroem(gamma=1.0, n_components=max(50, round(m**0.5)), random_state=seed)
    # LIBLINEAR counts C against the sum of all losses.
    return make_pipeline(landmarks, LinearSVC(C=m**0.45 / m, loss="squared_hinge", dual=False))


def _hinge(m: int, dimension: int, seed: int) -> Any:
    return SVC(C=m**0.45 / m, gamma=1.0)


def _hinge_sum(m: int, dimension: int, seed: int) -> Any:
    return SVC(C=m**0.45, gamma=1.0)


def _forest(m: int, dimension: int, seed: int) -> Any:
    leaf = round(m ** (2 / (2 + dimension)))
    return RandomForestClassifier(100, min_samples_leaf=leaf, random_state=seed)


def _network(m: int, dimension: int, seed: int) -> Any:
    units = round(m ** (1 / 3))
    return MLPClassifier((units,), solver="lbfgs", max_iter=1_000, random_state=seed)


# Learners for m training items.
_LEARNERS: dict[str, Callable[[int, int, int], Any]] = {
    "kde": _kde,
    "knn": _knn,
    "svm": _svm,
    "hinge": _hinge,
    "hinge-sum": _hinge_sum,
    "forest": _forest,
    "network": _network,
}
#: Families that would take hours at the largest size.
SLOW = ("kde", "knn", "hinge", "hinge-sum")
#: Families of the experiment, with their names in the picture.
FAMILIES = {
    "kde": "kernel density",
    "knn": "nearest neighbours",
    "svm": "support vectors, squared hinge",
    "hinge": "support vectors, hinge, C against the mean",
    "hinge-sum": "support vectors, hinge, C against the sum",
    "forest": "random forest",
    "network": "neural network",
}


def main() -> None:
    """Run, save and draw."""
    parser = study_parser(__doc__, HERE, reps=20)
    usual = ConsistencyConfig()
    sizes = list(usual.sizes)
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, choices=sizes)
    options = parser.parse_args()
    if not options.table:
        most = dict(zip(usual.sizes, usual.repetitions, strict=True))  # few of the slow sizes
        repetitions = tuple(min(options.reps, most[size]) for size in options.sizes)
        config = ConsistencyConfig(sizes=tuple(options.sizes), repetitions=repetitions)
        trials = repetitions_of(config)
        rows = run_stored("consistency", run_repetition, trials, n_jobs=options.jobs)
        write_table(summary(rows), options.out / "consistency.csv")
        write_table(trends(rows), options.out / "consistency_trends.csv")
    draw(read_table(options.out / "consistency.csv"), options.out / "consistency.png")


if __name__ == "__main__":
    main()
