"""Does learning for the capacity pay? A paired study on the credit-default data.

    SHORTLIST_DATA=<folder of taiwan_credit_default.csv.gz> python benchmarks/study_aware.py

The paper's protocol: all 30,000 rows, a rare share of 2 %, 8,000 clients to learn from, 10,000
others to test on, standardised; capacity b times 2 %, with b = 1, 2, 3. Each repetition draws anew,
and every method sees the same draw and the same seed. No default was chosen on these draws.
Finished rows are kept in `study_aware.csv`, so that a second call goes on where the first was
stopped; `--table` prints what there is.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from _measure import table
from shortlist import Capacity, CapacityClassifier, adjusted_detection_score
from shortlist.aware import CapacityAwareLinearClassifier, CapacityAwareSVC

RESULTS = Path(__file__).with_name("study_aware.csv")
FIELDS = ["repetition", "b", "method", "calibration", "test", "batch", "flagged"]
PREVALENCE, N_LEARN, N_TEST = 0.02, 8_000, 10_000
MULTIPLES = (1, 2, 3)
FIRST_SEED = 1000
PAPER = {"selection": "paper", "tie_break": "first"}


class Classical:
    """The paper's g: a support vector machine on all 8,000 clients, with its own threshold."""

    def __init__(self) -> None:
        self.machine = SVC(C=1, gamma=0.1)

    def fit(self, X: Any, y: Any) -> Classical:
        """Fit the machine."""
        self.machine.fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        """Predict by the sign of its decision function."""
        return self.machine.predict(X)


def aware_svc(**options: Any) -> Callable[[Capacity, int], CapacityAwareSVC]:
    """Return a maker of the capacity-aware support vector machine."""
    return lambda capacity, seed: CapacityAwareSVC(
        capacity, C=1, gamma=0.1, rare_label=1, random_state=seed, **options
    )


def aware_linear(loss: str) -> Callable[[Capacity, int], CapacityAwareLinearClassifier]:
    """Return a maker of the capacity-aware linear classifier."""
    return lambda capacity, seed: CapacityAwareLinearClassifier(
        capacity, loss=loss, rare_label=1, random_state=seed
    )


def post_hoc(model: Any) -> Callable[[Capacity, int], CapacityClassifier]:
    """Return a maker of the model that is only cut at the capacity, fitted on one half."""
    return lambda capacity, seed: CapacityClassifier(
        model, capacity=capacity, rare_label=1, random_state=seed
    )


METHODS: dict[str, Callable[[Capacity, int], Any]] = {
    "logistic, cut": post_hoc(LogisticRegression(max_iter=1000)),
    "linear, detection": aware_linear("detection"),
    "linear, pat-mat": aware_linear("pat-mat"),
    "linear, top-push": aware_linear("top-push"),
    "svm, g": lambda capacity, seed: Classical(),
    "svm, g_b": post_hoc(SVC(C=1, gamma=0.1)),
    "svm, g_b* (paper, 1)": aware_svc(max_support=1, **PAPER),
    "svm, g_b* (paper, 3)": aware_svc(max_support=3, **PAPER),
    "svm, g_b* (paper, 10)": aware_svc(max_support=10, **PAPER),
    "svm, g_b* (paper, 30)": aware_svc(**PAPER),
    "svm, g_b* (paper, best-prefix)": aware_svc(variant="best-prefix", **PAPER),
    "svm, g_b* (paper, wider)": aware_svc(selection="paper"),
    "svm, cross-fit": aware_svc(),
}
FAMILIES = {"all": "", "svm": "svm", "linear": ("linear", "logistic")}
#: Aware methods, each with the one it has to beat.
PAIRS = [
    ("svm, g_b", "svm, g"),
    ("svm, g_b* (paper, 30)", "svm, g_b"),
    ("svm, g_b* (paper, best-prefix)", "svm, g_b* (paper, 30)"),
    ("svm, g_b* (paper, wider)", "svm, g_b* (paper, 30)"),
    ("svm, cross-fit", "svm, g_b* (paper, 30)"),
    ("svm, cross-fit", "svm, g_b"),
    ("linear, detection", "logistic, cut"),
    ("linear, pat-mat", "logistic, cut"),
    ("linear, top-push", "logistic, cut"),
]


def load() -> tuple[Any, Any]:
    """Read the 30,000 clients."""
    path = Path(os.environ["SHORTLIST_DATA"]) / "taiwan_credit_default.csv.gz"
    data = pd.read_csv(path).drop(columns="ID", errors="ignore")
    return data.iloc[:, :-1].to_numpy(float), data.iloc[:, -1].to_numpy()


