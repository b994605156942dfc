"""What to do next: commands to copy, and what was expected beside what came."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ..tables import TableModel


def next_steps(
    summary: dict[str, Any], *, model_file: Path | None, data_file: Path
) -> list[dict[str, str]]:
    """Return commands that suit what the report found, the most urgent first."""
    model = "MODEL" if model_file is None else _named(model_file)
    data = "DATA.csv" if str(data_file) == "-" else _named(data_file)
    labelled = data if summary["data"]["has_labels"] else "labelled.csv"
    promise, target = summary["promise"], shlex.quote(summary["data"]["target"])
    steps = [
        _list_step(promise, f"shortlist select {model} {data}"),
        {
            "title": "Check the next cases before you rely on the flags",
            "why": "Compares unlabelled cases with those that set the threshold, column by column.",
            "command": f"shortlist check {model} today.csv",
        },
        {
            "title": "Plan the capacity",
            "why": "What fewer or more follow-ups would find, and what one more reviewer adds.",
            "command": f"shortlist evaluate {model} {labelled} --capacities",
        },
    ]
    recalibrate = {
        "title": "Set the threshold anew",
        "why": "From recent cases that the model was not trained on. No labels are needed, and "
        "the model is not fitted again.",
        "command": f"shortlist recalibrate {model} recent.csv -o recalibrated.model",
    }
    steps.insert(0 if _needs_recalibration(summary) else 2, recalibrate)
    report = f"shortlist report {model}"
    if promise["verdict"] == "seen":
        steps.insert(
            0,
            {
                "title": "Make this report from cases that the model has not seen",
                "why": "Only they show what the rule does on new cases.",
                "command": f"{report} other.csv -o report.html",
            },
        )
    if not summary["data"]["has_labels"]:
        steps.append(
            {
                "title": "Make this report again when the labels are known",
                "why": "It then shows what was found, too.",
                "command": f"{report} labelled.csv --target {target} -o report.html",
            }
        )
    return steps


def _list_step(promise: dict[str, Any], select: str) -> dict[str, str]:
    if promise["unit"] == "effort":
        return {
            "title": f"Get the list of most value within {promise['allowed']:,.6g} of work",
            "why": "No more than the budget, with reasons for each case.",
            "command": f"{select} --budget {promise['allowed']:.12g} -o list.csv",
        }
    return {
        "title": f"Get the list of the {promise['room']:,} cases to follow up",
        "why": "Exactly as many as there is room for, with reasons for each.",
        "command": f"{select} --count {promise['room']} -o list.csv",
    }


def _needs_recalibration(summary: dict[str, Any]) -> bool:
    shifted = summary["drift"]["score"]["shift"] in ("moderate", "large")
    return shifted or summary["promise"]["verdict"] in ("broken", "silent")


def _named(path: Path) -> str:
    """Return a path for the shell; the page goes to others, whom no folders concern."""
    return shlex.quote(path.name if path.is_absolute() else str(path))


def expectations(model: TableModel, summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the fit measured on its held-out rows, and the same here.

    Without labels, only the flags can be compared. When the labels come, the rest is filled in.
    """
    if model.card is None:
        return []
    card, fitted, promise = model.card, model.card.rules[0], summary["promise"]
    own = summary["comparison"]["rules"][0] if summary["data"]["has_labels"] else None
    here = {
        "flag_rate": promise["flag_rate"],
        "prevalence": summary["data"]["prevalence"],
        "precision": own and own["precision"],
        "detection": own and own["detection"],
    }
    before = {
        "flag_rate": fitted.flagged / card.n_test if card.n_test else None,
        "prevalence": card.n_test_rare / card.n_test if card.n_test else None,
        "precision": fitted.precision,
        "detection": fitted.detection,
    }
    return [
        {"what": what, "name": name, "fit": before[what], "here": here[what], "labels": labels}
        for what, name, labels in _COMPARED
    ]


_COMPARED = (
    ("flag_rate", "Share of cases flagged", False),
    ("prevalence", "Share of cases that are rare", True),
    ("detection", "Rare cases found within the capacity (M)", True),
    ("precision", "Share of flags that are rare (precision)", True),
)
