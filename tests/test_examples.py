"""Every example of the gallery runs, as a script of its own."""

import runpy
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from sklearn import config_context

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_the_example_runs(script, tmp_path, monkeypatch):
    """Without an error, in a folder of its own, without a screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    try:
        with warnings.catch_warnings(action="default"), config_context(), plt.rc_context():
            runpy.run_path(str(script), run_name="__main__")
    except ModuleNotFoundError as error:
        if error.name.startswith("shortlist"):
            raise
        pytest.skip(f"{script.name} needs {error.name}")
    finally:
        plt.close("all")
