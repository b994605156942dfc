"""Optional packages: imported when they are needed, with an error that names the extra."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: The extra of `pip install 'shortlist[...]'` that brings each optional package.
EXTRAS = {
    "confluent_kafka": "kafka",
    "dask": "dask",
    "distributed": "dask",
    "fsspec": "remote",
    "imblearn": "smote",
    "jinja2": "cli",
    "lightgbm": "boosting",
    "matplotlib": "plots",
    "msgspec": "cli",
    "onnx": "onnx",
    "openpyxl": "excel",
    "onnxruntime": "onnx",
    "pandas": "cli",
    "psycopg": "sql",
    "duckdb": "sql",
    "pyarrow": "cli",
    "pyspark": "spark",
    "rich": "cli",
    "skops": "cli",
    "sqlalchemy": "sql",
    "typer": "cli",
    "uvicorn": "service",
}

# skops asks scikit-learn for all its estimators, which imports every one of its modules, and these
# import PyTorch, Dask and pytest where they are installed: up to a second, and 200 MB.
_NOT_NEEDED_BY_SKOPS = (
    "sklearn.externals.array_api_compat.torch",
    "sklearn.externals.array_api_compat.dask",
    "pytest",
)


def load_extra(module: str, *, needed_for: str, otherwise: str = "") -> Any:
    """Import an optional package or one of its modules.

    Parameters
    ----------
    module : str
        Such as ``"pyarrow.parquet"``.
    needed_for : str
        What the user wanted to do; the error starts with it.
    otherwise : str
        What works without the package, as a sentence.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        missing = (error.name or package).partition(".")[0]
        raise ImportError(
            f"{needed_for} needs {missing}, which is not installed. Install it with: "
            f"pip install 'shortlist[{EXTRAS[package]}]'{'. ' if otherwise else ''}{otherwise}",
            name=missing,
        ) from error


def load_skops() -> Any:
    """Import the reader and writer of model files, without what it does not need."""
    with _left_out(*_NOT_NEEDED_BY_SKOPS):
        return load_extra("skops.io", needed_for="Reading or writing model files")


@contextmanager
def _left_out(*modules: str) -> Iterator[None]:
    """Make the import of modules fail for a while, unless they have been imported already."""
    absent = [module for module in modules if module not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for module in absent:
            del sys.modules[module]
