"""The rule for `stream --adopt`: what a saved stream may change, and what it keeps."""

from __future__ import annotations

from typing import Any

from ..exceptions import StateFileError
from ..online import Controller
from ..tables import TableModel
from ._settings import StreamSettings

__all__ = ["adopt"]


def adopt(
    controller: Controller, model: TableModel, settings: StreamSettings, old: dict[str, Any]
) -> None:
    """Move a controller from another model or capacity to a new one.

    What has been used up stays used up, and the threshold moves to the scores of the new model. The
    controller, its period and its options must be the same.

    Parameters
    ----------
    controller : Controller
        It is changed in place.
    model : TableModel
        The new model.
    settings : StreamSettings
        The new settings.
    old : dict
        The settings of the controller so far, as :meth:`StreamSettings.to_json` returned them.
    """
    new = settings.to_json()
    fixed = [key for key in new if key != "capacity" and old.get(key) != new[key]]
    if fixed:
        raise StateFileError(
            f"--adopt accepts another model or capacity, but not another {', '.join(fixed)}. "
            "Start the next period with another --state file."
        )
    controller.swap_model(model.classifier.calibration_scores_)
    if old.get("capacity") != new["capacity"] and settings.capacity is not None:
        controller.set_capacity(settings.capacity)
