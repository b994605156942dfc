"""The house in numbers: sizes, imports and private crossings of a package, and walks through it.

    python tools/house.py [FOLDER]     # numbers of src/shortlist, or of another package
    python tools/house.py --walks      # files, hops and calls back of some calls and commands

A *private crossing* is an import of a private module or name of another package. The shared floor
`_core` belongs to all packages. A *public name* is one in the `__all__` of a package or of a module
beside the packages; some are offered twice. A *hop* is a call from one file into another one; a
*call back* is a hop into a file that is already on the stack.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import itertools
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

OWN = ("self", "cls", "super()")
ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "src" / "shortlist")
    parser.add_argument("--walks", action="store_true", help="trace some calls instead")
    options = parser.parse_args()
    rows = walks() if options.walks else House(options.folder).numbers()
    for name, value in rows:
        print(f"{name:<48} {value}")


class House:
    """All modules of a package, parsed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        files = [p for p in self.folder.rglob("*.py") if "tests" not in p.parts]
        self.trees = {self.name_of(p): ast.parse(p.read_text()) for p in files}
        self.lines = {self.name_of(p): p.read_text().splitlines() for p in files}
        self.packages = {self.name_of(p) for p in files if p.name == "__init__.py"}

    def name_of(self, path: Path) -> str:
        """Return the dotted name of a module."""
        parts = list(path.relative_to(self.folder).with_suffix("").parts)
        return ".".join([self.folder.name, *(parts[:-1] if parts[-1] == "__init__" else parts)])

    def numbers(self) -> Iterator[tuple[str, object]]:
        """Yield names and values."""
        lengths = sorted(len(lines) for lines in self.lines.values())
        bodies = sorted(body_length(f) for t in self.trees.values() for f in functions(t))
        crossings = list(self.private_imports())
        yield "modules", len(self.trees)
        yield "lines of code (no comments, no docstrings)", self.code_lines()
        yield "file length p50 / p90 / max", percentiles(lengths)
        yield "files under 60 lines", sum(length < 60 for length in lengths)
        yield "files above 400 lines", sum(length > 400 for length in lengths)
        yield "functions, per module", f"{len(bodies)}, {len(bodies) / len(self.trees):.1f}"
        yield "function body p50 / p90 / max", percentiles(bodies)
        yield "depth of own inheritance", max(map(self.depth, self.bases), default=0)
        yield "mixins with one user", self.lonely_mixins()
        yield "imports per module", f"{len(self.imports) / len(self.trees):.2f}"
        yield "import cycles", self.cycles()
        names = list(self.public_names())
        yield "public names / different names", f"{len(names)} / {len(set(names))}"
        yield "commands / options / different options", commands_and_options()
        yield "private crossings", len(crossings)
        read, own = set(self.private_attributes()), set().union(*self.defined.values())
        ours = sum(name in own for _, name in read)
        yield "private attributes read across packages", ours
        yield "private attributes of other libraries read", len(read) - ours
        for crossing in crossings:
            yield "  crossing", crossing

    def code_lines(self) -> int:
        """Count the lines that are neither empty, nor comments, nor docstrings."""
        total = 0
        for name, lines in self.lines.items():
            doc = {n for node in ast.walk(self.trees[name]) for n in docstring_lines(node)}
            code = (n for n, line in enumerate(lines, 1) if line.strip()[:1] not in ("", "#"))
            total += sum(n not in doc for n in code)
        return total

    def public_names(self) -> Iterator[str]:
        """Yield the names that packages, and modules beside them, offer to users."""
        rooms = [name for name in self.trees if name in self.packages or name.count(".") == 1]
        for name in rooms:
            if not any(is_private(part) for part in name.split(".")):
                yield from (each.value for each in exported(self.trees[name]))

    def imported(self) -> Iterator[tuple[str, str, str]]:
        """Yield importing module, imported module, and imported name."""
        for name, tree in self.trees.items():
            package = name if name in self.packages else name.rpartition(".")[0]
            for node in ast.walk(WithoutTypes().visit(copy.deepcopy(tree))):
                if isinstance(node, ast.ImportFrom):
                    base = package.split(".")[: len(package.split(".")) - node.level + 1]
                    start = base if node.level else []
                    source = ".".join([*start, *([node.module] if node.module else [])])
                    for alias in node.names:
                        whole = f"{source}.{alias.name}"
                        yield name, whole if whole in self.trees else source, alias.name

    @functools.cached_property
    def imports(self) -> set[tuple[str, str]]:
        """The pairs of modules the first of which imports the second."""
        pairs = {(name, source) for name, source, _ in self.imported()}
        return {(name, source) for name, source in pairs if source in self.trees and source != name}

    def private_imports(self) -> Iterator[str]:
        """Yield imports of what is private to another package."""
        for name, source, imported in self.imported():
            if source not in self.trees:
                continue
            home = name if name in self.packages else name.rpartition(".")[0]
            parts = source.split(".")
            private = [i for i, part in enumerate(parts) if is_private(part)]
            owners = [".".join(parts[:i]) for i in private]
            foreign = [o for o in owners if not (home == o or home.startswith(f"{o}."))]
            is_module = source.endswith(f".{imported}")
            if foreign or (is_private(imported) and not is_module):
                yield f"{name} imports {source}.{imported}"

    @functools.cached_property
    def defined(self) -> dict[str, set[str]]:
        """What each package defines or assigns."""
        own: dict[str, set[str]] = {}
        for name, tree in self.trees.items():
            own.setdefault(top(name), set()).update(defined(tree))
        return own

    def private_attributes(self) -> Iterator[tuple[str, str]]:
        """Yield private attributes that a module reads and that its package does not define."""
        own = self.defined
        foreign = {"_fields", "_replace", "_asdict", "_getframe", "_callback_fit_ctx"}
        inherited = own.get("classifier", set())
        for name, tree in self.trees.items():
            known = own[top(name)] | foreign | inherited
            for node in ast.walk(tree):
                is_foreign = isinstance(node, ast.Attribute) and ast.unparse(node.value) not in OWN
                if is_foreign and is_private(node.attr) and node.attr not in known:
                    yield name, node.attr

    @functools.cached_property
    def bases(self) -> dict[str, list[str]]:
        """The names of the bases of each class."""
        return {
            node.name: [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }

    def depth(self, name: str) -> int:
        """Return how many classes of the package are stacked up to this one."""
        bases = self.bases
        own = [base for base in bases.get(name, []) if base in bases and base != name]
        return 1 + max(map(self.depth, own), default=0)

    def lonely_mixins(self) -> int:
        """Count the classes that are made to be inherited and have a single heir."""
        bases = self.bases
        heirs = Counter(base for own in bases.values() for base in own if base in bases)
        return sum(name.endswith("Mixin") and heirs[name] == 1 for name in bases)

    def cycles(self) -> int:
        """Count the modules that reach themselves by imports."""
        after: dict[str, set[str]] = {}
        for name, source in self.imports:
            after.setdefault(name, set()).add(source)

        def reached(start: str) -> set[str]:
            seen: set[str] = set()
            waiting = list(after.get(start, ()))
            while waiting:
                name = waiting.pop()
                if name not in seen:
                    seen.add(name)
                    waiting.extend(after.get(name, ()))
            return seen

        return sum(name in reached(name) for name in self.trees)


class WithoutTypes(ast.NodeTransformer):
    """Drops the imports that only a type checker sees."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """Drop ``if TYPE_CHECKING:``."""
        return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)


def top(name: str) -> str:
    """Return the part of the package that a module belongs to."""
    return name.split(".")[1] if "." in name else name


def is_private(name: str) -> bool:
    """Tell `_x` from `x` and `__x__`."""
    return name.startswith("_") and not name.startswith("__")


def defined(tree: ast.AST) -> Iterator[str]:
    """Yield all names that a file defines or assigns, also as attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def exported(tree: ast.Module) -> list[Any]:
    """Return what `__all__` lists."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(getattr(node.value, "elts", []))
    return []


def commands_and_options() -> str:
    """Count commands, their options, and the different names of these."""
    import typer.main

    from shortlist.cli._app import app

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = [name for each in commands.values() for name in options_of(each)]
    return f"{len(commands)} / {len(options)} / {len(set(options))}"


def options_of(command: object) -> Iterator[str]:
    """Yield the long names of the options of a command and of its sub-commands, without --help."""
    for each in command.params:  # type: ignore[attr-defined]
        long = [name for name in each.opts if name.startswith("--")]
        if long:
            yield long[0]
    for inner in getattr(command, "commands", {}).values():
        yield from options_of(inner)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield all functions."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def docstring_lines(node: ast.AST) -> range:
    """Return the lines of the docstring of a node."""
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
        value = body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return range(value.lineno, (value.end_lineno or value.lineno) + 1)
    return range(0)


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the length of a function without its docstring."""
    body = function.body[1:] if docstring_lines(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def percentiles(values: list[int]) -> str:
    """Return median, ninetieth percentile and maximum of sorted values."""
    return " / ".join(
        str(values[min(len(values) - 1, int(q * len(values)))]) for q in (0.5, 0.9, 1)
    )


def walks() -> Iterator[tuple[str, object]]:
    """Yield files and hops of some calls, from an installed or importable shortlist."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from shortlist import Capacity, CapacityClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 1.5).astype(int)
    model = CapacityClassifier(LogisticRegression(), capacity=Capacity.fraction(0.1))
    yield "public methods defined twice", len(defined_twice(CapacityClassifier))
    yield "fit", trace(lambda: model.fit(X, y))
    yield "predict", trace(lambda: model.predict(X))
    with tempfile.TemporaryDirectory() as folder:
        paths = write_tables(Path(folder), X, y)
        fit = ["fit", paths["known"], "--target", "y", "--fraction", "0.1", "--learner", "logistic"]
        commands = {
            "fit on a CSV": [*fit, "--out", paths["model"]],
            "flag": ["flag", paths["model"], paths["new"], "--out", paths["out"]],
            "select": ["select", paths["model"], paths["new"], "--count", "20"],
            "evaluate": ["evaluate", paths["model"], paths["known"]],
        }
        for name, command in commands.items():
            yield f"shortlist {name}", trace(lambda command=command: run_command(*command))
        stream = ["stream", paths["model"], "--count", "10", "--period", "day", "--state"]
        states = (str(Path(folder) / f"{number}.state") for number in itertools.count())
        walk = trace(lambda: run_command(*stream, next(states), lines=paths["lines"]))
        yield "shortlist stream, 20 lines", walk
        yield "one served decision", trace_service(Path(folder))


def trace_service(folder: Path) -> str:
    """Follow one decision through a service in this process."""
    sys.path.insert(0, str(ROOT / "tests"))
    from service.helpers import case, fit_small_model, serving

    model = fit_small_model(folder)
    walk = Walk()
    threading.setprofile(walk.follow)  # for the threads that the service starts
    try:
        with serving(str(folder / "service.db"), model) as client:
            ids = (f"case {number}" for number in itertools.count())
            ask = lambda: client.post("/v1/queues/default/decisions", json=case(next(ids)))  # noqa: E731
            ask()
            with walk.recording():
                ask()
    finally:
        threading.setprofile(None)
    return str(walk)


def defined_twice(estimator: type) -> list[str]:
    """Return the public methods that more than one of a class's own ancestors define."""
    own = [cls for cls in estimator.__mro__ if cls.__module__.startswith("shortlist")]
    names = Counter(name for cls in own for name in vars(cls) if not name.startswith("_"))
    return [name for name, n in names.items() if n > 1 and callable(getattr(estimator, name))]


def write_tables(folder: Path, X: object, y: object) -> dict[str, str]:
    """Write small tables, and return the paths of what there is and will be."""
    import json

    import pandas as pd

    table = pd.DataFrame(X, columns=["a", "b", "c"])
    names = {"known": "known.csv", "new": "new.csv", "lines": "new.jsonl", "model": "m.shortlist",
             "out": "flags.csv"}  # fmt: skip
    paths = {name: str(folder / file) for name, file in names.items()}
    table.assign(y=y).to_csv(paths["known"], index=False)
    table.to_csv(paths["new"], index=False)
    lines = [json.dumps(row) for row in table.head(20).to_dict("records")]
    Path(paths["lines"]).write_text("\n".join(lines) + "\n")
    return paths


def run_command(*arguments: str, lines: str = os.devnull) -> None:
    """Run a command of the command line in this process, with a file as its standard input."""
    from shortlist.cli._app import app

    before = sys.stdin, sys.stdout, sys.stderr
    with open(lines) as source, open(os.devnull, "w") as nowhere:
        sys.stdin, sys.stdout, sys.stderr = source, nowhere, nowhere
        try:
            app(list(arguments), standalone_mode=False)
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def trace(call: Callable[[], object]) -> str:
    """Follow a call through the files of shortlist, the second time it is made."""
    call()  # what is imported or compiled once is no part of the walk
    walk = Walk()
    sys.setprofile(walk.follow)
    try:
        with walk.recording():
            call()
    finally:
        sys.setprofile(None)
    return str(walk)


class Walk:
    """Counts files, hops and calls back while it records."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.hops = self.calls_back = 0
        self.is_recording = False

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Count what is called meanwhile."""
        self.is_recording = True
        yield
        self.is_recording = False

    def follow(self, frame: Any, event: str, argument: object) -> None:
        """Count a call into a file of shortlist; for `sys.setprofile`."""
        if not self.is_recording or event != "call" or not is_ours(frame):
            return
        here, stack = frame.f_code.co_filename, []
        while frame := frame.f_back:
            if is_ours(frame):
                stack.append(frame.f_code.co_filename)
        self.files.add(here)
        if stack and stack[0] != here:
            self.hops += 1
            self.calls_back += here in stack

    def __str__(self) -> str:
        return f"{len(self.files)} files, {self.hops} hops, {self.calls_back} calls back"


def is_ours(frame: Any) -> bool:
    """Whether a frame runs code of the package."""
    return "/shortlist/" in frame.f_code.co_filename


if __name__ == "__main__":
    main()
