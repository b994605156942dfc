"""Draw the picture of the README with the README's own code: python tools/readme_picture.py."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "_static" / "capacity.png"


def main() -> None:
    """Run the Python code up to where it saves the picture."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    last = next(number for number, block in enumerate(blocks) if "savefig" in block)
    code = "\n".join(blocks[: last + 1]).replace('"capacity.png"', f"{str(PICTURE)!r}, dpi=110")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(code, "README.md", "exec"), {})
    print(f"{PICTURE.relative_to(ROOT)}: look at it")


if __name__ == "__main__":
    main()
