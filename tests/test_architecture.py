"""The rule of rooms: imports point downward, through open doors, and what is public is documented.

The `__init__` of a package is for users, `x.py` inside it is open to sibling packages, and `_x.py`
is private to it.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

import shortlist

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "shortlist"
# From the ground up: a module imports only from rows above its own in this list.
ROWS = [
    {"exceptions"},
    {"_core"},
    {"capacity", "worth"},
    {"assignment", "metrics", "thresholds", "theory"},
    {"online"},
    {"feedback"},
    {"classifier", "multiclass"},
    {"learners"},
    {"aware"},
    {"models"},
    {"datasets", "plots", "tables"},
    {"client", "distributed", "report"},
    {"dask", "service", "spark"},
    {"cli"},
]
# These have no names for users: the floor that all packages share, and programs.
NOT_FOR_USERS = {"_core", "cli", "service"}
# Names that begin with an underscore elsewhere: of named tuples, of scikit-learn's callbacks, of
# its histogram-based boosting, and of the frames of Dask and Spark.
FOREIGN = {
    *("_jdf", "_meta", "_meta_nonempty"),
    *("_fields", "_replace", "_asdict", "_exit", "_getframe", "_callback_fit_ctx"),
    *("_baseline_prediction", "_predictors", "_preprocessor", "_transformer_to_input_indices"),
}
LEVEL = {module: number for number, row in enumerate(ROWS) for module in row}
TREES = {
    path: ast.parse(path.read_text())
    for path in PACKAGE.rglob("*.py")
    if path.parent != PACKAGE or not path.stem.startswith("__")
}


def room_of(path):
    """Return the package, or the module beside the packages, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_private(name):
    """Tell `_x` from `x` and `__x__`."""
    return name.startswith("_") and not name.startswith("__")


def imports_of_rooms(path):
    """Yield what a file imports from the package: a room, and the modules and names in it."""
    depth = len(path.relative_to(PACKAGE).parts) - 1
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.ImportFrom) and node.level == depth + 1:
            modules = node.module.split(".") if node.module else []
            for alias in node.names:
                room, *inside = [*modules, alias.name]
                yield room, inside


def defined_names(tree):
    """Return all names that a file defines or assigns, also as attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def names_for_users():
    """Return every public name of the package and of its rooms, with what it stands for."""
    rooms = ["shortlist", *(f"shortlist.{room}" for room in sorted(set(LEVEL) - NOT_FOR_USERS))]
    modules = {room: importlib.import_module(room) for room in rooms}
    return {f"{room}.{name}": getattr(m, name) for room, m in modules.items() for name in m.__all__}


def test_imports_point_downward():
    """Every room has its row, and no file imports from its own row or from a later one."""
    assert {room_of(path) for path in TREES} == set(LEVEL)
    upward = [
        f"{path.relative_to(PACKAGE)} imports {room}"
        for path in TREES
        for room, _ in imports_of_rooms(path)
        if room != "__version__" and LEVEL[room] >= LEVEL[room_of(path)]
    ]
    assert upward == []


def test_rooms_are_entered_through_open_doors():
    """No file imports a private module or name of another room."""
    closed = [
        f"{path.relative_to(PACKAGE)} imports {room}.{'.'.join(inside)}"
        for path in TREES
        for room, inside in imports_of_rooms(path)
        if any(map(is_private, inside))
    ]
    assert closed == []


def test_no_file_reads_private_attributes_of_another_room():
    """Whatever private attribute it reads is one that its own room defines."""
    own = {room: set(FOREIGN) for room in LEVEL}
    for path, tree in TREES.items():
        own[room_of(path)].update(defined_names(tree))
    read = [
        f"{path.relative_to(PACKAGE)} reads {node.attr}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and node.attr not in own[room_of(path)]
    ]
    assert read == []


def test_what_is_public_is_documented():
    """Every name for users is in the reference and has a docstring; those at the top an example."""
    reference = (ROOT / "docs" / "reference.md").read_text()
    public = names_for_users()
    assert [name for name in public if f"`{name.rsplit('.', 1)[1]}`" not in reference] == []
    explained = {name: each for name, each in public.items() if not isinstance(each, tuple)}
    assert [name for name, each in explained.items() if not inspect.getdoc(each)] == []
    # A result has its example with the function that makes it.
    results = {"CalibratedThreshold": "calibrate_threshold", "CapacityCurve": "capacity_curve"}
    makers = {name: getattr(shortlist, results.get(name, name)) for name in shortlist.__all__}
    assert [name for name, maker in makers.items() if ">>>" not in inspect.getdoc(maker)] == []


def _found(name, line):
    """Return the file or folder that a line of ARCHITECTURE.md means."""
    folders = [PACKAGE / Path(each).parent for each in re.findall(r"`([\w/]+\.\w+)`", line)]
    return next(
        (folder / name for folder in (ROOT, PACKAGE, *folders) if (folder / name).exists()), None
    )


def test_the_map_of_the_house_leads_somewhere():
    """Every path of ARCHITECTURE.md exists, and what it says is in a file is there."""
    page = (ROOT / "ARCHITECTURE.md").read_text().partition("## Where is")[2]
    for line in page.splitlines():
        for name in re.findall(r"`([\w/]+(?:\.(?:py|js|sql|json)|/))`", line):
            assert _found(name, line), f"{name} does not exist: {line}"
        for what, name in re.findall(r"`([\w.]+)` in `([\w/]+\.\w+)`", line):
            assert what.rpartition(".")[2] in _found(name, line).read_text(), f"{what} in {name}"


def test_the_version_is_in_the_changelog():
    """The newest entry is the version of the package."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(shortlist.__version__)}", changelog, re.MULTILINE)
