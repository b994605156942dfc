"""Models in files that never execute code when they are read. Needs the extra `cli` (skops).

:func:`export_onnx` and :func:`compare_onnx` need the extra `onnx` as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._model_file import FORMAT_VERSION, describe_model, load_model, save_model
from ._own_model import load_own_model
from ._trusted_types import trusted_types

if TYPE_CHECKING:
    from ._onnx_compare import OnnxComparison, compare_onnx
    from ._onnx_export import OnnxExport, export_onnx

__all__ = [
    "FORMAT_VERSION",
    "OnnxComparison",
    "OnnxExport",
    "compare_onnx",
    "describe_model",
    "export_onnx",
    "load_model",
    "load_own_model",
    "save_model",
    "trusted_types",
]

_ONNX = {
    "OnnxComparison": "_onnx_compare",
    "OnnxExport": "_onnx_export",
    "compare_onnx": "_onnx_compare",
    "export_onnx": "_onnx_export",
}


def __getattr__(name: str) -> Any:
    """Import what needs ONNX when it is first used."""
    if name not in _ONNX:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_ONNX[name]}", __name__), name)
