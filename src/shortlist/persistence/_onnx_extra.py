"""The only place that imports onnx, onnxruntime and skl2onnx."""

try:
    import onnx
    import onnxruntime
    import skl2onnx
except ImportError as error:
    raise ImportError(
        f"Exporting to ONNX needs {error.name}, which is not installed. "
        "Install it with: pip install 'shortlist[onnx]'"
    ) from error

__all__ = ["onnx", "onnxruntime", "skl2onnx"]
