"""How presets were chosen on the credit data, and how much they gain there over the paper's.

    python -m studies.learners.presets --jobs 2

Some clients of the credit data are reserved for the choice: training samples of the paper's size
and prevalence, which share their common clients and have different rare clients. Every setting
of a small grid is cross-validated on these samples by the detection of `capacity_scorer`, averaged
over b = 1, 2, 3. The best setting that also suits small tables became the preset; the presets of
today, except that of densities, were chosen on other tables (docs/appendix/detection-study.md), and
`preset_gain.csv` is about the former ones. The comparison with the paper's presets uses only the
other clients, which played no part in the choice.

`preset_choice.csv` has the mean detection of every setting, `preset_gain.csv` the mean M of both
presets and their paired difference.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from shortlist import capacity_scorer
from shortlist.learners import make_learner
from shortlist.learners.recipes import FAMILIES
from studies.credit_data import clients
from studies.harness import plain_boosting, run_stored, single_threaded, study_parser
from studies.learners.preset_grids import GRIDS, TOO_LARGE
from studies.paper.credit_protocol import (
    capacity_of,
    draw_split,
    fit_scores,
    judge_threshold,
)
from studies.tables import Table, mean_and_error, read_table, summarise, write_table

HERE = Path(__file__).parent


@dataclass(frozen=True)
class PresetsConfig:
    """Settings of the study: of the `reserved` samples, `samples` take part in a choice."""

    families: tuple[str, ...] = FAMILIES
    prevalence: float = 0.02
    multiples: tuple[float, ...] = (1, 2, 3)
    reserved: int = 10
    samples: int = 2
    folds: int = 5
    repetitions: int = 30
    n_test: int = 7_000
    seed: int = 1


#: Two choices. Settings of networks differ less from each other, and from the paper's, than those
#: of other families: all reserved samples choose among them, on halves as in the comparison.
CHOICES = (
    PresetsConfig(families=tuple(family for family in FAMILIES if family != "network")),
    PresetsConfig(families=("network",), samples=10, folds=2),
)


@dataclass(frozen=True)
class Trial:
    """One setting on one sample of the choice, or one split of the comparison."""

    family: str
    setting: str
    repetition: int
    config: PresetsConfig


def choice_trials(config: PresetsConfig) -> list[Trial]:
    """List every setting on every sample; the config is one of `CHOICES`."""
    return [
        Trial(family, in_words(setting), sample, config)
        for family in config.families
        for setting in ParameterGrid(GRIDS[family])
        for sample in range(config.samples)
    ]


def gain_trials(config: PresetsConfig) -> list[Trial]:
    """List paired splits of clients that played no part in the choice."""
    return [
        Trial(family, "presets", repetition, config)
        for repetition in range(config.repetitions)
        for family in config.families
    ]


def validate(trial: Trial) -> Table:
    """Cross-validate one setting on one sample."""
    X, y, samples, _ = shared_out(trial.config)
    rows = samples[trial.repetition]
    settings = {in_words(setting): setting for setting in ParameterGrid(GRIDS[trial.family])}
    tuned = plain_boosting() if trial.family == "boosting" else make_learner(trial.family)
    model = single_threaded(tuned).set_params(**settings[trial.setting])
    scorers = [capacity_scorer(capacity, rare_label=1) for capacity in _capacities(trial.config)]
    folds = StratifiedKFold(trial.config.folds, shuffle=True, random_state=trial.repetition)
    found = []
    for number, (train, held_out) in enumerate(folds.split(rows, y[rows])):
        # Another seed for each fold: no setting wins by a lucky seed.
        fitted = _seeded(model, number).fit(X[rows[train]], y[rows[train]])
        found += [scorer(fitted, X[rows[held_out]], y[rows[held_out]]) for scorer in scorers]
    names = {"family": trial.family, "setting": trial.setting, "sample": trial.repetition}
    return [{**names, "detection": float(np.mean(found))}]


def judge_presets(trial: Trial) -> Table:
    """Fit both presets on one half of a training sample, calibrate on the other, and judge."""
    X, y, _, others = shared_out(trial.config)
    config, rng = trial.config, np.random.default_rng([trial.config.seed, trial.repetition])
    n_test = config.n_test
    split = draw_split(X[others], y[others], prevalence=config.prevalence, rng=rng, n_test=n_test)
    fit, calibration = split.fit_half, split.calibration_half
    table = []
    for preset in ("paper", "recommended"):
        if preset == "paper" and trial.family in ("boosting", "logistic"):
            continue
        model = single_threaded(make_learner(trial.family, preset, random_state=trial.repetition))
        score = fit_scores(model, split.X_train[fit], split.y_train[fit])
        unseen, test = score(split.X_train[calibration]), score(split.X_test)
        for b, capacity in zip(config.multiples, _capacities(config), strict=True):
            names = {"repetition": trial.repetition, "family": trial.family, "preset": preset}
            outcome = judge_threshold(unseen, test, split.y_test, capacity)
            table.append({**names, "multiple": b, **asdict(outcome)})
    return table


def choices(table: Table) -> Table:
    """Return the mean detection of each setting."""
    return summarise(table, ["family", "setting"], "detection")


def best_settings(summary: Table) -> dict[str, str]:
    """Return the setting of each family with the highest mean detection."""
    best: dict[str, Any] = {}
    for row in summary:
        better = row["mean"] > best.get(row["family"], {"mean": -1.0})["mean"]
        if better and row["setting"] not in TOO_LARGE:
            best[row["family"]] = row
    return {family: row["setting"] for family, row in best.items()}


def gains(table: Table) -> Table:
    """Return M of the paper's preset, of the recommended one, and their paired difference.

    A family without a preset in the paper is compared with the paper's forest, its best learner.
    """
    values = {
        (row["family"], row["preset"], row["multiple"], row["repetition"]): row[
            "adjusted_detection"
        ]
        for row in table
    }
    rows = []
    for family, multiple in dict.fromkeys((r["family"], r["multiple"]) for r in table):
        baseline = family if family not in ("boosting", "logistic") else "forest"
        repetitions = sorted({r["repetition"] for r in table if r["family"] == family})
        if (baseline, "paper", multiple, repetitions[0]) not in values:
            continue  # the forest was not run
        ours = [values[family, "recommended", multiple, r] for r in repetitions]
        papers = [values[baseline, "paper", multiple, r] for r in repetitions]
        difference = mean_and_error([a - b for a, b in zip(ours, papers, strict=True)])
        rows.append(
            {
                "family": family,
                "multiple": multiple,
                "paper": float(np.mean(papers)),
                "recommended": float(np.mean(ours)),
                "difference": difference["mean"],
                "error": difference["error"],
                "count": difference["count"],
            }
        )
    return rows


def draw(rows: Table, path: Path) -> Path:
    """Save a picture of the paired differences, with two standard errors."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    families = list(dict.fromkeys(row["family"] for row in rows))
    for shift, b in enumerate(dict.fromkeys(row["multiple"] for row in rows)):
        chosen = [row for row in rows if row["multiple"] == b]
        axes.errorbar(
            [families.index(row["family"]) + 0.15 * (shift - 1) for row in chosen],
            [row["difference"] for row in chosen],
            yerr=[2 * row["error"] for row in chosen],
            fmt="o",
            capsize=3,
            label=f"b = {b}",
        )
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_xticks(range(len(families)), families)
    axes.set(ylabel="M, recommended minus paper")
    axes.legend()
    figure.savefig(path, dpi=110)
    return path


