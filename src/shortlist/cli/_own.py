"""`fit --model`: a classifier of one's own, calibrated if it is trained and otherwise fitted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..tables import FitResult

__all__ = ["OwnModel", "TrustModel", "fit_or_calibrate"]

OwnModel = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="A scikit-learn classifier of your own, such as --model mine.skops: a trained one is "
        "calibrated by the rows, another one is fitted to them.",
        show_default=False,
    ),
]
TrustModel = Annotated[
    bool,
    typer.Option(
        "--trust-model",
        help="Load --model even if the file could execute code, such as a .joblib file that you "
        "made yourself.",
    ),
]
# What a trained model does not need: it has been fitted.
_CALIBRATES = (
    "target",
    "capacity",
    "rare",
    "id",
    "guarantee",
    "confidence",
    "n_batches",
    "random_state",
    "reading",
    "work",
)
# Options that say how to fit, and their defaults.
_FOR_A_FIT = {
    **dict.fromkeys(("minutes", "test_share", "time", "group", "unlabelled", "n_jobs", "memory")),
    "size": "default",
    "folds": 10,
}
_NAMED = {"n_jobs": "jobs", "memory": "resume"}


def fit_or_calibrate(
    data: Path, *, own: Path | None, trust: bool, learner: str, **options: Any
) -> FitResult:
    """Fit a learner or a classifier of one's own to a table, or calibrate a trained one."""
    from ..tables import calibrate_own, fit_table, is_trained

    if own is None:
        if trust:
            raise typer.BadParameter("--trust-model belongs to --model, which was not given")
        return fit_table(data, learner=learner, **options)
    if learner != "auto":
        raise typer.BadParameter("--model and --learner both name a model; give one of them")
    from ..models.files import load_own_model

    estimator = load_own_model(own, trust=trust)
    if not is_trained(estimator):
        return fit_table(data, own=estimator, **options)
    unused = [name for name, default in _FOR_A_FIT.items() if options[name] != default]
    if unused:
        named = ", ".join("--" + _NAMED.get(name, name).replace("_", "-") for name in unused)
        raise typer.BadParameter(f"the model in {own} is trained; {named} would not be used")
    used = {name: value for name, value in options.items() if name in _CALIBRATES}
    result = calibrate_own(estimator, data, **used)
    typer.echo(
        f"Note: The model in {own} is trained, so the rows of {data} calibrate it. None of them "
        "may have trained it.",
        err=True,
    )
    return result
