"""`shortlist demo`: simulated card payments, with room to review one in fifty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.files import check_writable, write_whole
from . import _shell as shell

if TYPE_CHECKING:
    from ..metrics import CapacityCurve

# A typical draw: with one seed in twenty, 'confident' is over, which the caption says.
_PREVALENCE, _MULTIPLE, _SEED = 0.01, 2, 1


def demo(
    out: Annotated[Path, typer.Option(metavar="FILE")] = Path("shortlist-demo.png"),
) -> None:
    """Fit, calibrate and flag simulated payments; draw the result.

    Options
    -------
    out
        Where to save the picture, such as --out curve.png (or pdf, svg).
    """
    check_writable(out)
    with shell.progress("Fitting a forest to 20,000 simulated card payments"):
        numbers, curve = run_demo()
        _draw(curve, out)
    shell.print_table(
        shell.RULES,
        numbers["rules"],
        title=f"{numbers['n_test']:,} payments, {numbers['n_rare']:,} of them frauds, "
        f"room to review {numbers['max_flags']:,}",
        caption="Detection (M) counts only the frauds that can be reviewed. 'Confident' keeps the "
        "rate of flags within the capacity in 19 of 20 calibrations; a batch keeps the number.",
    )
    typer.echo(f"Picture: {out.resolve()}")


def run_demo(n_samples: int = 40_000, n_trees: int = 200) -> tuple[dict[str, Any], CapacityCurve]:
    """Fit a forest, calibrate it, and compare it with the default threshold on unseen payments."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

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
    flags = {"default threshold": forest.fit(X_train, y_train).predict(X_test) == 1}
    for guarantee in ("plug-in", "confident"):
        model = CapacityClassifier(
            forest, capacity=capacity, guarantee=guarantee, random_state=_SEED, cv=0.5
        ).fit(X_train, y_train)
        flags[f"capacity, {guarantee}"] = model.flag(X_test)
    flags["capacity, exact batch"] = model.select(X_test)
    numbers = {
        "rules": [measure_rule(name, y_test == 1, each, capacity) for name, each in flags.items()],
        "n_test": y_test.size,
        "n_rare": int(y_test.sum()),
        "max_flags": capacity.max_flags(y_test.size, _PREVALENCE),
    }
    return numbers, capacity_curve(y_test, model.score_samples(X_test))


def _draw(curve: CapacityCurve, path: Path) -> None:
    """Save the picture of detection against capacity."""
    from .._core.extras import load_extra
    from ..capacity import Capacity
    from ..plots import CapacityCurveDisplay

    matplotlib = load_extra("matplotlib.figure", needed_for="Drawing the demonstration")
    figure = matplotlib.Figure(figsize=(8, 5), layout="constrained")
    display = CapacityCurveDisplay(curve, name="forest", capacity=Capacity.multiple(_MULTIPLE))
    display.plot(figure.subplots(), x="flags", max_fraction=0.1, marginal=True)
    display.ax_.set_title("What does a review capacity find?")
    with write_whole(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix.removeprefix(".") or "png")
