"""How far does the greedy choice of support vectors fit the data it looks at?

    python -m studies.aware.path --jobs 2

Samples as in `studies.aware.credit`, rare share 2 %. After each number of chosen support vectors: M
on the items that the choice uses, on the items that set the threshold, and on 10,000 others. For
the paper's procedure the first two are the same half; cross-fitting separates them, and here always
uses the chosen few. `path.csv` has the means of M.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics.pairwise import rbf_kernel

from shortlist import adjusted_detection_score, calibrate_threshold
from shortlist._core.folds import random_parts
from shortlist.aware import CapacityAwareSVC
from studies.aware.credit import SEED
from studies.credit_data import clients
from studies.harness import markdown, run_stored, study_parser
from studies.paper.credit_protocol import capacity_of, draw_split
from studies.tables import Table, read_table, select_rows, summarise, write_table

HERE = Path(__file__).parent
PREVALENCE, GAMMA = 0.02, 0.1
STEPS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30)
SAMPLES = ("seen", "calibration", "test")
PROCEDURES = {
    "paper": {"selection": "paper", "tie_break": "first"},
    "cross-fit": {"fall_back": False},
}
HELD_OUT = {"paper": 0.5, "cross-fit": 0.25}  # for the threshold, in these procedures


@dataclass(frozen=True)
class Course:
    """One draw and capacity."""

    repetition: int
    b: int


def run_path(config: Course) -> Table:
    """Choose support vectors by both procedures and record M after each step."""
    rng = np.random.default_rng([SEED, config.repetition])
    split = draw_split(*clients(), prevalence=PREVALENCE, rng=rng)
    mean, scale = split.X_train.mean(axis=0), split.X_train.std(axis=0)
    X, X_test = (split.X_train - mean) / scale, (split.X_test - mean) / scale
    capacity = capacity_of(config.b, PREVALENCE)
    rows: Table = []
    for name, options in PROCEDURES.items():
        seed = config.repetition
        rng = np.random.default_rng(seed)
        ((rest, held_out),) = random_parts(split.y_train, HELD_OUT[name], rng)
        # The paper chooses on the half that sets the threshold; it is the half held out here.
        learned_on = np.arange(len(X)) if name == "paper" else rest
        model = CapacityAwareSVC(
            capacity, C=1, gamma=GAMMA, rare_label=1, random_state=seed, **options
        ).fit(X[learned_on], split.y_train[learned_on])
        seen = np.mean(np.atleast_2d(model.detection_path_), axis=0)
        calibration, test = (prefix_scores(model, items) for items in (X[held_out], X_test))
        for step in STEPS:
            scores = calibration[step - 1], test[step - 1]
            threshold = calibrate_threshold(scores[0], capacity, guarantee="plug-in").value
            found = [
                adjusted_detection_score(y, some > threshold, capacity=capacity)
                for y, some in zip(
                    (split.y_train[held_out] == 1, split.y_test == 1), scores, strict=True
                )
            ]
            values = dict(zip(SAMPLES, [seen[step - 1], *found], strict=True))
            rows.append(
                {"repetition": seed, "b": config.b, "procedure": name, "chosen": step}
                | {sample: round(float(value), 5) for sample, value in values.items()}
            )
    return rows


def prefix_scores(model: CapacityAwareSVC, X: Any) -> Any:
    """Return the scores of items (columns) after each step (rows), averaged over all paths."""
    n_paths = len(np.atleast_2d(model.support_path_))
    terms = rbf_kernel(X, model.support_vectors_, gamma=GAMMA) * model.dual_coef_
    return np.cumsum(terms.reshape(len(X), n_paths, -1).sum(axis=1), axis=1).T


def draw(rows: Table, path: Path) -> Path:
    """Save a picture: a row of panels for each procedure, a panel for each capacity."""
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey="col")
    for row, procedure in zip(axes, PROCEDURES, strict=True):
        for axis, b in zip(row, (1, 2, 3), strict=True):
            some = select_rows(rows, procedure=procedure, b=b)
            for sample, colour in zip(SAMPLES, ("tab:orange", "tab:blue", "black"), strict=True):
                points = select_rows(some, sample=sample)
                axis.errorbar(
                    [p["chosen"] for p in points],
                    [p["mean"] for p in points],
                    yerr=[2 * p["error"] for p in points],
                    marker=".",
                    capsize=2,
                    color=colour,
                    linestyle="--" if sample == "calibration" else "-",
                    label={"seen": "chosen on"}.get(sample, sample),
                )
            axis.set_title(f"{procedure}, b = {b}", fontsize=9)
            axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    figure.supxlabel("support vectors chosen, for each path", fontsize=9)
    figure.supylabel("M, with two standard errors", fontsize=9)
    figure.savefig(path, dpi=110)
    return path


def summary(table: Table) -> Table:
    """Return the mean of M on each sample, for each procedure, capacity and step."""
    return [
        {**{name: row[name] for name in ("procedure", "b", "chosen")}, "sample": sample}
        | {name: row[name] for name in ("mean", "error", "count")}
        for sample in SAMPLES
        for row in summarise(table, ["procedure", "b", "chosen"], sample)
    ]


def in_words(rows: Table) -> str:
    """Return the means as a Markdown table."""
    lines = []
    for procedure in PROCEDURES:
        for step in (1, 3, 10, 30):
            cells = []
            for b in (1, 2, 3):
                some = select_rows(rows, procedure=procedure, chosen=step, b=b)
                cells.append(", ".join(f"{row['mean']:.3f}" for row in some))
            lines.append([procedure, str(step), *cells])
    headings = ["procedure", "chosen", *(f"b = {b}: {', '.join(SAMPLES)}" for b in (1, 2, 3))]
    return markdown(headings, lines)


def main() -> None:
    """Run, save, draw and print."""
    options = study_parser(__doc__, HERE, reps=20).parse_args()
    file = options.out / "path.csv"
    if not options.table:
        configs = [Course(r, b) for r in range(options.reps) for b in (1, 2, 3)]
        rows = run_stored("aware_path", run_path, configs, n_jobs=options.jobs)
        write_table(summary(rows), file)
    draw(read_table(file), options.out / "path.png")
    print(in_words(read_table(file)))


if __name__ == "__main__":
    main()
