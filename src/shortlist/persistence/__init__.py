"""Models in files that never execute code when they are read. Needs the extra `cli` (skops).

:func:`export_onnx` and :func:`compare_onnx` need the extra `onnx` as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._manifest import FORMAT_VERSION
from ._model_file import describe_model, load_model, save_model

__all__ = [
    "FORMAT_VERSION",
    "OnnxComparison",
    "OnnxExport",
    "compare_onnx",
    "describe_model",
    "export_onnx",
    "load_model",
    "save_model",
]

_ONNX = {
    "OnnxComparison": "_onnx_check",
    "OnnxExport": "_export",
    "compare_onnx": "_onnx_check",
    "export_onnx": "_export",
}


def __getattr__(name: str) -> Any:
    """Import what needs ONNX when it is first asked for."""
    if name not in _ONNX:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_ONNX[name]}", __name__), name)