def draw(X: Any, y: Any, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Draw disjoint samples with the rare share, standardised by the first."""
    rare, common = (rng.permutation(np.flatnonzero(y == label)) for label in (1, 0))
    n_rare = [round(PREVALENCE * n) for n in (N_LEARN, N_TEST)]
    n_common = [N_LEARN - n_rare[0], N_TEST - n_rare[1]]
    learn = np.concatenate([rare[: n_rare[0]], common[: n_common[0]]])
    test = np.concatenate([rare[n_rare[0] :][: n_rare[1]], common[n_common[0] :][: n_common[1]]])
    mean, scale = X[learn].mean(axis=0), X[learn].std(axis=0)
    return (X[learn] - mean) / scale, y[learn], (X[test] - mean) / scale, y[test]


def measure(method: str, b: int, seed: int, sample: tuple[Any, Any, Any, Any]) -> dict[str, Any]:
    """Fit one method, and return what it finds in calibration, test and the test as a batch."""
    X, y, X_test, y_test = sample
    capacity = Capacity.fraction(round(b * PREVALENCE, 6))
    model = METHODS[method](capacity, seed).fit(X, y)
    predicted = model.predict(X_test)
    row = {
        "calibration": calibration_detection(model),
        "test": adjusted_detection_score(y_test, predicted, capacity=capacity, rare_label=1),
        "flagged": np.mean(predicted == 1),
        "batch": np.nan,
    }
    if hasattr(model, "select"):
        row["batch"] = np.mean(model.select(X_test)[y_test == 1])
    return row


def calibration_detection(model: Any) -> float:
    """Return the detection that the calibration sample itself shows."""
    if not hasattr(model, "_samples"):
        return np.nan
    (sample,) = model._samples
    return float(np.mean(sample.scores[sample.is_rare] > model.threshold_))


def missing(n_repetitions: int, methods: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield what is not in the table yet."""
    done = set()
    if RESULTS.exists():
        known = pd.read_csv(RESULTS)
        done = set(zip(known["repetition"], known["b"], known["method"], strict=True))
    for repetition in range(n_repetitions):
        for b in MULTIPLES:
            for method in methods:
                if (repetition, b, method) not in done:
                    yield repetition, b, method


def run(n_repetitions: int, methods: list[str]) -> None:
    """Measure what is missing, and write each row as soon as it is known."""
    X, y = load()
    drawn, sample = -1, None
    for repetition, b, method in missing(n_repetitions, methods):
        if repetition != drawn:
            drawn, sample = repetition, draw(X, y, np.random.default_rng(FIRST_SEED + repetition))
        row = measure(method, b, repetition, sample)
        numbers = {name: f"{value:.6g}" for name, value in row.items()}
        is_new = not RESULTS.exists()
        with RESULTS.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow({"repetition": repetition, "b": b, "method": method, **numbers})


def mean_and_error(values: Any) -> str:
    """Format a mean with its standard error."""
    return f"{values.mean():.4f} ± {values.std() / np.sqrt(len(values)):.4f}"


def summary() -> str:
    """Return the means of all methods, and the paired differences."""
    results = pd.read_csv(RESULTS)
    wide = results.pivot(index="repetition", columns=["method", "b"], values="test")
    rows = []
    for method in METHODS:
        for b in MULTIPLES:
            some = results[(results["method"] == method) & (results["b"] == b)]
            if len(some):
                cells = [mean_and_error(some[name]) for name in ("calibration", "test", "batch")]
                rows.append([method, str(b), str(len(some)), *cells])
    pairs = []
    for method, other in PAIRS:
        cells = []
        for b in MULTIPLES:
            if {(method, b), (other, b)} <= set(wide.columns):
                difference = (wide[method, b] - wide[other, b]).dropna()
                cells.append(f"{difference.mean():+.4f} ± {difference.sem():.4f}")
        if len(cells) == len(MULTIPLES):
            pairs.append([method, other, *cells])
    headings = ["method", "b", "repetitions", "M, calibration", "M, test", "top of the test batch"]
    return (
        table(headings, rows)
        + "\n\n"
        + table(["method", "against", *(f"b = {b}" for b in MULTIPLES)], pairs)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--family", default="all", choices=list(FAMILIES), help="only one family")
    parser.add_argument("--table", action="store_true", help="only print the results")
    arguments = parser.parse_args()
    if not arguments.table:
        chosen = [name for name in METHODS if name.startswith(FAMILIES[arguments.family])]
        run(arguments.repetitions, chosen)
    print(summary())
