"""The page about the paper: all of it, and every line runs."""

import contextlib
import importlib.util
import io
import re
import warnings
from pathlib import Path

import pytest

from studies.paper.figures import FIGURES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "appendix" / "paper.md").read_text()
ROWS = [
    (int(number), line, shown_by)
    for number, line, shown_by in re.findall(r"^\| (\d+) \|.*\| `(.*)` \| `(.*)` \|$", PAGE, re.M)
]


@pytest.fixture(scope="module")
def names():
    """Run the code at the top of the page."""
    found = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], found)
    return found


def test_no_item_of_the_paper_is_left_out():
    """In its order."""
    assert [number for number, *_ in ROWS] == list(range(1, 92))


@pytest.mark.parametrize(("number", "line", "shown_by"), ROWS, ids=lambda value: str(value)[:30])
def test_a_line_runs_and_what_shows_it_exists(names, number, line, shown_by):
    """A line of Python gives something; a command names a study, and a figure that it draws."""
    assert (ROOT / shown_by).exists()
    if line.startswith("python -m "):
        module, *rest = line.removeprefix("python -m ").split()
        assert importlib.util.find_spec(module) is not None
        assert set(rest[:1]) <= set(FIGURES)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert eval(line, names) is not False
