"""The decision of a model as an ONNX graph. Needs the extras `cli` and `onnx`."""

from ._onnx_compare import OnnxComparison, compare_onnx
from ._onnx_export import OnnxExport, export_onnx

__all__ = ["OnnxComparison", "OnnxExport", "compare_onnx", "export_onnx"]