def _seeded(model: Any, seed: int) -> Any:
    """Return a copy in which every part that draws random numbers starts from the seed."""
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return clone(model).set_params(**dict.fromkeys(names, seed))


def in_words(setting: dict[str, Any]) -> str:
    """Return the names and values of a setting as text."""
    return ", ".join(" ".join(f"{name}={value!r}".split()) for name, value in setting.items())


@cache
def shared_out(config: PresetsConfig) -> tuple[Any, Any, list[Any], Any]:
    """Return the data, the samples of the choice, and all clients outside these samples."""
    X, y = clients()
    rng = np.random.default_rng(config.seed)
    rare, common = rng.permutation(np.flatnonzero(y == 1)), rng.permutation(np.flatnonzero(y == 0))
    n_rare = round(config.prevalence * 8_000)
    shared = common[: 8_000 - n_rare]
    samples = [
        np.concatenate([rare[i * n_rare : (i + 1) * n_rare], shared])
        for i in range(config.reserved)
    ]
    others = np.setdiff1d(np.arange(y.size), np.concatenate(samples))
    return X, y, samples, others


def _capacities(config: PresetsConfig) -> list[Any]:
    return [capacity_of(b, config.prevalence) for b in config.multiples]


def main() -> None:
    """Run, save, draw and print."""
    parser = study_parser(__doc__, HERE, reps=30)
    parser.add_argument("--family", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    options = parser.parse_args()
    if not options.table:
        how, wanted = {"n_jobs": options.jobs}, options.family
        trials = [t for c in CHOICES for t in choice_trials(c) if t.family in wanted]
        config = PresetsConfig(families=tuple(wanted), repetitions=options.reps)
        chosen = run_stored("preset_choice", validate, trials, **how)
        gained = run_stored("preset_gain", judge_presets, gain_trials(config), **how)
        write_table(choices(chosen), options.out / "preset_choice.csv")
        write_table(gains(gained), options.out / "preset_gain.csv")
    draw(read_table(options.out / "preset_gain.csv"), options.out / "preset_gain.png")


if __name__ == "__main__":
    main()
