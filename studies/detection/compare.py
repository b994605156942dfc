"""What does `shortlist fit` find on tables that nobody tuned it for, beside other models?

    python -m studies.detection.compare --side confirming --jobs 2

Each repetition splits a table into two stratified halves. All methods learn from the same half and
rank the other, of which the highest scores are taken: b times as many as there are rare rows, with
b = 1, 2, 3. `shortlist fit` is asked for b = 2 and its ranking is judged at all three.

`tables.py` says which tables chose the settings and which confirm. `compare.csv` has the mean
detection, `compare_ranks.csv` mean ranks and paired differences, with standard errors over tables.
`--automl` adds FLAML, on the first halves only, with 40 seconds on the clock: about what
`shortlist fit` took on the same busy machine, and five times its processor time.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata
from sklearn.model_selection import train_test_split

from shortlist import Capacity
from shortlist.metrics import detection_at_capacity
from shortlist.tables import fit_table
from studies.detection.tables import (
    CHOOSING,
    CHOOSING_EVERYDAY,
    CONFIRMING,
    CONFIRMING_EVERYDAY,
    Source,
    load_table,
)
from studies.harness import markdown, run_stored, study_parser
from studies.tables import Table, mean_and_error, read_table, write_table

HERE = Path(__file__).parent
MULTIPLES = (1, 2, 3)
CAPACITY = Capacity.multiple(2)  # what `fit` is asked for
SIDES = {
    "choosing": (*CHOOSING, *CHOOSING_EVERYDAY),
    "confirming": CONFIRMING,
    "everyday": CONFIRMING_EVERYDAY,
}
OURS = "shortlist fit"
AUTOML_SECONDS = 40.0


@dataclass(frozen=True)
class Split:
    """One table, halved at random, and the methods to compare on it."""

    side: str
    table: Source
    repetition: int
    methods: str


def run_split(config: Split) -> Table:
    """Halve a table, rank one half by every method, and count what it detects."""
    warnings.simplefilter("ignore")
    X, is_rare = load_table(config.table)
    X_learn, X_test, learn, test = train_test_split(
        X, is_rare, test_size=0.5, stratify=is_rare, random_state=config.repetition
    )
    rows: Table = []
    for name, scores, seconds in _scores(config, (X_learn, learn), X_test):
        for b in MULTIPLES:
            found = detection_at_capacity(test, scores, Capacity.multiple(b))
            rows.append(
                {
                    "side": config.side,
                    "table": config.table.name,
                    "repetition": config.repetition,
                    "method": name,
                    "b": b,
                    "detection": round(found, 5),
                    "seconds": round(seconds, 2),
                }
            )
    return rows


def _scores(config: Split, learn: Any, X_test: Any) -> Any:
    from studies.detection.peers import automl_scores, peer_scores

    seed = config.repetition
    if config.methods == "peers":
        for name, scores in peer_scores(*learn, X_test, seed).items():
            yield name, scores, float("nan")
        return
    if config.methods == "automl":
        yield "FLAML", automl_scores(*learn, X_test, seed, AUTOML_SECONDS), AUTOML_SECONDS
        return
    size = config.methods if config.methods in ("quick", "thorough") else "default"
    start = time.process_time()
    fitted = fit_as_command(*learn, seed=seed, size=size)
    seconds = time.process_time() - start
    name = OURS if size == "default" else f"{OURS}, {size}"
    yield name, scores_as_command(fitted.model, X_test), seconds


def fit_as_command(
    X: Any, is_rare: Any, *, seed: int = 0, capacity: Capacity = CAPACITY, **options: Any
) -> Any:
    """Fit as the command does: from a file, with its defaults."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        X.assign(is_rare=np.where(is_rare, "yes", "no")).to_csv(path, index=False)
        return fit_table(
            path,
            target="is_rare",
            rare="yes",
            capacity=capacity,
            random_state=seed,
            **options,
        )


