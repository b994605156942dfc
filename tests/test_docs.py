"""Every page can be reached, every name and option is described, every example has a picture.

That the site itself builds, without a warning and with all examples executed, is what
`make docs` shows.
"""

import importlib
import os
import pkgutil
import re
from pathlib import Path

import pytest

import shortlist

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE_BY_THE_BUILD = {"_build", "gallery", "generated"}
PAGES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if not MADE_BY_THE_BUILD & set(page.relative_to(DOCS).parts)
]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
# Public under another name, or not meant to be imported by users.
NOT_LISTED = {
    "shortlist.capacity",
    "shortlist.cli",
}


def toctree():
    """Return the pages that toctrees name, relative to the folder of all pages."""
    named = []
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            folder = page.parent.relative_to(DOCS)
            named += [os.path.normpath(folder / line) for line in lines]
    return named


def linked_files(page):
    """Return the files that the links of a page lead to, as paths in this repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    paths = [target.partition("#")[0] for target in targets if "://" not in target]
    return [Path(os.path.normpath(page.parent / path)) for path in paths if path]


def listed_modules():
    """Return the modules whose names the pages of the reference list."""
    lines = (DOCS / "api.md").read_text().splitlines()
    return {line.strip() for line in lines if re.fullmatch(r"\s+shortlist[\w.]*", line)}


def public_modules():
    """Return the rooms that have names for users; `x.py` inside a room is for its siblings."""
    rooms = [room.name for room in pkgutil.iter_modules(shortlist.__path__, "shortlist.")]
    kept = [n for n in rooms if n not in NOT_LISTED and not n.startswith("shortlist._")]
    return {"shortlist", *(n for n in kept if hasattr(importlib.import_module(n), "__all__"))}


def commands():
    """Return the commands of the command line by name."""
    import typer

    from shortlist.cli._app import app

    return typer.main.get_command(app).commands


def test_every_page_is_in_the_toctree():
    """Once, and every entry has its page; the gallery is made when the site is built."""
    pages = [page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES]
    assert sorted(toctree()) == sorted([*(p for p in pages if p != "index"), "gallery/index"])


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *PAGES], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_links_lead_somewhere(page):
    """To a file of the repository, or to a page that the gallery makes of an example."""
    gallery = DOCS / "gallery"
    for path in linked_files(page):
        if gallery in path.parents:
            example = ROOT / "examples" / path.relative_to(gallery).with_suffix(".py")
            made = re.fullmatch(r"sphx_glr_(\w+)_\d{3}\.png", path.name)
            example = ROOT / "examples" / f"{made[1]}.py" if made else example
            assert example.exists() or path == gallery / "index.rst", path
        else:
            assert path.exists(), f"{page.name} links to {path.relative_to(ROOT)}"


def test_every_public_module_is_in_the_reference():
    """Its page lists all of `__all__`: every public name has a page."""
    assert listed_modules() == public_modules(), "bring the list in docs/api.md up to date"
    template = (DOCS / "_templates" / "autosummary" / "module.rst").read_text()
    assert "for item in names" in template
    assert "members" in template


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_is_described(name):
    """In the section of its command, on the page about the command line; and no others are."""
    page = (DOCS / "command-line.md").read_text()
    section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert section, f"docs/command-line.md has no section about {name}"
    inner = getattr(commands()[name], "commands", {}).values()
    params = [param for command in (commands()[name], *inner) for param in command.params]
    options = [o for p in params for o in (*p.opts, *p.secondary_opts)]
    for option in options:
        if option.startswith("--") and option != "--help":
            assert f"`{option}`" in section, f"{name} {option}"
    rows = re.findall(r"^\| (`-.*?) \|", section, flags=re.MULTILINE)
    described = {option for row in rows for option in re.findall(r"--[a-z-]+", row)}
    assert described <= set(options), f"{name} has no {described - set(options)}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_the_form_of_the_gallery(path):
    """A title, underlined, cells with a sentence each, and a picture."""
    _, title, underline, *_ = path.read_text().splitlines()
    assert re.fullmatch("=+", underline), "the first line of the docstring is underlined with ="
    assert len(underline) >= len(title)
    assert "\n# %%\n# " in path.read_text()
    assert "plt.show()" in path.read_text()


def test_every_folder_of_examples_has_a_heading():
    """Without one, the gallery would leave the folder out."""
    for folder in {path.parent for path in EXAMPLES}:
        assert (folder / "GALLERY_HEADER.rst").exists(), folder
