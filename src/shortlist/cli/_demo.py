"""`shortlist demo`: simulated card payments, with room to review one in fifty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._core.files import check_writable
from ._errors import answering
from ._options import AsJson
from ._output import RULES, print_json, print_table, progress

if TYPE_CHECKING:
    from ..metrics import CapacityCurve
    from ..tables.model import RuleResult

_PREVALENCE, _MULTIPLE, _SEED = 0.01, 2, 0


@dataclass(frozen=True)
class DemoResult:
    """The results of the rules on unseen payments, the curve for the picture, and the sizes."""

    rules: list[RuleResult]
    curve: CapacityCurve
    n_test: int
    n_rare: int
    max_flags: int
    threshold: float


@answering
def demo(
    out: Annotated[Path, typer.Option(metavar="FILE")] = Path("shortlist-demo.png"),
    as_json: AsJson = False,
) -> None:
    """Fit, calibrate and flag simulated payments; draw what it finds.

    Options
    -------
    out
        Where to save the picture, such as --out curve.png (or pdf, svg).
    """
    check_writable(out)
    with progress("Fitting a forest to 20,000 simulated card payments"):
        result = run_demo()
        draw_demo(result, out)
    picture = str(out.resolve())
    if as_json:
        sizes = {name: value for name, value in vars(result).items() if name != "curve"}
        print_json({**sizes, "picture": picture})
        return
    print_table(
        RULES,
        result.rules,
        title=f"{result.n_test:,} payments, {result.n_rare} of them frauds, "
        f"room to review {result.max_flags}",
        caption="Detection (M) counts only the frauds that can be reviewed. 'Confident' keeps the "
        "rate of flags within the capacity in 19 of 20 calibrations; a batch keeps the number.",
    )
    typer.echo(f"Picture: {picture}")


def run_demo(n_samples: int = 40_000, n_trees: int = 200) -> DemoResult:
    """Fit a forest, calibrate it, and compare it with the default threshold on unseen payments."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    from .._core.scoring import rare_scores
    from ..capacity import Capacity
    from ..classifier import CapacityClassifier
    from ..datasets import make_fraud
    from ..metrics import capacity_curve
    from ..tables.rules import measure_rule

    capacity = Capacity.multiple(_MULTIPLE)
    X, y = make_fraud(n_samples, prevalence=_PREVALENCE, random_state=_SEED)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=_SEED
    )
    forest = RandomForestClassifier(n_trees, min_samples_leaf=5, n_jobs=-1, random_state=_SEED)
    rules = {"default threshold": forest.fit(X_train, y_train).predict(X_test) == 1}
    for guarantee in ("plug-in", "confident"):
        model = CapacityClassifier(
            forest, capacity=capacity, guarantee=guarantee, ties="hash", random_state=_SEED, cv=0.5
        ).fit(X_train, y_train)
        rules[f"capacity, {guarantee}"] = model.flag(X_test)
    rules["capacity, exact batch"] = model.select(X_test)
    return DemoResult(
        [measure_rule(name, y_test == 1, flags, capacity) for name, flags in rules.items()],
        capacity_curve(y_test, rare_scores(model, X_test, rare_label=1), max_fraction=0.1),
        y_test.size,
        int(y_test.sum()),
        capacity.max_flags(y_test.size, _PREVALENCE),
        float(model.calibrations_[0].value),
    )


def draw_demo(result: DemoResult, path: Path) -> None:
    """Save the picture of detection against capacity."""
    from .._core.extras import load_extra
    from .._core.files import write_whole
    from ..capacity import Capacity
    from ..plots import CapacityCurveDisplay

    matplotlib = load_extra("matplotlib.figure", needed_for="Drawing the demonstration")
    figure = matplotlib.Figure(figsize=(8, 5), layout="constrained")
    display = CapacityCurveDisplay(
        result.curve,
        name="Random forest, calibrated on held-out data",
        capacity=Capacity.multiple(_MULTIPLE),
    ).plot(figure.subplots(), x="flags", marginal=True, curve_kwargs={"color": "black"})
    default = result.rules[0]
    display.ax_.plot(
        [default.flagged],
        [default.found / result.n_rare],
        "x",
        color="tab:red",
        markersize=9,
        markeredgewidth=2,
        label="Same forest, default threshold",
    )
    display.ax_.legend(loc="center right")
    display.ax_.set_title("What does a review capacity find?")
    with write_whole(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix.removeprefix(".") or "png")
