"""What the README of the studies says about the credit data, made from the committed tables.

`python -m studies.paper.renew` writes it between two comments; a test compares.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from ..tables import Table, read_table
from .aware_statements import ABOVE_RECOMMENDED
from .credit_protocol import CreditConfig
from .statements import Ordering

__all__ = ["BEGIN", "END", "README", "bullets", "renew_words"]

README = Path(__file__).parents[1] / "README.md"
BEGIN = "<!-- Written by studies/paper/renew.py from its tables, and compared by a test. -->"
END = "<!-- The end of what it writes. -->"
_NAMES = {"forest": "the forest", "svm": "support vectors", "knn": "neighbours"}
#: By table, the methods that are counted for each learner.
_METHODS = {
    "credit": ("classical", "smote", "capacity", "recommended"),
    "credit-smote20": ("smote20",),
}


def renew_words(page: Path, folder: Path) -> None:
    """Put what the tables of a folder say between the two comments of a page."""
    before, _, rest = page.read_text().partition(f"{BEGIN}\n\n")
    _, end, after = rest.partition(f"\n{END}")
    if not end:
        raise ValueError(f"{page} has no lines between {BEGIN} and {END}.")
    page.write_text(f"{before}{BEGIN}\n\n{bullets(folder)}{end}{after}")


def bullets(folder: Path) -> str:
    """Return all bullets, as lines that end in a line break."""
    said = {row["statement"]: row for row in read_table(folder / "summary.csv")}
    behind: dict[str, Table] = {}
    for row in read_table(folder / "comparisons.csv"):
        behind.setdefault(row["statement"], []).append(row)
    texts = [
        *(_repetitions(name, read_table(folder / f"{name}.csv")) for name in _METHODS),
        _numbers(said),
        _orderings({name: Ordering.of(rows) for name, rows in behind.items()}),
        _recommended(behind[ABOVE_RECOMMENDED]),
    ]
    return "".join(fill(f"- {text}", 120, subsequent_indent="  ") + "\n" for text in texts)


def _repetitions(name: str, table: Table) -> str:
    config = CreditConfig()
    wanted = {"svm": config.svm_repetitions}
    least: dict[tuple[str, bool], int] = {}
    for row in table:
        if row["method"] in _METHODS[name]:
            key = (row["learner"], row["method"] == "recommended")
            least[key] = min(row["count"], least.get(key, row["count"]))
    parts = [
        f"{count} of {wanted.get(learner, config.repetitions)} with "
        + ("the recommended forest" if recommended else _NAMES[learner])
        for (learner, recommended), count in least.items()
    ]
    return f"Repetitions in `{name}.csv`, of those of the study: {', '.join(parts)}."


def _numbers(said: dict[str, dict[str, str]]) -> str:
    """Name the numbers of the paper with ours, and those that do not agree."""
    told = {
        "M of the classical forest": "the classical forest has M (π₀ = 0.02, b = 3)",
        "M of g_b": "the forest under the capacity has M (π₀ = 0.02, b = 3)",
        "a gain by the factor": "gain, as a factor",
        "defaults found among 600 clients": "with 600 reviews g_b finds about",
        "and by the classical forest": "of 200 defaults the classical forest finds",
    }
    parts = [
        f"{name} {said[row]['paper']} (ours {said[row]['ours']})" for name, row in told.items()
    ]
    apart = [name for name, row in told.items() if said[row]["agrees"] != "yes"]
    verdict = f"all agree but {' and '.join(apart)}" if apart else "all agree"
    return (
        f"The paper's numbers at π₀ = 0.02 and b = 3: {', '.join(parts)}; {verdict}. The gain has "
        f"a large error: {said['gain, as a factor']['reason']}."
    )


def _orderings(found: dict[str, Ordering]) -> str:
    told = {
        "g_b above the classical rule": "g_b is above the classical rule",
        "above SMOTE at its default threshold with the forest": "forest: SMOTE stays below g_b",
        "with support vectors": "support vectors: SMOTE stays below g_b",
        "above SMOTE with a threshold at the capacity": (
            "g_b is above SMOTE with a threshold at the capacity"
        ),
        "g_b\\* above g_b": "g_b ≤ g_b*",
    }
    parts = [f"{name}: {found[row]}" for name, row in told.items()]
    return f"In how many settings: {'; '.join(parts)}."


def _recommended(rows: Table) -> str:
    found = Ordering.of([{**row, "mean": -row["mean"]} for row in rows])
    count = min(row["count"] for row in rows)
    return f"The recommended forest above g_b\\*: {found} ({count} paired repetitions)."
