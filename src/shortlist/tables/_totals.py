"""Rows of a table that are not cases: totals, remarks and empty rows at its end."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from .options import ReadOptions

_TOTAL_WORDS = (
    r"(?:(?:grand|sub|overall|sous|eind)[ -]?)?(?:totals?|sums?|summe|gesamt|gesamtsumme|endsumme"
    r"|gesamtergebnis|teilergebnis|ergebnis|insgesamt|zwischensumme|somme|totale|totaux|suma|totaal"
    r"|result|count|anzahl|average|mean|mittelwert|durchschnitt|moyenne|"
    "\u03a3|\u2211"
    r")(?: (?:général|générale|general|complessivo|totale))?[ :=0-9.,()]*"
)
_TOTAL = re.compile(_TOTAL_WORDS, re.IGNORECASE)
_SUBTOTAL = re.compile(rf"(?:\S+ ){{0,3}}{_TOTAL_WORDS}", re.IGNORECASE)
#: The first cell of a subtotal, for Arrow.
IN_TOTALS = rf"(?i)^\s*(?:\S+ ){{0,3}}{_TOTAL_WORDS}\s*$"
_NUMBER = re.compile(r"[^A-Za-z]*[0-9][^A-Za-z]*")


def rows_left_out(
    upward: Iterator[list[str]], name: str, reading: ReadOptions, notes: list[str]
) -> tuple[int, int]:
    """Return how many rows at the end to leave out, and how many of them are empty.

    `upward` gives the cells of the rows, the last row first. Totals, and a last row that is nearly
    empty, are noted.
    """
    n_empty, totals = 0, []
    for cells in upward:
        if len(cells) > 1 and not any(cell.strip() for cell in cells):
            n_empty += 1
        elif len(cells) > 1 and _is_total(cells) and not reading.keep_total:
            totals.append(cells)
        else:
            break
    else:
        cells = []
    notes.extend(
        f"The last row of {name} looks like a total ({_in_short(total)}) and is left out. If it is "
        "a case, use keep_total=True"
        for total in totals
    )
    if not reading.keep_total and _looks_left_over(cells, next(upward, [])):
        notes.append(
            f"The last row of {name} is nearly empty ({_in_short(cells)}), but counts as a case. "
            "If it is a total or a remark, remove it."
        )
    return n_empty + len(totals), n_empty


def _is_total(cells: Collection[str]) -> bool:
    """Return whether a last row looks like a total: it says so, and holds nothing but numbers."""
    words = [cell.strip() for cell in cells]
    others = [word for word in words if not _TOTAL.fullmatch(word)]
    if len(others) == len(words) or not others:
        return False
    return "" in others or all(_NUMBER.fullmatch(word) for word in others)


def _is_subtotal(cells: Collection[str]) -> bool:
    """Return whether any row looks like a total: it begins so, with numbers and empty cells."""
    words = [cell.strip() for cell in cells]
    filled = [word for word in words if word]
    if not 1 < len(filled) < len(words) or not _SUBTOTAL.fullmatch(filled[0]):
        return False
    return all(_NUMBER.fullmatch(word) for word in filled[1:])


def _looks_left_over(cells: Collection[str], before: Collection[str]) -> bool:
    """Return whether a last row looks like a total without a word, or like a remark."""
    filled, filled_before = ([bool(c.strip()) for c in row] for row in (cells, before))
    if len(filled) < 3 or 2 * sum(filled) > len(filled) or 2 * sum(filled_before) <= len(filled):
        return False
    return sum(filled) == 1 or (not filled[0] and filled_before[0])


def note_subtotal(
    rows: Iterable[list[str]], name: str, reading: ReadOptions, notes: list[str]
) -> bool:
    """Say that a row in the middle looks like a total; return whether there is one."""
    cells = None if reading.keep_total else next(filter(_is_subtotal, rows), None)
    if cells is not None:
        notes.append(
            f"A row of {name} looks like a total ({_in_short(cells)}), but counts as a case. If it "
            "is not, remove it and all rows like it."
        )
    return cells is not None


def _in_short(cells: Collection[str]) -> str:
    return ", ".join(cell.strip() for cell in cells if cell.strip())[:80]
