"""Fitted models as compiled functions of single rows, as ONNX graphs, and in safe files.

:func:`export_onnx` and :func:`compare_onnx` need the extra `onnx`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .files import trusted_types

if TYPE_CHECKING:
    from .onnx_export import compare_onnx, export_onnx
    from .scorer import compile_scorer

__all__ = ["compare_onnx", "compile_scorer", "export_onnx", "trusted_types"]


def __getattr__(name: str) -> Any:
    """Import what needs ONNX when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = ".scorer" if name == "compile_scorer" else ".onnx_export"
    return getattr(import_module(place, __name__), name)
