"""The pages say what happens: their code runs, and prints what they show, numbers included.

`python tests/test_readme.py` writes the outputs of all pages anew (or of those that are named), for
example after a message has changed. Read the diff before you commit it.

Blocks of a page run in order, as a reader would type them, in one session and one empty folder:

- ``python``: a ``text`` block after it is what it prints, to the letter. What prints must show it.
- ``console``: every line that starts with ``$ `` is a command, and the lines below it are what a
  terminal of 100 columns shows. ``...`` stands for any text within a line, and a line that is just
  ``...`` for any number of lines.

Comments in front of a block say what a reader does not need to know:

- ``<!-- tolerance: 0.1 -->``: the numbers of this text block may differ by 10 %, since they depend
  on the version of a library.
- ``<!-- needs: onnxruntime -->``: the block runs only where these packages are installed. What
  they warn of within themselves is not our error.
- ``<!-- setup: ../start.md -->``: the first Python block of that page runs first.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE_BY_THE_BUILD = {"_build", "gallery", "generated"}
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted(DOCS.rglob("*.md"))
        if not MADE_BY_THE_BUILD & set(page.relative_to(DOCS).parts)
    ),
]
BLOCK = re.compile(
    r"(?P<marks>(?:^<!-- (?:tolerance|needs|setup): .*? -->\n+)*)"
    r"^(?P<fence>`{3,})(?P<kind>\w*)\n(?P<content>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
# A command, which may go on after a backslash, and what it prints.
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


# --- a page, with what its code prints ------------------------------------------------------------


class Page:
    """Runs the blocks of a page in one session, and writes the page with what they print."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.session: dict = {}

    def replayed(self) -> str:
        """Return the page with the outputs that come today; run it in an empty folder."""
        parts, end, printed, is_left_out = [], 0, "", False
        for block in BLOCK.finditer(self.text):
            kind, content, marks = block["kind"], block["content"], dict(_marks(block["marks"]))
            for name in marks.get("setup", "").split():
                self._run(_first_python(self.path.parent / name))
            if kind == "text":
                if not is_left_out:
                    content = _as_shown(content, printed, float(marks.get("tolerance", 0)))
                printed = ""
            elif is_left_out := not _is_installed(marks.get("needs", "")):
                pass
            else:
                assert not printed, f"{self.path.name} does not show what a block prints: {printed}"
                if kind == "python":
                    _ignore_warnings_of(marks.get("needs", ""))
                    printed = self._run(content, self.text.count("\n", 0, block.start("content")))
                elif kind == "console":
                    content = "".join(_commands(content))
            parts += [self.text[end : block.start("content")], content]
            end = block.end("content")
        assert not printed, f"{self.path.name} does not show what its last block prints: {printed}"
        return "".join([*parts, self.text[end:]])

    def _run(self, code: str, n_lines_above: int = 0) -> str:
        out = io.StringIO()
        code = "\n" * n_lines_above + code  # tracebacks then show the line of the page
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(self.path), "exec"), self.session)
        return _trimmed(out.getvalue())


def _ignore_warnings_of(packages: str) -> None:
    for name in packages.split():
        warnings.filterwarnings("ignore", module=rf"{name}(\..*)?$")


def _marks(comments: str) -> list[tuple[str, str]]:
    return re.findall(r"<!-- (\w+): (.*?) -->", comments)


def _first_python(page: Path) -> str:
    blocks = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return next(block["content"] for block in blocks if block["kind"] == "python")


def _is_installed(packages: str) -> bool:
    return all(importlib.util.find_spec(name) for name in packages.split())


