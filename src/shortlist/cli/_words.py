"""Messages of the library in the words of the command line: options instead of arguments."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["in_options"]

_NUMBER = r"([0-9][0-9_.e+-]*|[A-Z.]+?)"


def _plain(number: str) -> str:
    """Return a number as one types it: 600 instead of 600.0 or 10_000."""
    number = number.replace("_", "")
    return number.removesuffix(".0")


def _per_cent(match: re.Match[str]) -> str:
    return f"--fraction {float(match[1]) / 100:.12g}"


def _valued(option: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{option} {_plain(match[1])}"


_RULES: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    # What the command line cannot pass is no advice.
    (r"Pass prevalence=\.\.\., or use", "Use"),
    (r" Read it with dtype=\"Int64\", or as texts\.", " Fill the gaps, or write ids as texts."),
    (r"\(min_samples_leaf\), or hold items out: cv=[0-9.]+", "or another --learner"),
    (r",? or Capacity\.effort\([^)]*\)", ""),
    # Capacities.
    (r"Capacity\.fraction\(([0-9.]+) / 100\)", _per_cent),
    (
        rf"Capacity\.count\({_NUMBER}, per={_NUMBER}\)",
        lambda match: f"--capacity {_plain(match[1])} --per {_plain(match[2])}",
    ),
    (r"Capacity\.count\(\.\.\.\)", "--capacity and --per"),
    (rf"Capacity\.count\({_NUMBER}\)", _valued("--capacity")),
    (r"Capacity\.(fraction|multiple)\(\.\.\.\)", r"--\1"),
    (rf"Capacity\.fraction\({_NUMBER}\)", _valued("--fraction")),
    (rf"Capacity\.multiple\({_NUMBER}\)", _valued("--multiple")),
    (
        rf"Capacity\.effort\({_NUMBER}, per={_NUMBER}\)",
        lambda match: f"--budget {_plain(match[1])} --per {_plain(match[2])}",
    ),
    (rf"Capacity\.effort\({_NUMBER}\)", _valued("--budget")),
    # Other arguments.
    (r"\bmax_effort=", "--max-effort "),
    (r"\bguarantee='?([\w-]+)'?", r"--guarantee \1"),
    (r"\bn_batches=", "--n-batches "),
    (r"\bn_batches\b", "--n-batches"),
    (r"\bconfidence=", "--confidence "),
    (r"\brare_label=(\.\.\.|\S+)", "--rare"),
    (r"\b(?:random_state|seed)=", "--seed "),
    (r"\brandom_state\b", "--seed"),
    (r"\bids=(\.\.\.)?", "--id "),
    (r"\bties='?([\w-]+)'?", r"--ties \1"),
    (r"\bprobe=\.\.\.", "--probe"),
    (r"^n_cases\b", "--cases"),
    (r"^Seed must be between 0 and 2\*\*32 - 1", "--seed must be from 0 to 4294967295"),
    (r"^(learner|guarantee|confidence|ties|controller|minutes) must\b", r"--\1 must"),
]
_PATTERNS = [(re.compile(pattern), words) for pattern, words in _RULES]


def in_options(message: str) -> str:
    """Return a message in which arguments of the library are options of the command line.

    Examples
    --------
    >>> in_options("guarantee='next-batch' promises a number; use Capacity.count(K, per=N).")
    '--guarantee next-batch promises a number; use --capacity K --per N.'
    >>> in_options("Capacity.multiple(3.0) counts in units of the prevalence.")
    '--multiple 3 counts in units of the prevalence.'
    """
    for pattern, words in _PATTERNS:
        message = pattern.sub(words, message)
    return message
