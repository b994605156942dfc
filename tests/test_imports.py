"""Importing is quick, and optional packages are imported only when they are needed."""

import subprocess
import sys

import pytest

import shortlist

OPTIONAL = {
    "imblearn",
    "jinja2",
    "lightgbm",
    "matplotlib",
    "onnx",
    "pandas",
    "pyarrow",
    "rich",
    "skops",
    "torch",
    "typer",
}
# scikit-learn imports these if they are installed.
OF_SCIKIT_LEARN = {"pandas", "pyarrow", "rich"}


def modules_after(code):
    """Return the top-level modules that a fresh interpreter has imported after running code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(run.stdout.splitlines()[-1].split())


def without(*packages, code):
    """Run code in a fresh interpreter in which some packages cannot be imported."""
    hide = "".join(f"sys.modules[{package!r}] = None; " for package in packages)
    return subprocess.run(
        [sys.executable, "-c", f"import sys; {hide}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_importing_the_package_imports_nothing_heavy():
    """Neither an optional package nor NumPy or scikit-learn."""
    loaded = modules_after("import shortlist")
    assert "shortlist" in loaded
    assert not loaded & (OPTIONAL | {"numba", "numpy", "scipy", "sklearn"})


def test_model_files_need_no_clusters_and_no_tests():
    """What skops imports along the way is left out, and can be imported afterwards."""
    skops = "from shortlist.models.files import load_skops; load_skops()"
    assert not modules_after(skops) & {"dask", "pytest", "torch"}
    assert "pytest" in modules_after(f"{skops}; import pytest")


def test_using_the_library_imports_no_optional_package():
    """Except for those that scikit-learn itself imports."""
    public = "from shortlist import *; import shortlist.aware, shortlist.learners, shortlist.online"
    assert not modules_after(public) & (OPTIONAL - OF_SCIKIT_LEARN)


def test_showing_the_version_imports_nothing_heavy():
    """The program prints it without the packages of its commands."""
    show = "import sys; sys.argv = ['shortlist', '--version']\nimport shortlist.cli as c; c.main()"
    assert not modules_after(show) & (OPTIONAL | {"numpy", "sklearn"})


def test_the_program_names_the_missing_extra():
    """One line on standard error, and an exit code that is not 0."""
    for package in ("typer", "rich"):
        run = without(package, code="import shortlist.cli as c; sys.argv = ['shortlist']; c.main()")
        assert run.returncode == 2
        assert run.stdout == ""
        (line,) = run.stderr.splitlines()
        assert line.startswith(f"Error: The command line needs {package}")
        assert "pip install 'shortlist[cli]'" in line


def test_plots_name_the_missing_extra():
    """A display can be imported without matplotlib; drawing raises an error."""
    draw = (
        "from shortlist import CapacityCurveDisplay as Display\n"
        "try:\n    Display.from_predictions([1, 0, 0], [0.9, 0.1, 0.2])\n"
        "except ImportError as error:\n    print(error)"
    )
    run = without("matplotlib", "matplotlib.pyplot", code=draw)
    assert run.returncode == 0, run.stderr
    assert "needs matplotlib" in run.stdout
    assert "pip install 'shortlist[plots]'" in run.stdout


def test_every_name_and_module_can_be_reached():
    """As an attribute of the package, as before it was imported lazily."""
    for name in (*shortlist.__all__, "metrics", "aware", "tables", "exceptions"):
        assert name in dir(shortlist)
        assert getattr(shortlist, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'capacities'"):
        shortlist.capacities  # noqa: B018


def test_modules_of_the_package_are_listed_once(monkeypatch):
    """Reading and writing model files asks every module for hundreds of names it does not have."""
    assert not hasattr(shortlist, "nothing")
    monkeypatch.setattr(shortlist, "iter_modules", None)
    assert not hasattr(shortlist, "nothing_else")
