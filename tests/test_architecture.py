"""Imports point downward, and what is public is documented."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import shortlist

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "shortlist"
# From the ground up: a module imports only from rows above its own in this list.
ROWS = [
    {"exceptions"},
    {"_core"},
    {"capacity", "worth"},
    {"_wrapping"},
    {"assignment", "metrics", "thresholds", "theory"},
    {"online"},
    {"feedback"},
    {"classifier", "multiclass"},
    {"learners"},
    {"aware"},
    {"compiled"},
    {"datasets", "plots", "tables"},
    {"client", "distributed", "persistence", "report", "streaming"},
    {"dask", "service", "spark"},
    {"cli"},
]
LEVEL = {module: number for number, row in enumerate(ROWS) for module in row}


def module_of(path):
    """Return the top-level module of the package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path):
    """Return the top-level modules of the package that a file imports."""
    depth = len(path.relative_to(PACKAGE).parts) - 1
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth + 1:
            if node.module:
                yield node.module.split(".")[0]
            else:
                yield from (alias.name for alias in node.names)


FILES = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem[:2] != "__"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downward(path):
    """No file imports from its own row or a later one."""
    module = module_of(path)
    for imported in set(imported_modules(path)) - {"__version__"}:
        assert LEVEL[imported] < LEVEL[module], f"{module} must not import {imported}"


def test_every_module_has_its_row():
    """A new module is placed before it is used."""
    assert {module_of(path) for path in FILES} == set(LEVEL)


# The shared floors: private to the library, open to all of its packages.
SHARED = {"_core", "_wrapping"}
# Names that begin with an underscore elsewhere: of named tuples, of scikit-learn's callbacks, of
# its histogram-based boosting, and of the frames of Dask and Spark.
FOREIGN = {
    *("_jdf", "_meta", "_meta_nonempty"),
    *("_fields", "_replace", "_asdict", "_exit", "_getframe", "_callback_fit_ctx"),
    *("_baseline_prediction", "_bin_mapper", "_predictors", "_preprocessor"),
}
TREES = {path: ast.parse(path.read_text()) for path in FILES}


def is_private(name):
    """Tell `_x` from `x` and `__x__`."""
    return name.startswith("_") and not name.startswith("__")


def private_imports(path):
    """Return the private modules and names of other packages that a file imports."""
    depth = len(path.relative_to(PACKAGE).parts) - 1
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.ImportFrom) and node.level == depth + 1 and node.module:
            first, *rest = node.module.split(".")
            names = [*rest, *(alias.name for alias in node.names)]
            if first not in SHARED or any(is_private(name) for name in names):
                yield from (f"{node.module}.{name}" for name in names if is_private(name))


def defined_names(tree):
    """Return all names that a file defines or assigns, also as attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


OWN_NAMES = {
    module: {
        name for path in FILES if module_of(path) == module for name in defined_names(TREES[path])
    }
    for module in LEVEL
}
# A package may use what its classes inherit from a neighbour that offers it to subclasses.
INHERITED = {"aware": {"classifier"}, "learners": {"classifier"}}


def test_packages_talk_through_public_names():
    """No file imports a private name of another package."""
    assert {path: found for path in FILES if (found := list(private_imports(path)))} == {}


def test_no_file_reads_private_attributes_of_another_package():
    """Whatever private attribute it reads is one that its own package defines."""
    foreign = {}
    for path in FILES:
        module = module_of(path)
        known = FOREIGN.union(OWN_NAMES[module], *(OWN_NAMES[m] for m in INHERITED.get(module, ())))
        read = {node.attr for node in ast.walk(TREES[path]) if isinstance(node, ast.Attribute)}
        foreign[path] = {name for name in read if is_private(name)} - known
    assert {path: names for path, names in foreign.items() if names} == {}


PUBLIC = {
    f"{module}.{name}": getattr(importlib.import_module(module), name)
    for module in (
        "shortlist",
        "shortlist.assignment",
        "shortlist.aware",
        "shortlist.classifier",
        "shortlist.compiled",
        "shortlist.dask",
        "shortlist.datasets",
        "shortlist.distributed",
        "shortlist.exceptions",
        "shortlist.learners",
        "shortlist.metrics",
        "shortlist.multiclass",
        "shortlist.online",
        "shortlist.online.checks",
        "shortlist.persistence",
        "shortlist.plots",
        "shortlist.report",
        "shortlist.spark",
        "shortlist.streaming",
        "shortlist.tables",
        "shortlist.theory",
        "shortlist.thresholds",
    )
    for name in importlib.import_module(module).__all__
}


def test_what_is_public_is_documented():
    """Every public name stands in the reference, and has a docstring."""
    reference = (ROOT / "docs" / "reference.md").read_text()
    assert [name for name in PUBLIC if f"`{name.rsplit('.', 1)[1]}`" not in reference] == []
    explained = {name: each for name, each in PUBLIC.items() if not isinstance(each, tuple)}
    assert [name for name, each in explained.items() if not inspect.getdoc(each)] == []


@pytest.mark.parametrize("name", shortlist.__all__)
def test_what_is_public_has_an_example(name):
    """In its own docstring, or in that of the function that makes it."""
    made_by = {
        "CalibratedThreshold": "calibrate_threshold",
        "CapacityCurve": "capacity_curve",
    }
    documented = getattr(shortlist, made_by.get(name, name))
    assert ">>>" in inspect.getdoc(documented)


def test_the_version_is_in_the_changelog():
    """The newest entry is the version of the package."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(shortlist.__version__)}", changelog, re.MULTILINE)
