"""Install what was built into an empty environment, and do the main job with it.

    python -m build && python tools/smoke.py dist

The wheel and the source distribution are tried one after the other, each in an environment of its
own and in an empty folder: nothing of this checkout can help.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Try every file in a folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    built = sorted(parser.parse_args().folder.resolve().iterdir())
    if {"".join(path.suffixes[-1:]) for path in built} < {".whl", ".gz"}:
        sys.exit(f"A wheel and a source distribution are needed; found {[p.name for p in built]}.")
    for path in built:
        try_out(path)
        print(f"{path.name}: works")


def try_out(path: Path) -> None:
    """Install one file with its command line, and run the demonstration and the first example."""
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(f"{folder}/new", with_pip=True)
        programs = Path(folder, "new", "Scripts" if sys.platform == "win32" else "bin")
        pinned = ["--constraint", str(ROOT / "constraints" / "tested.txt")]
        run(programs / "pip", "install", "--quiet", *pinned, f"{path}[cli]", folder=folder)
        run(programs / "shortlist", "--version", folder=folder)
        run(programs / "shortlist", "demo", folder=folder)
        run(programs / "python", "-c", example[1], folder=folder)


def run(*command: object, folder: str) -> None:
    """Run a command in a folder; its failure is ours."""
    subprocess.run([str(part) for part in command], cwd=folder, check=True)


if __name__ == "__main__":
    main()
