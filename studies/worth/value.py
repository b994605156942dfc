"""Value found within a budget of minutes: value * p / effort against simpler orders, and a peer.

    python -m studies.worth.value --reps 20     # minutes; writes value.csv beside this file

Each repetition trains on one half and spends a budget on the other. The orders are paired: they see
the same items, and all but `empulse` the same probabilities (logistic regression, or gradient
boosting on the credit data).

- `stream`: 20,000 + 20,000 simulated transactions. Amounts are lognormal(4, 1.2) (median 55, mean
  112), fraud has a prevalence of about 1 % and depends on six features and weakly on the amount. A
  check takes 5 to 60 minutes, uniformly; the budget is 480 minutes per 10,000 transactions.
- `credit`: 15,000 + 15,000 clients of the credit-default data, the limit balance as value. A check
  takes 5 to 60 minutes; the budget is 2 % of the minutes that all clients would take.
- `overconfident`: the stream, with the log odds of all probabilities tripled.
- `balanced`: the stream, with probabilities of a model that was trained with balanced classes.
- `flattened`: the stream, with the log odds of all probabilities divided by five.
- `unrelated`: the stream, with a recorded amount that says nothing about what a fraud really costs.

`share` is the share of the true value of all rare items that is found, in per cent; `gain` the mean
paired difference to the order by p alone, with its standard error. Data that are in the file
already are not run again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shortlist import Capacity, select
from studies.credit_data import clients
from studies.harness import study_parser

COLUMNS = ["data", "order", "share", "gain", "error", "repetitions"]
HALF = 20_000


def _stream(rng: np.random.Generator) -> tuple[Any, ...]:
    amount = rng.lognormal(4, 1.2, size=2 * HALF)
    X = np.column_stack([rng.normal(size=(2 * HALF, 6)), np.log(amount)])
    risk = X[:, :6] @ [1.2, 0.8, 0.6, 0.4, 0.2, 0.0] + 0.2 * (X[:, 6] - 4)
    y = rng.uniform(size=2 * HALF) < expit(risk - 6.2)
    return X, y, amount, rng.integers(5, 61, size=2 * HALF).astype(float)


def _credit(rng: np.random.Generator) -> tuple[Any, ...]:
    X, y = clients()
    order = rng.permutation(len(y))
    X, y = np.asarray(X)[order], np.asarray(y)[order] == 1
    return X, y, X[:, 0], rng.integers(5, 61, size=len(y)).astype(float)


def _orders(
    X: Any, y: Any, values: Any, efforts: Any, budget: Capacity, model: Any, sharpen: float
) -> Iterator[tuple[str, Any]]:
    """Yield the flags of each order on the second half."""
    half = len(y) // 2
    p = model.fit(X[:half], y[:half]).predict_proba(X[half:])[:, 1]
    p = expit(sharpen * logit(np.clip(p, 1e-12, 1 - 1e-12)))
    v, e = values[half:], efforts[half:]
    yield "value * p / effort", select(p, budget, values=v, efforts=e)
    yield "value * p", _in_order(p * v, e, budget)
    yield "p / effort", select(p, budget, efforts=e)
    yield "p", _in_order(p, e, budget)
    yield "value", _in_order(v, e, budget)
    yield from _peer(X, y, values, e, budget)


def _peer(X: Any, y: Any, values: Any, e: Any, budget: Capacity) -> Iterator[tuple[str, Any]]:
    """Rank by empulse's cost-sensitive logistic regression, if it is installed."""
    try:
        from empulse.models import CSLogitClassifier
    except ImportError:
        return
    half = len(y) // 2
    scaler = StandardScaler().fit(X[:half])
    costs = {"fn_cost": values[:half], "fp_cost": float(np.median(values) * np.mean(y))}
    peer = CSLogitClassifier().fit(scaler.transform(X[:half]), y[:half].astype(int), **costs)
    scores = peer.predict_proba(scaler.transform(X[half:]))[:, 1]
    yield "empulse", _in_order(scores, e, budget)
    yield "empulse / effort", _in_order(scores / e, e, budget)


def _in_order(scores: Any, efforts: Any, budget: Capacity) -> Any:
    """Work down a list until the budget is spent, skipping what does not fit."""
    left, flagged = float(budget.max_effort(len(scores))), np.zeros(len(scores), dtype=bool)
    for item in np.argsort(-scores, kind="stable"):
        if efforts[item] <= left:
            flagged[item] = True
            left -= efforts[item]
            if left < efforts.min():
                break
    return flagged


def _run(data: str, seed: int) -> dict[str, float]:
    """Return the share of the value that each order finds."""
    rng = np.random.default_rng([seed, len(data)])
    X, y, values, efforts = _credit(rng) if data == "credit" else _stream(rng)
    half, true = len(y) // 2, values
    if data == "unrelated":
        values = rng.permutation(values)
    budget = Capacity.effort(480, per=10_000)
    if data == "credit":
        budget = Capacity.effort(round(0.02 * float(efforts[half:].sum())))
    weight = "balanced" if data == "balanced" else None
    logistic = LogisticRegression(max_iter=1000, class_weight=weight)
    model: Any = make_pipeline(StandardScaler(), logistic)
    if data == "credit":
        model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.08, random_state=0)
    sharpen = {"overconfident": 3.0, "flattened": 0.2}.get(data, 1.0)
    worth = np.where(y[half:], true[half:], 0.0)
    return {
        name: 100 * float(worth[flagged].sum() / worth.sum())
        for name, flagged in _orders(X, y, values, efforts, budget, model, sharpen)
    }


def main() -> None:
    """Run all data, and write the table."""
    options = study_parser(__doc__ or "", Path(__file__).parent, reps=20).parse_args()
    path = options.out / "value.csv"
    rows = list(csv.reader(path.open())) if path.exists() else [COLUMNS]
    for data in ("stream", "credit", "overconfident", "balanced", "flattened", "unrelated"):
        if data in {row[0] for row in rows}:
            continue
        runs = [_run(data, seed) for seed in range(options.reps)]
        for name in runs[0]:
            found = np.array([run[name] for run in runs])
            gain = found - np.array([run["p"] for run in runs])
            error = gain.std(ddof=1) / np.sqrt(len(runs))
            numbers = (f"{found.mean():.1f}", f"{gain.mean():+.1f}", f"{error:.1f}")
            rows.append([data, name, *numbers, str(len(runs))])
            print(*rows[-1], sep=", ", flush=True)
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
