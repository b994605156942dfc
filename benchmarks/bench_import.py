"""Importing shortlist and starting its program, against `import sklearn.linear_model`.

Each row is the median processor time (user and system) of fresh interpreters that take turns.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

from _measure import table

_PEER = "import sklearn.linear_model"
_ROWS = {
    _PEER: ["-c", _PEER],
    "import shortlist": ["-c", "import shortlist"],
    "from shortlist import CapacityClassifier": ["-c", "from shortlist import CapacityClassifier"],
    "import shortlist.tables": ["-c", "import shortlist.tables"],
    "shortlist --version": ["-m", "shortlist", "--version"],
    "shortlist --help": ["-m", "shortlist", "--help"],
    "shortlist fit --help": ["-m", "shortlist", "fit", "--help"],
}


def main(repeats: int = 5) -> str:
    """Return a table of seconds and ratios."""
    times: dict[str, list[float]] = {name: [] for name in _ROWS}
    for _ in range(repeats + 1):
        for name, arguments in _ROWS.items():
            times[name].append(_processor_seconds(arguments))
    medians = {
        name: statistics.median(each[1:]) for name, each in times.items()
    }  # without the first
    rows = [[f"`{n}`", f"{s:.2f} s", f"{s / medians[_PEER]:.2f}"] for n, s in medians.items()]
    return table(["Command", "Processor", "Ratio"], rows)


def _processor_seconds(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    print(main())
