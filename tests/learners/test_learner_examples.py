"""The examples of the gallery run from start to end."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from shortlist.learners.recipes import FAMILIES

EXAMPLES = Path(__file__).parents[2] / "examples" / "learners"


def test_every_family_has_an_example():
    """Each family has a file named after it."""
    assert sorted(path.stem for path in EXAMPLES.glob("plot_*.py")) == sorted(
        f"plot_{name}" for name in FAMILIES
    )


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_example_of_a_family_runs(name, capsys):
    """The example prints what was chosen or detected."""
    if name == "boosting":
        pytest.importorskip("lightgbm")
        pytest.importorskip("optuna")
    runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))
    plt.close("all")
    assert capsys.readouterr().out.count("\n") >= 2
