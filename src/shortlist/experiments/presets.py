"""How the recommended presets were chosen, and what they gain over the paper's.

Some clients of the credit data are set aside for the choice: training samples of the paper's size
and prevalence, which share their common clients and have rare clients of their own. Every setting
of a small grid is judged by cross-validation on these samples, by the detection of
`capacity_scorer` averaged over b = 1, 2, 3. The best one that also serves small tables became the
preset. The comparison with the paper's presets takes the other clients only, who had no part in
the choice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from ..datasets import load_credit_default
from ..learners import FAMILIES, make_learner
from ..metrics import detection_at_capacity
from ._credit_protocol import Floats, capacity_of, draw_split, fit_scores, judge_threshold
from ._preset_grids import GRIDS, TOO_LARGE
from ._runner import run_all
from ._table import Table, mean_and_error, summarise

__all__ = [
    "CHOICES",
    "GRIDS",
    "PresetsConfig",
    "best_settings",
    "choose",
    "compare",
    "draw",
    "gains",
]

Rows = NDArray[np.intp]


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


#: Two choices. Networks lie closer together than the settings of other families, and closer to the
#: paper's: all reserved samples choose among them, on halves as in the comparison.
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


def choose(config: PresetsConfig, **how: Any) -> Table:
    """Return the cross-validated detection of every setting on every sample.

    The config is one of `CHOICES`. Keywords are those of `run_all`: `store`, `n_jobs` and
    `on_progress`.
    """
    trials = [
        Trial(family, _in_words(setting), sample, config)
        for family in config.families
        for setting in ParameterGrid(GRIDS[family])
        for sample in range(config.samples)
    ]
    return run_all(validate, trials, **how)


def compare(config: PresetsConfig = PresetsConfig(), **how: Any) -> Table:  # noqa: B008 - frozen
    """Return M of every preset on paired splits of clients that had no part in the choice."""
    trials = [
        Trial(family, "presets", repetition, config)
        for repetition in range(config.repetitions)
        for family in config.families
    ]
    return run_all(judge_presets, trials, **how)


def validate(trial: Trial) -> Table:
    """Cross-validate one setting on one sample."""
    X, y, samples, _ = _clients(trial.config)
    rows = samples[trial.repetition]
    settings = {_in_words(setting): setting for setting in ParameterGrid(GRIDS[trial.family])}
    model = _single_threaded(make_learner(trial.family)).set_params(**settings[trial.setting])
    folds = StratifiedKFold(trial.config.folds, shuffle=True, random_state=trial.repetition)
    found = []
    for number, (train, held_out) in enumerate(folds.split(rows, y[rows])):
        # Another seed for each fold, so that no setting wins by a lucky one.
        score = fit_scores(_seeded(model, number), X[rows[train]], y[rows[train]])
        scores, is_rare = score(X[rows[held_out]]), y[rows[held_out]] == 1
        found += [detection_at_capacity(is_rare, scores, c) for c in _capacities(trial.config)]
    names = {"family": trial.family, "setting": trial.setting, "sample": trial.repetition}
    return [{**names, "detection": float(np.mean(found))}]


def judge_presets(trial: Trial) -> Table:
    """Fit both presets on one half of a training sample, calibrate on the other, and judge."""
    X, y, _, others = _clients(trial.config)
    config, rng = trial.config, np.random.default_rng([trial.config.seed, trial.repetition])
    n_test = config.n_test
    split = draw_split(X[others], y[others], prevalence=config.prevalence, rng=rng, n_test=n_test)
    fit, calibration = split.fit_half, split.calibration_half
    table = []
    for preset in ("paper", "recommended"):
        if preset == "paper" and trial.family in ("boosting", "logistic"):
            continue
        model = _single_threaded(make_learner(trial.family, preset, random_state=trial.repetition))
        score = fit_scores(model, split.X_train[fit], split.y_train[fit])
        unseen, test = score(split.X_train[calibration]), score(split.X_test)
        for b, capacity in zip(config.multiples, _capacities(config), strict=True):
            names = {"repetition": trial.repetition, "family": trial.family, "preset": preset}
            outcome = judge_threshold(unseen, test, split.y_test, capacity)
            table.append({**names, "multiple": b, **asdict(outcome)})
    return table


def best_settings(table: Table) -> dict[str, str]:
    """Return the setting of each family that detected most on average."""
    best: dict[str, Any] = {}
    for row in summarise(table, ["family", "setting"], "detection"):
        better = row["mean"] > best.get(row["family"], {"mean": -1.0})["mean"]
        if better and row["setting"] not in TOO_LARGE:
            best[row["family"]] = row
    return {family: row["setting"] for family, row in best.items()}


def gains(table: Table) -> Table:
    """Return M of the paper's preset, of the recommended one, and their paired difference.

    A family without a preset in the paper is compared with the paper's forest, its best.
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


def draw(table: Table, path: Path) -> Path:
    """Save a picture of the paired differences, with two standard errors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    rows = gains(table)
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
    """Return a copy in which everything that draws random numbers starts from the seed."""
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return clone(model).set_params(**dict.fromkeys(names, seed))


def _in_words(setting: dict[str, Any]) -> str:
    return ", ".join(" ".join(f"{name}={value!r}".split()) for name, value in setting.items())


@cache
def _clients(config: PresetsConfig) -> tuple[Floats, NDArray[np.int64], list[Rows], Rows]:
    """Return the data, the samples of the choice, and all clients outside of them."""
    X, y = load_credit_default()
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


def _single_threaded(model: Any) -> Any:
    """Keep LightGBM from using every core: on a busy machine its threads wait for each other."""
    return model.set_params(n_jobs=1) if "n_jobs" in model.get_params() else model