def _trimmed(text: str) -> str:
    """Drop spaces at the ends of lines, which nobody sees."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


# --- what a page shows, and what comes ------------------------------------------------------------


def _as_shown(shown: str, printed: str, tolerance: float) -> str:
    """Return the shown text where it agrees with what was printed, and what was printed if not."""
    return shown if printed == shown or _is_close(shown, printed, tolerance) else printed


def _is_close(shown: str, printed: str, tolerance: float) -> bool:
    if not tolerance or NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    numbers = ([float(text.replace(",", "")) for text in pair] for pair in pairs)
    return all(math.isclose(*pair, rel_tol=tolerance) for pair in numbers)


def _fits(shown: str, printed: str) -> bool:
    """Whether an output is what a page shows, up to its placeholders."""
    lines = [_pattern(line) for line in shown.splitlines()]
    return re.fullmatch("".join(lines), printed) is not None


def _pattern(line: str) -> str:
    return r"(?:.*\n)*" if line == "..." else r".*".join(map(re.escape, line.split("..."))) + "\n"


def _renewed(shown: str, printed: str) -> str:
    """Return an output as it comes today, with the placeholders of lines that have not changed."""
    if _fits(shown, printed):
        return shown
    kept, left = [], printed.splitlines()
    for place, line in enumerate(shown.splitlines()):
        found = _first_like(line, left)
        if line == "...":
            below = shown.splitlines()[place + 1 :]
            ends = [end for end in (_first_like(other, left) for other in below) if end is not None]
            kept, left = [*kept, line], left[ends[0] :] if ends else []
        elif found is None:  # replaced by another line
            kept, left = kept + left[:1], left[1:]
        else:
            kept, left = [*kept, *left[:found], line], left[found + 1 :]
    text = "".join(f"{line}\n" for line in kept + left)
    return text if _fits(text, printed) else printed


def _first_like(line: str, lines: list[str]) -> int | None:
    fits = (n for n, other in enumerate(lines) if re.fullmatch(_pattern(line), f"{other}\n"))
    return None if line == "..." else next(fits, None)


# --- the command line -----------------------------------------------------------------------------


def _commands(content: str) -> Iterator[str]:
    """Run the commands of a console block; return each with its output."""
    for command, shown in COMMAND.findall(content):
        code, printed = _run_command(command.strip())
        assert code == 0 or "Error: " in shown, f"{command}{printed}"
        yield f"$ {command}{_renewed(shown, printed)}"


def _run_command(command: str) -> tuple[int, str]:
    """Run one command; plain ones of ours in this process, which starts them without waiting."""
    command = command.replace("\\\n", " ").partition("  #")[0]
    words = shlex.split(command)
    if words[0] != "shortlist" or set(words) & {"|", ">", "<"}:
        done = _run_in_a_shell(command)
        return done.returncode, _trimmed(done.stdout)
    from typer.testing import CliRunner

    from shortlist.cli._app import app

    with warnings.catch_warnings():
        done = CliRunner().invoke(app, words[1:])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, _trimmed(done.output)


def _run_in_a_shell(command: str) -> subprocess.CompletedProcess[str]:
    ours = f'shortlist() {{ {shlex.quote(sys.executable)} -m shortlist "$@"; }}; {command}'
    return subprocess.run(
        ["sh", "-c", ours],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


# --- tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_shows_what_its_code_prints(path, tmp_path, monkeypatch):
    """Every block runs, and every output is what comes, to the last digit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    page = Page(path)
    with warnings.catch_warnings():
        replayed = page.replayed()
    assert replayed == page.text, f"python tests/test_readme.py {path.relative_to(ROOT)}"


def test_the_readme_starts_with_the_two_commands():
    """make demo and make test stand before anything else."""
    first = next(BLOCK.finditer((ROOT / "README.md").read_text()))["content"]
    assert "make demo" in first
    assert "make test" in first


@pytest.mark.parametrize(
    ("shown", "printed"),
    [("found 52%\n", "found 53%\n"), ("one\n", "two\n"), ("at 0.5\n", "at 0.51\n")],
)
def test_an_output_that_no_longer_comes_is_replaced(shown, printed):
    """Digits count: nothing is taken for equal unless the page says so."""
    assert _as_shown(shown, printed, tolerance=0) == printed
    assert not _fits(shown, printed)


def test_placeholders_stand_for_what_varies_and_nothing_else():
    """Dots are any text within a line, or any lines."""
    assert _fits("at ...\n", "at 12:30\n")
    assert _fits("first\n...\nlast\n", "first\nsecond\nthird\nlast\n")
    assert not _fits("at ...\n", "by 12:30\n")
    assert not _fits("at ...\n", "at 12:30\nand on\n")


def test_a_new_output_keeps_the_placeholders_of_other_lines():
    """Only the line that has changed is written anew."""
    shown, printed = "at ...\n1 found\n...\nend\n", "at 12:30\n2 found\na\nb\nend\n"
    assert _renewed(shown, printed) == "at ...\n2 found\n...\nend\n"
    assert _renewed("gone\nat ...\n", "at 12:30\n") == "at 12:30\n"


def test_a_tolerance_is_one_of_numbers():
    """Words must agree, and numbers up to the share that the page names."""
    assert _as_shown("1,000 found\n", "1,040 found\n", tolerance=0.05) == "1,000 found\n"
    assert _as_shown("1,000 found\n", "1,100 found\n", tolerance=0.05) == "1,100 found\n"
    assert _as_shown("1 found\n", "1 lost\n", tolerance=0.05) == "1 lost\n"


def test_a_page_that_hides_an_output_is_refused(tmp_path, monkeypatch):
    """A reader sees all that is printed."""
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n")
    with pytest.raises(AssertionError, match="does not show"):
        Page(page).replayed()


def _write_anew(paths: list[Path]) -> None:
    os.environ["COLUMNS"] = "100"
    import matplotlib as mpl

    mpl.use("Agg")
    for path in paths:
        folder = tempfile.mkdtemp()
        with contextlib.chdir(folder):
            page = Page(path)
            path.write_text(page.replayed(), encoding="utf-8")
        shutil.rmtree(folder)


if __name__ == "__main__":
    _write_anew([Path(name).resolve() for name in sys.argv[1:]] or PAGES)
