"""The code in the README and the documentation runs, in order, as a reader would type it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page):
    """Return kind and content of the code blocks of a page."""
    return re.findall(r"```(\w*)\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    """All Python blocks of a page share one session; a text block is what they printed."""
    monkeypatch.chdir(tmp_path)
    session = {}
    for kind, content in blocks(page):
        if kind == "python":
            exec(compile(content, str(page), "exec"), session)
        elif kind == "text":
            # Forests differ a little between versions, so the figures may; the sentence may not.
            printed = capsys.readouterr().out
            assert re.sub(r"\d+", "#", printed) == re.sub(r"\d+", "#", content)


def test_the_readme_starts_with_the_two_commands():
    """make demo and make test stand before anything else."""
    _, first = blocks(ROOT / "README.md")[0]
    assert "make demo" in first
    assert "make test" in first
