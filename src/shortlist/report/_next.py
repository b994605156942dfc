"""What to do next: commands to copy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any


def next_steps(
    summary: dict[str, Any], *, model_file: Path | None, data_file: Path
) -> list[dict[str, str]]:
    """Return commands that suit what the report found, the most urgent first."""
    model = "MODEL" if model_file is None else _named(model_file)
    data = "DATA.csv" if str(data_file) == "-" else _named(data_file)
    labelled = data if summary["data"]["has_labels"] else "labelled.csv"
    promise, target = summary["promise"], shlex.quote(summary["data"]["target"])
    shifted = summary["drift"]["score"]["shift"] in ("moderate", "large")
    is_urgent = shifted or promise["verdict"] in ("broken", "silent")
    recalibrate = (
        "Set the threshold anew",
        "From recent cases that the model was not trained on. No labels are needed, and the model "
        "is not fitted again.",
        f"recalibrate {model} recent.csv -o recalibrated.model",
    )
    steps = [
        (
            promise["verdict"] == "seen",
            "Make this report from cases that the model has not seen",
            "Only they show what the rule does on new cases.",
            f"report {model} other.csv -o report.html",
        ),
        (is_urgent, *recalibrate),
        (True, *_list_step(promise, f"select {model} {data}")),
        (
            True,
            "Check the next cases before you rely on the flags",
            "Compares unlabelled cases with those that set the threshold, column by column.",
            f"check {model} today.csv",
        ),
        (not is_urgent, *recalibrate),
        (
            True,
            "Plan the capacity",
            "What fewer or more follow-ups would find, and what one more reviewer adds.",
            f"evaluate {model} {labelled} --capacities",
        ),
        (
            not summary["data"]["has_labels"],
            "Make this report again when the labels are known",
            "It then shows what was found, too.",
            f"report {model} labelled.csv --target {target} -o report.html",
        ),
    ]
    return [
        {"title": title, "why": why, "command": f"shortlist {command}"}
        for is_wanted, title, why, command in steps
        if is_wanted
    ]


def _list_step(promise: dict[str, Any], select: str) -> tuple[str, str, str]:
    if promise["unit"] == "effort":
        return (
            f"Get the list of most value within {promise['allowed']:,.6g} of work",
            "No more than the budget, with reasons for each case.",
            f"{select} --budget {promise['allowed']:.12g} -o list.csv",
        )
    return (
        f"Get the list of the {promise['room']:,} cases to follow up",
        "Exactly as many as there is room for, with reasons for each.",
        f"{select} --count {promise['room']} -o list.csv",
    )


def _named(path: Path) -> str:
    """Return a path for the shell; the page goes to others, whom no folders concern."""
    return shlex.quote(path.name if path.is_absolute() else str(path))
