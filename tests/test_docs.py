"""Every page can be reached, every public name has its place, every example is in the gallery.

That the site itself builds, without a warning and with all examples executed, is what
`make docs` shows.
"""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import shortlist

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
# What is public under another name, or is no library to be imported from.
NOT_LISTED = {
    "shortlist.capacity",
    "shortlist.cli",
    "shortlist.experiments",
}


def toctree():
    """Return the pages that toctrees name, on whichever page they stand."""
    pages = "\n".join(page.read_text() for page in DOCS.glob("*.md"))
    trees = re.findall(r"```\{toctree\}\n(.*?)```", pages, re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def listed_modules():
    """Return the modules whose names the pages of the reference list."""
    lines = (DOCS / "api.md").read_text().splitlines()
    return {line.strip() for line in lines if re.fullmatch(r"\s+shortlist[\w.]*", line)}


def public_modules():
    """Return all modules without an underscore that say what they offer."""
    found = pkgutil.walk_packages(shortlist.__path__, "shortlist.")
    names = [m.name for m in found if not any(part[0] == "_" for part in m.name.split("."))]
    kept = [n for n in names if not any(n == x or n.startswith(f"{x}.") for x in NOT_LISTED)]
    return {"shortlist", *(n for n in kept if hasattr(importlib.import_module(n), "__all__"))}


def test_every_page_is_in_the_toctree():
    """Once, and every entry has its page; the gallery is made when the site is built."""
    pages = [page.stem for page in DOCS.glob("*.md") if page.stem != "index"]
    assert sorted(toctree()) == sorted([*pages, "gallery/index"])


def test_every_public_module_is_in_the_reference():
    """Its page lists all of `__all__`, so that every public name has a page."""
    assert listed_modules() == public_modules(), "bring the list in docs/api.md up to date"
    template = (DOCS / "_templates" / "autosummary" / "module.rst").read_text()
    assert "for item in names" in template
    assert "members" in template


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_the_form_of_the_gallery(path):
    """A title, underlined, and cells with a sentence each."""
    _, title, underline, *_ = path.read_text().splitlines()
    assert re.fullmatch("=+", underline), "the first line of the docstring is underlined with ="
    assert len(underline) >= len(title)
    assert "\n# %%\n# " in path.read_text()


def test_every_folder_of_examples_has_a_heading():
    """Without one, the gallery would leave the folder out."""
    for folder in {path.parent for path in EXAMPLES}:
        assert (folder / "GALLERY_HEADER.rst").exists(), folder
