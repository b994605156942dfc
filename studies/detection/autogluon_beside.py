"""What does AutoGluon find in 60 seconds of processor time, beside `shortlist fit`?

    python -m venv ag && ag/bin/pip install "autogluon.tabular[lightgbm,catboost,xgboost]==1.6.*"
    python -m studies.detection.autogluon_beside --python ag/bin/python --methods autogluon
    python -m studies.detection.autogluon_beside --methods default thorough quick

The tables are the confirming ones, KEEL's and everyday ones together, in an order that is drawn at
random: `--tables` takes the first so many. Each is halved as in `compare.py`, with its first seed.
Beside it are the ensembles that rank the lists of `fit`, without those of folds for single rows.
Tables that AutoGluon has ranked before are not given to it again: they are in the result.

AutoGluon is installed in an environment of its own, because it pins other versions. It gets the
preset `best_quality`, average precision, no networks and one thread. Its limit counts the clock,
which would punish it on a busy machine: the clock of its process is therefore replaced by one that
counts processor time, before anything of it is imported. `autogluon_beside.csv` has the result,
`..._means.csv` its means over the tables that all methods have ranked, and `..._sizes.csv` those of
the ensembles by list.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SECONDS = 60.0
#: Networks need other packages, and much more time.
WITHOUT = [
    "NN_TORCH",
    "FASTAI",
    "TABM",
    "REALMLP",
    "TABICL",
    "MITRA",
    "REALTABPFN-V2",
    "FT_TRANSFORMER",
]
_SEED = 33


def rank_by_autogluon(folder: Path, seconds: float) -> None:
    """Learn from `learn.parquet`, and write scores of `test.parquet`, in the other environment."""
    begun, clock = time.time(), time.process_time
    time.time = lambda: begun + clock()  # type: ignore[assignment]
    time.perf_counter = time.monotonic = clock  # type: ignore[assignment]
    import pandas as pd
    from autogluon.tabular import TabularPredictor

    learn = pd.read_parquet(folder / "learn.parquet")
    test = pd.read_parquet(folder / "test.parquet")
    predictor = TabularPredictor(
        "is_rare", problem_type="binary", eval_metric="average_precision", path=str(folder / "ag")
    ).fit(
        learn,
        presets="best_quality",
        time_limit=seconds,
        num_cpus=1,
        num_gpus=0,
        excluded_model_types=WITHOUT,
        verbosity=0,
        ag_args_ensemble={"fold_fitting_strategy": "sequential_local"},
    )
    np.save(folder / "scores.npy", predictor.predict_proba(test)[True].to_numpy())
    np.save(folder / "seconds.npy", clock())


@dataclass(frozen=True)
class Half:
    """A table, halved at random, and the method that ranks its other half."""

    table: Any
    method: str
    python: str = field(default="", compare=False)


def run_half(config: Half) -> list[dict[str, Any]]:
    """Rank the test half by one method, and count what it detects."""
    from sklearn.model_selection import train_test_split

    from shortlist import Capacity
    from shortlist.learners import CapacityEnsembleClassifier
    from shortlist.metrics import detection_at_capacity
    from studies.detection.compare import MULTIPLES
    from studies.detection.tables import load_table

    warnings.simplefilter("ignore")
    X, is_rare = load_table(config.table)
    halves = train_test_split(X, is_rare, test_size=0.5, stratify=is_rare, random_state=0)
    X_learn, X_test, learn, test = halves
    if config.method == "autogluon":
        scores, seconds = _by_autogluon(X_learn, learn, X_test, config.python)
    else:
        start = time.process_time()
        ranking = CapacityEnsembleClassifier(
            Capacity.multiple(2), rare_label=True, size=config.method, random_state=0
        ).fit(X_learn, learn)
        seconds, scores = time.process_time() - start, ranking.decision_function(X_test)
    found = {
        f"b{b}": round(detection_at_capacity(test, scores, Capacity.multiple(b)), 5)
        for b in MULTIPLES
    }
    about = {"table": config.table.name, "method": config.method}
    return [about | found | {"seconds": round(seconds, 2)}]


def _by_autogluon(X: Any, is_rare: Any, X_test: Any, python: str) -> tuple[Any, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X.assign(is_rare=is_rare).to_parquet(folder / "learn.parquet")
        X_test.to_parquet(folder / "test.parquet")
        subprocess.run(
            [python, __file__, "--rank", str(folder)], check=True, stdout=subprocess.DEVNULL
        )
        return np.load(folder / "scores.npy"), float(np.load(folder / "seconds.npy"))


def means_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return means by method, and differences to the others with errors over tables."""
    from studies.tables import mean_and_error

    methods = list(dict.fromkeys(row["method"] for row in rows))
    found = {
        (row["table"], row["method"]): np.array([row["b1"], row["b2"], row["b3"]]) for row in rows
    }
    tables = [
        table
        for table in dict.fromkeys(row["table"] for row in rows)
        if all((table, method) in found for method in methods)
    ]
    lines: list[dict[str, Any]] = []
    for method in methods:
        means = np.mean([found[table, method] for table in tables], axis=0)
        spent = [row["seconds"] for row in rows if row["method"] == method]
        line = {"method": method, "tables": len(tables), "seconds": round(np.mean(spent), 2)}
        line |= {f"b{b}": round(mean, 5) for b, mean in enumerate(means, 1)}
        for other in methods:
            each = [float((found[table, method] - found[table, other]).mean()) for table in tables]
            less = mean_and_error(each)
            line[f"less {other}"] = round(less["mean"], 5)
            line[f"its error, {other}"] = round(less["error"], 5)
        lines.append(line)
    return lines


def main() -> None:
    """Run what is missing, save and print."""
    from studies.detection.tables import CONFIRMING, CONFIRMING_EVERYDAY
    from studies.harness import markdown, run_stored, study_parser
    from studies.tables import read_table, write_table

    parser = study_parser(__doc__, HERE, reps=1)
    parser.add_argument("--python", default="", help="the Python that has AutoGluon")
    parser.add_argument("--methods", nargs="+", default=["default", "thorough"])
    parser.add_argument("--tables", type=int, default=48)
    options = parser.parse_args()
    path = options.out / "autogluon_beside.csv"
    every = np.array([*CONFIRMING, *CONFIRMING_EVERYDAY], dtype=object)
    order = np.random.default_rng(_SEED).permutation(every.size)
    if not options.table:
        known = read_table(path) if path.exists() else []
        for method in options.methods:
            kept = [row for row in known if row["method"] == method == "autogluon"]
            done = {row["table"] for row in kept}
            configs = [
                Half(source, method, options.python)
                for source in every[order[: options.tables]]
                if source.name not in done
            ]
            rows = run_stored(f"autogluon_beside_{method}", run_half, configs, n_jobs=options.jobs)
            known = [row for row in known if row["method"] != method] + kept + rows
        write_table(known, path)
    found = read_table(path)
    lists = {"KEEL": CONFIRMING, "everyday": CONFIRMING_EVERYDAY, "both": every}
    names = {name: [source.name for source in sources] for name, sources in lists.items()}
    ours = [row for row in found if row["method"] != "autogluon"]
    sizes = [
        {"list": name} | line
        for name, of in names.items()
        for line in means_of([row for row in ours if row["table"] in of])
    ]
    for name, lines in (("means", means_of(found)), ("sizes", sizes)):
        write_table(lines, options.out / f"autogluon_beside_{name}.csv")
        print(markdown(list(lines[0]), [[str(cell) for cell in line.values()] for line in lines]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        rank_by_autogluon(Path(sys.argv[2]), SECONDS)
    else:
        main()
