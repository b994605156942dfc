"""The one place where LightGBM, the extra `boosting`, is imported."""

from __future__ import annotations

from typing import Any

__all__ = ["load_lightgbm"]


def load_lightgbm(wanted_by: str, *, instead: str) -> Any:
    """Import LightGBM, or say how to install it and what there is `instead`."""
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError(
            f"{wanted_by} needs LightGBM: pip install 'shortlist[boosting]'. {instead} needs "
            "nothing more."
        ) from error
    return lightgbm
