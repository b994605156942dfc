"""From the page to a PDF, by a browser that is already there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_VARIABLE = "SHORTLIST_BROWSER"
_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
_OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-pdf-header-footer",
)
_SECONDS = 120
_INSTEAD = "Or write a page instead (-o report.html), open it in any browser and print it."


def find_browser() -> str:
    """Return the program that prints reports; an OSError says what to do if there is none.

    Chromium, Google Chrome and Microsoft Edge can print without a screen. The environment variable
    `SHORTLIST_BROWSER` names another place of one of them.
    """
    named = os.environ.get(_VARIABLE)
    for name in [named] if named else _NAMES:
        program = shutil.which(name)
        if program is not None:
            return program
    if named:
        raise FileNotFoundError(
            f"{_VARIABLE} names {named}, which is not a program. Name Chromium, Google Chrome or "
            f"Microsoft Edge. {_INSTEAD}"
        )
    raise FileNotFoundError(
        "A PDF is printed by Chromium, Google Chrome or Microsoft Edge, and none of them was "
        "found. Install one of them (on Debian: apt install chromium), or name its program in the "
        f"environment variable {_VARIABLE}. {_INSTEAD}"
    )


def print_report(page: str) -> bytes:
    """Print a page, and return the PDF.

    Parameters
    ----------
    page : str
        The result of :func:`render_report`.

    Returns
    -------
    bytes
        A PDF in A4, in the colours of print. If no browser is installed, or it fails, an OSError
        says what to do.
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="shortlist-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        source, paper = folder / "report.html", folder / "report.pdf"
        source.write_text(page, encoding="utf-8")
        command = [
            browser,
            *_OPTIONS,
            *(["--no-sandbox"] if _is_root() else []),  # which has no sandbox
            f"--user-data-dir={folder / 'profile'}",
            f"--print-to-pdf={paper}",
            source.as_uri(),
        ]
        _run(command)
        if not paper.exists():
            raise OSError(f"{browser} wrote no PDF. {_INSTEAD}")
        return paper.read_bytes()


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise OSError(f"{command[0]} did not print within {_SECONDS} seconds. {_INSTEAD}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise OSError(f"{command[0]} could not print: {' '.join(said)[:200]} {_INSTEAD}")


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
