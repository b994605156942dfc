"""The code in the README and the documentation runs, in order, as a reader would type it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page):
    """Return the Python code blocks of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """All blocks of a page share one session."""
    monkeypatch.chdir(tmp_path)
    session = {}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), session)


def test_the_readme_starts_with_the_two_commands():
    """make demo and make test stand before anything else."""
    first_block = re.search(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert "make demo" in first_block[1]
    assert "make test" in first_block[1]