def scores_as_command(model: Any, X: Any) -> Any:
    """Score rows as the command does: from a file, read as the fit was."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        X.to_csv(path, index=False)
        with model.schema.open(path) as source:
            return model.classifier.score_samples(model.schema.read(source).X)


def summarise(rows: Table) -> tuple[Table, Table]:
    """Return the mean detection by method and b, and mean ranks with paired differences."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    by_table: dict[tuple[str, str, int], list[float]] = {}
    for row in rows:
        by_table.setdefault((row["table"], row["method"], row["b"]), []).append(row["detection"])
    means = {key: float(np.mean(values)) for key, values in by_table.items()}
    complete = [
        table
        for table in dict.fromkeys(row["table"] for row in rows)
        if all((table, method, b) in means for method in methods for b in MULTIPLES)
    ]
    found = np.array([[[means[t, m, b] for b in MULTIPLES] for m in methods] for t in complete])
    ranks = np.mean([rankdata(-found[..., k].round(9), axis=1) for k in range(3)], axis=0)
    ours = found[:, [methods.index(OURS)]]
    detection = [
        {"method": method, "b": b, **mean_and_error(found[:, place, k].tolist())}
        for place, method in enumerate(methods)
        for k, b in enumerate(MULTIPLES)
    ]
    compared = []
    for place, method in enumerate(methods):
        behind = mean_and_error((found[:, place] - ours[:, 0]).mean(axis=1).tolist())
        compared.append(
            {
                "method": method,
                "tables": len(complete),
                "mean_rank": round(float(ranks[:, place].mean()), 3),
                "difference": round(behind["mean"], 5),
                "error": round(behind["error"], 5),
            }
        )
    return detection, compared


def in_words(detection: Table, compared: Table) -> str:
    """Return both summaries as one Markdown table, the best mean rank first."""
    means = {(row["method"], row["b"]): row["mean"] for row in detection}
    rows = [
        [
            row["method"],
            *(f"{means[row['method'], b]:.3f}" for b in MULTIPLES),
            f"{row['mean_rank']:.2f}",
            f"{row['difference']:+.3f} ± {row['error']:.3f}",
        ]
        for row in sorted(compared, key=lambda row: row["mean_rank"])
    ]
    headings = ["method", *(f"b = {b}" for b in MULTIPLES), "mean rank", "less ours"]
    return markdown(headings, rows)


def draw(compared: Table, path: Path) -> Path:
    """Save a picture of the paired differences, with two standard errors."""
    shown = sorted(compared, key=lambda row: row["difference"])
    figure = Figure(figsize=(7, 0.35 * len(shown) + 1), layout="constrained")
    axes = figure.subplots()
    axes.errorbar(
        [row["difference"] for row in shown],
        range(len(shown)),
        xerr=[2 * row["error"] for row in shown],
        fmt="o",
        capsize=3,
    )
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [row["method"] for row in shown])
    axes.set(xlabel="detection less that of shortlist fit, mean over b = 1, 2, 3 and tables")
    figure.savefig(path, dpi=110)
    return path


def main() -> None:
    """Run, save, draw and print."""
    parser = study_parser(__doc__, HERE, reps=2)
    parser.add_argument("--side", default="confirming", choices=list(SIDES))
    parser.add_argument("--methods", nargs="+", default=["default", "quick", "peers"])
    parser.add_argument("--automl", action="store_true", help="also FLAML, in the same time")
    options = parser.parse_args()
    names = [f"compare{suffix}_{options.side}.csv" for suffix in ("", "_ranks")]
    if not options.table:
        methods = [*options.methods, *(["automl"] if options.automl else [])]
        configs = [
            Split(options.side, table, repetition, method)
            for repetition in range(options.reps)
            for method in methods
            for table in SIDES[options.side]
            if method != "automl" or repetition == 0
        ]
        rows = run_stored("detection_compare", run_split, configs, n_jobs=options.jobs)
        for part, name in zip(summarise(rows), names, strict=True):
            write_table(part, options.out / name)
    detection, compared = (read_table(options.out / name) for name in names)
    draw(compared, options.out / f"compare_{options.side}.png")
    print(in_words(detection, compared))


if __name__ == "__main__":
    main()
