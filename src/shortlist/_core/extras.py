"""Optional packages: imported when they are needed, with an error that names the extra."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import sys
from types import SimpleNamespace
from typing import Any

_PACKAGES = {
    "boosting": ("lightgbm",),
    "cli": ("jinja2", "msgspec", "pandas", "pyarrow", "rich", "skops", "typer"),
    "dask": ("dask", "distributed"),
    "excel": ("openpyxl",),
    "kafka": ("confluent_kafka",),
    "onnx": ("onnx", "onnxruntime"),
    "plots": ("matplotlib",),
    "remote": ("fsspec",),
    "service": ("uvicorn",),
    "smote": ("imblearn",),
    "spark": ("pyspark",),
    "sql": ("psycopg", "duckdb", "sqlalchemy"),
}
#: The extra of `pip install 'shortlist[...]'` that brings each optional package.
EXTRAS = {package: extra for extra, packages in _PACKAGES.items() for package in packages}


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


def load_skops(*, whole: bool = False) -> Any:
    """Import the reader and writer of model files.

    skops trusts all estimators of scikit-learn, and imports every one of its modules to list them,
    which takes longer than a small fit. Unless the `whole` list is needed, this is a copy apart
    from the one that others import: it trusts those that are imported already.
    """
    if whole or "skops.io" in sys.modules:
        return load_extra("skops.io", needed_for="Reading or writing model files")
    return _skops_apart()


@functools.cache
def _skops_apart() -> Any:
    utils: Any = importlib.import_module("sklearn.utils")
    whole_list = utils.all_estimators
    utils.all_estimators = _imported_estimators
    try:
        skops = load_skops(whole=True)
        # Indented lines take longer to write than the rest of a file.
        plain = SimpleNamespace(loads=json.loads, dumps=lambda state, **_: json.dumps(state))
        sys.modules["skops.io._persist"].json = plain  # type: ignore[attr-defined]
        return skops
    finally:
        utils.all_estimators = whole_list
        for name in [name for name in sys.modules if name.partition(".")[0] == "skops"]:
            del sys.modules[name]


def _imported_estimators() -> list[tuple[str, type]]:
    classes = [importlib.import_module("sklearn.base").BaseEstimator]
    for each in classes:  # subclasses of subclasses, too
        classes += each.__subclasses__()
    public = {each for each in classes[1:] if not each.__name__.startswith(("_", "Base"))}
    return [(each.__name__, each) for each in public if not inspect.isabstract(each)]
