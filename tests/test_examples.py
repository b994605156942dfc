"""Every example of the gallery runs, as a script of its own."""

import runpy
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from sklearn import config_context

from shortlist.learners.recipes import FAMILIES

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.py"))


def test_every_family_of_learners_has_an_example():
    """Each family has a file named after it."""
    assert sorted(path.stem for path in (EXAMPLES / "learners").glob("plot_*.py")) == sorted(
        f"plot_{name}" for name in FAMILIES
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_the_example_runs(script, tmp_path, monkeypatch, capsys):
    """In a folder of its own, without a screen; those of learners without a warning, either."""
    is_about_a_learner = script.parent.name == "learners"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    try:
        with warnings.catch_warnings(), config_context(), plt.rc_context():
            warnings.simplefilter("error" if is_about_a_learner else "default")
            warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
            runpy.run_path(str(script), run_name="__main__")
    except ModuleNotFoundError as error:
        if error.name.startswith("shortlist"):
            raise
        pytest.skip(f"{script.name} needs {error.name}")
    finally:
        plt.close("all")
    assert not is_about_a_learner or capsys.readouterr().out.count("\n") >= 2
