"""Which boosted trees would let a thorough ensemble find more? CatBoost, and other settings.

    python -m studies.detection.thorough --side choosing --jobs 2

Each table is halved at random, once. An ensemble of each size ranks the second half, and so does
every candidate: settings of CatBoost and LightGBM that AutoGluon's public portfolios list as
complementing each other, here with fewer and larger steps. All candidates get the columns as codes;
"CatBoost, texts" gets the texts themselves. As for members of the ensemble, the slope of a line
through the log-odds of three inner folds says how far to trust a candidate. `thorough_<side>.csv`
has what mixtures find: the log-odds of the ensemble, and those of one or several candidates, times
their slopes, with a share of all weight.

Only the choosing tables were looked at, and nothing was chosen: no mixture is ahead of the thorough
ensemble by more than its error.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split

from shortlist import Capacity
from shortlist.learners import CapacityEnsembleClassifier
from shortlist.learners._fitting import combined_scores, fit_line
from shortlist.metrics import detection_at_capacity
from studies.detection.compare import MULTIPLES, SIDES
from studies.detection.tables import Source, load_table
from studies.harness import RAW, markdown, run_stored, study_parser
from studies.tables import Table, mean_and_error, read_table, write_table

HERE = Path(__file__).parent
SHARES = (0.2, 0.35)
_SEED = 1


def _catboost(depth: int, penalty: float, rate: float, stages: int = 300) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=stages,
        depth=depth,
        l2_leaf_reg=penalty,
        learning_rate=rate,
        random_seed=_SEED,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )


def _lightgbm(leaves: int, least: int, features: float, rate: float, **more: Any) -> Any:
    return LGBMClassifier(
        n_estimators=200,
        num_leaves=leaves,
        min_child_samples=least,
        colsample_bytree=features,
        learning_rate=rate,
        random_state=_SEED,
        n_jobs=1,
        verbose=-1,
        **more,
    )


CANDIDATES: dict[str, Callable[[], Any]] = {
    "CatBoost, depth 6": lambda: _catboost(6, 2.15, 0.069, 200),
    "CatBoost, depth 4": lambda: _catboost(4, 4.56, 0.049),
    "CatBoost, texts": lambda: _catboost(6, 2.15, 0.069, 200),
    "LightGBM, 53 leaves": lambda: _lightgbm(53, 14, 0.7, 0.03),
    "LightGBM, random splits": lambda: _lightgbm(16, 48, 0.56, 0.05, extra_trees=True),
}
#: Mixtures of several candidates, with equal weights within their share.
TOGETHER = {
    "CatBoost, depths 6 and 4": ("CatBoost, depth 6", "CatBoost, depth 4"),
    "all of these": ("CatBoost, depth 6", "CatBoost, depth 4", "LightGBM, random splits"),
}


@dataclass(frozen=True)
class Half:
    """A table, halved at random."""

    table: Source


def run_half(config: Half) -> Table:
    """Score the second half by the ensembles and by each candidate, and keep all scores."""
    warnings.simplefilter("ignore")
    X, is_rare = load_table(config.table)
    X_learn, X_test, learn, test = train_test_split(
        X, is_rare, test_size=0.5, stratify=is_rare, random_state=_SEED
    )
    scores: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for size in ("default", "thorough"):
        start = time.process_time()
        ensemble = CapacityEnsembleClassifier(
            Capacity.multiple(2), rare_label=True, size=size, random_state=_SEED
        ).fit(X_learn, learn)
        seconds[size] = time.process_time() - start
        scores[size] = ensemble.decision_function(X_test)
    texts = [name for name in X if X[name].dtype == object]
    codes = [ensemble.columns_["codes"].transform(half) for half in (X_learn, X_test)]
    for name, make in CANDIDATES.items():
        start = time.process_time()
        halves, options = codes, {}
        if name.endswith("texts"):
            halves = [X_learn.to_numpy(), X_test.to_numpy()]
            options = {"cat_features": [list(X).index(text) for text in texts]}
        scores[name] = _trusted(make, halves, learn, options)
        seconds[name] = time.process_time() - start
    path = RAW / "thorough" / f"{config.table.name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **scores, is_rare=test)
    about = {"table": config.table.name}
    return [about | {"method": name, "seconds": spent} for name, spent in seconds.items()]


def _trusted(make: Callable[[], Any], halves: Any, is_rare: Any, options: Any) -> Any:
    """Return log-odds of the second half, times the slope that inner folds of the first give."""
    learn, test = halves
    unseen = np.zeros(len(learn))
    folds = StratifiedKFold(3, shuffle=True, random_state=_SEED)
    for others, own in folds.split(learn, is_rare):
        model = make().fit(learn[others], is_rare[others], **options)
        unseen[own] = combined_scores([model], learn[own])
    model = make().fit(learn, is_rare, **options)
    return fit_line(unseen, is_rare).slope * combined_scores([model], test)


def detections(table: str) -> dict[str, float]:
    """Return the mean detection at b = 1, 2, 3 of each method and mixture."""
    with np.load(RAW / "thorough" / f"{table}.npz") as kept:
        scores = {name: kept[name] for name in kept.files}
    is_rare = scores.pop("is_rare")
    mixed = dict(scores)
    groups = {name: (name,) for name in CANDIDATES} | TOGETHER
    for share in SHARES:
        for name, members in groups.items():
            own = np.mean([scores[member] for member in members], axis=0)
            for size in ("default", "thorough"):
                whole = (1 - share) * scores[size] + share * own
                mixed[f"{size}, {share} of {name}"] = whole
    return {
        name: float(
            np.mean([detection_at_capacity(is_rare, s, Capacity.multiple(b)) for b in MULTIPLES])
        )
        for name, s in mixed.items()
    }


def summarise(tables: list[str], seconds: Table) -> Table:
    """Return means, and differences to the default ensemble, over tables."""
    found = [detections(table) for table in tables]
    spent: dict[str, list[float]] = {}
    for row in seconds:
        spent.setdefault(row["method"], []).append(row["seconds"])
    rows = []
    for name in found[0]:
        less = mean_and_error([each[name] - each["default"] for each in found])
        rows.append(
            {
                "method": name,
                "tables": len(tables),
                "detection": round(float(np.mean([each[name] for each in found])), 5),
                "difference": round(less["mean"], 5),
                "error": round(less["error"], 5),
                "seconds": round(float(np.mean(spent[name])), 2) if name in spent else "",
            }
        )
    return rows


def main() -> None:
    """Run, save and print, the best first."""
    parser = study_parser(__doc__, HERE, reps=1)
    parser.add_argument("--side", default="choosing", choices=["choosing", "confirming"])
    options = parser.parse_args()
    path = options.out / f"thorough_{options.side}.csv"
    if not options.table:
        sources = SIDES[options.side]
        if options.side == "confirming":
            sources = (*sources, *SIDES["everyday"])
        configs = [Half(source) for source in sources]
        seconds = run_stored(f"thorough_{options.side}", run_half, configs, n_jobs=options.jobs)
        write_table(summarise([source.name for source in sources], seconds), path)
    rows = sorted(read_table(path), key=lambda row: -row["difference"])
    print(
        markdown(
            ["method", "detection", "less default", "seconds"],
            [
                [
                    row["method"],
                    f"{row['detection']:.3f}",
                    f"{row['difference']:+.4f} ± {row['error']:.4f}",
                    str(row["seconds"]),
                ]
                for row in rows
            ],
        )
    )


if __name__ == "__main__":
    main()
