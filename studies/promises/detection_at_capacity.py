"""How often the intervals of a capacity curve cover what a capacity finds, and how wide they are.

    python -m studies.promises.detection_at_capacity

`detection_at_capacity.csv` has, for each design, the share of samples in which the interval for the
capacity and the one for a fixed threshold contain the true detection at the capacity, and their
mean widths. `best_width` is the width that holds 95 % of the estimates: an interval that
knew the distribution of its estimate would be about as wide.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm

from shortlist import Capacity, capacity_curve
from studies.tables import Table, markdown_table, write_table

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Design:
    """Standard normal scores, `shift` higher for rare items; rounded down if there are `steps`.

    `steps` is the number of levels per unit of the score.
    """

    name: str
    items: int
    prevalence: float
    shift: float
    kind: str
    capacity: float
    steps: float | None = None

    @property
    def limit(self) -> Capacity:
        """The capacity."""
        make = Capacity.multiple if self.kind == "multiple" else Capacity.fraction
        return make(self.capacity)

    def truth(self) -> float:
        """Return the share of rare items in the top of the population, ties shared out evenly."""
        steps = self.steps or 10_000.0
        edges = np.arange(-10 * steps, 20 * steps)[::-1] / steps
        rare, common = norm.sf(edges - self.shift), norm.sf(edges)
        flagged = self.prevalence * rare + (1 - self.prevalence) * common
        fraction = self.capacity * (self.prevalence if self.kind == "multiple" else 1)
        return float(np.interp(fraction, flagged, rare))

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return labels, at least one of each, and scores."""
        is_rare = rng.random(self.items) < self.prevalence
        is_rare[:2] = (True, False) if not 0 < is_rare.sum() < self.items else is_rare[:2]
        scores = rng.normal(size=self.items) + self.shift * is_rare
        return is_rare, scores if self.steps is None else np.floor(self.steps * scores)


DESIGNS = (
    Design("near-perfect, below prevalence", 1_000, 0.05, 8, "fraction", 0.045),
    Design("near-perfect, far below", 1_000, 0.05, 8, "fraction", 0.02),
    Design("near-perfect, above", 1_000, 0.05, 8, "fraction", 0.06),
    Design("near-perfect, many items", 10_000, 0.05, 8, "fraction", 0.045),
    Design("good", 1_000, 0.05, 3, "fraction", 0.045),
    Design("useful", 1_000, 0.05, 2, "fraction", 0.1),
    Design("useful, many items", 4_000, 0.02, 2.5, "fraction", 0.02),
    Design("poor", 1_000, 0.05, 1, "fraction", 0.05),
    Design("chance", 1_000, 0.05, 0, "fraction", 0.1),
    Design("harmful", 1_000, 0.1, -1, "fraction", 0.2),
    Design("few items", 60, 0.1, 1.5, "fraction", 0.2),
    Design("very few items", 20, 0.3, 2, "fraction", 0.25),
    Design("very rare", 2_000, 0.003, 2, "fraction", 0.01),
    Design("common", 500, 0.5, 0.5, "fraction", 0.4),
    Design("nearly all rare", 300, 0.9, 1, "fraction", 0.5),
    Design("four levels a unit", 1_000, 0.05, 2, "fraction", 0.1, steps=4),
    Design("one level a unit", 1_000, 0.05, 2, "fraction", 0.1, steps=1),
    Design("a level for two units", 1_000, 0.05, 3, "fraction", 0.045, steps=0.5),
    Design("near-perfect, multiple", 1_000, 0.05, 8, "multiple", 0.9),
    Design("good, multiple", 1_000, 0.05, 3, "multiple", 1),
    Design("poor, multiple", 1_000, 0.02, 1, "multiple", 4),
)


def measure(design: Design, *, trials: int) -> dict[str, float]:
    """Return coverage and mean width of both intervals at 95 %."""
    rng = np.random.default_rng([design.items, int(1_000 * design.capacity), trials])
    truth = design.truth()
    ends, fixed, estimates = np.empty((trials, 2)), np.empty((trials, 2)), np.empty(trials)
    for trial in range(trials):
        is_rare, scores = design.sample(rng)
        curve = capacity_curve(is_rare, scores, rare_label=True)
        row = curve.at(design.limit)
        ends[trial] = curve.interval_at(design.limit)
        fixed[trial] = row["at_threshold_low"], row["at_threshold_high"]
        estimates[trial] = row["detection"]
    best = np.diff(np.quantile(estimates, [0.025, 0.975]))[0]
    return {
        "truth": truth,
        "covered": _covered(ends, truth),
        "width": float(np.diff(ends).mean()),
        "covered_at_threshold": _covered(fixed, truth),
        "width_at_threshold": float(np.diff(fixed).mean()),
        "best_width": float(best),
    }


def _covered(ends: np.ndarray, truth: float) -> float:
    # The truth is interpolated on a fine grid; the ends are exact where they are 0 and 1.
    return float(np.mean((ends[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= ends[:, 1])))


def table(*, trials: int) -> Table:
    """Return one row for each design."""
    return [
        {
            "design": design.name,
            "items": design.items,
            "prevalence": design.prevalence,
            "shift": design.shift,
            "kind": design.kind,
            "capacity": design.capacity,
            "trials": trials,
        }
        | {name: round(value, 4) for name, value in measure(design, trials=trials).items()}
        for design in DESIGNS
    ]


def main() -> None:
    """Run, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1_000, help="samples for each design")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the summary")
    options = parser.parse_args()
    rows = table(trials=options.trials)
    write_table(rows, options.out / "detection_at_capacity.csv")
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
