"""The ids and labels of a table: which are the same, and which label is rare."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Mask
from .._core.arrow import pa
from .._core.formatting import percent
from ..exceptions import TableError
from ._source import note
from .column_format import MISSING_CATEGORY, is_word_for_missing
from .columns import SOMEWHERE, Place, is_text, number_text, plain

#: Floats hold all whole numbers up to this one.
_LARGEST_EXACT = 1 << 53
_SCIENTIFIC = r"^[0-9](\.[0-9]+)?[eE]\+[0-9]+$"
#: Labels, without case, that read like the usual case and not like the one to look for.
_NEGATIVE = re.compile(
    r"(?:0|-1|n|no|none|nein|non|f|false|falsch|good|gut|normal|ok|okay|legit\w*|genuine|negative)$"
    r"|(?:not|no|non|kein|nicht)[\W_]"
)
#: A label of a larger share of the rows is hardly a rare one.
_NOT_RARE = 0.2
#: No more labels are kept with a model.
MOST_LABELS = 50


def as_labels(column: Any, name: str, *, place: Place = SOMEWHERE, more: str = "") -> NDArray[Any]:
    """Return labels as texts, without surrounding spaces."""
    labels = [label.strip() for label in as_ids(column, name, place=place, more=more).tolist()]
    return np.array(labels, dtype=object)


def as_ids(column: Any, name: str, *, place: Place = SOMEWHERE, more: str = "") -> NDArray[Any]:
    """Return ids as texts; 1, 1.0 and "1" are the same id in every file format."""
    column = plain(column)
    empty = is_empty(column)
    if empty.any():
        first = int(np.flatnonzero(empty)[0])
        raise TableError(
            f"The column {name!r} is empty in {int(empty.sum()):,} of {len(column):,} rows, "
            f"first in {place.row(first)}. Words such as NA, null and None count as empty. Remove "
            f"these rows from the table, or fill the column.{more}"
        )
    if pa.types.is_floating(column.type):
        numbers = column.to_numpy()
        if (np.abs(numbers) > _LARGEST_EXACT).any():
            note(
                f"The id {name!r} holds floats with more than 15 digits. Something has shortened "
                "them, and different cases may share one. Export the table with ids as text."
            )
        return np.array([number_text(value) for value in numbers.tolist()], dtype=object)
    # Whole numbers that were written as floats, such as 1.0.
    texts = pa.compute.cast(column, pa.string())
    texts = pa.compute.replace_substring_regex(texts, r"^(-?[0-9]+)\.0+$", r"\1")
    return np.asarray(texts.to_pylist(), dtype=object)


def as_texts(column: Any, name: str) -> NDArray[Any]:
    """Return a column as texts, in the form of ids and labels; missing values get a name."""
    column = plain(column)
    present = ~is_empty(column)
    texts = np.full(len(column), MISSING_CATEGORY, dtype=object)
    texts[present] = as_labels(column.filter(pa.array(present)), name)
    return texts


def look_damaged(ids: Any) -> bool:
    """Return whether a spreadsheet has shortened long ids to numbers such as 1.23E+12."""
    texts = pa.array([str(id) for id in ids[:10_000]])
    return bool(pa.compute.any(pa.compute.match_substring_regex(texts, _SCIENTIFIC)).as_py())


def is_empty(column: Any) -> Mask:
    """Return where a column has no text and no value."""
    empty = pa.compute.is_null(column, nan_is_null=True)
    if is_text(column.type):
        texts = pa.compute.utf8_trim_whitespace(column)
        empty = pa.compute.or_(empty, pa.compute.fill_null(pa.compute.equal(texts, ""), False))
    return np.array(empty, dtype=bool)


# --- labels ---


def find_labels(
    column: Any, target: str, rare: str | None, *, notes: list[str], place: Place = SOMEWHERE
) -> tuple[str, tuple[str, ...]]:
    """Return the rare label and all labels; spellings that differ in case only are one label.

    The spelling that occurs most often names a label. What is decided is added to `notes`.
    """
    to_fit = " To learn from the other rows only, use labelled_only=True"
    counts = Counter(as_labels(column, target, place=place, more=to_fit).tolist())
    by_label: dict[str, Counter[str]] = {}
    for spelling, n in counts.items():
        by_label.setdefault(folded(spelling), Counter())[spelling] = n
    labels = {key: spellings.most_common(1)[0][0] for key, spellings in by_label.items()}
    sizes = {key: spellings.total() for key, spellings in by_label.items()}
    _check_number(labels, counts, target, rare)
    if len(labels) > 2 and sizes.get(folded(target)) == 1:
        raise TableError(
            f"A row of {place.file} holds {target!r} in the column {target!r}: the heading comes "
            "twice. Remove the second one."
        )
    notes += [_about_spellings(each, target) for each in by_label.values() if len(each) > 1]
    key = _rarest(sizes, labels, target, notes) if rare is None else folded(rare)
    if key not in labels:
        raise TableError(
            f"rare={rare!r} does not occur in {target!r}; its labels are {_shown(labels.values())}."
        )
    return labels[key], tuple(labels.values())[:MOST_LABELS]


def is_rare_label(
    column: Any, target: str, rare_label: str, known: tuple[str, ...], *, place: Place = SOMEWHERE
) -> Mask:
    """Return which rows have the rare label, in whatever case; unknown labels are noted."""
    labels = as_labels(column, target, place=place)
    spellings, where = np.unique(labels.astype(str), return_inverse=True)
    keys = [folded(spelling) for spelling in spellings.tolist()]
    seen = {folded(label) for label in known}
    new = [s for s, key in zip(spellings.tolist(), keys, strict=True) if key not in seen]
    if known and new and len(known) < MOST_LABELS:
        note(
            f"The target {target!r} holds {', '.join(map(repr, new[:3]))}, which was not a label "
            f"when the model was fitted. It counts as another label than {rare_label!r}."
        )
    is_rare: NDArray[Any] = np.array([key == folded(rare_label) for key in keys], dtype=bool)
    return is_rare[where]


def folded(label: str) -> str:
    """Return a label without case, and with single spaces."""
    return " ".join(label.split()).casefold()


def _check_number(
    labels: dict[str, str], counts: Counter[str], target: str, rare: str | None
) -> None:
    if len(labels) < 2:
        raise TableError(
            f"The target {target!r} has only one class, {_shown(counts)}, as labels that differ in "
            "upper and lower case only count as one. A model needs examples of rare and of other "
            "cases. Check the file, or name another column."
        )
    if len(labels) > MOST_LABELS and rare is None:
        raise TableError(
            f"The target {target!r} has {len(labels)} different values ({_shown(counts)}). It "
            "looks like a measurement. Name the column with the labels, or use rare=...."
        )


def _rarest(sizes: dict[str, int], labels: dict[str, str], target: str, notes: list[str]) -> str:
    fewest = min(sizes.values())
    rarest = [key for key, size in sizes.items() if size == fewest]
    if len(rarest) > 1:
        raise TableError(
            f"The labels {' and '.join(repr(labels[key]) for key in rarest[:4])} of {target!r} are "
            f"equally rare, with {fewest:,} rows each. Say which one to look for with rare=...."
        )
    if is_word_for_missing(labels[rarest[0]]):
        raise TableError(
            f"The rarest label of {target!r} is {labels[rarest[0]]!r}, which looks like a missing "
            "value. Say which label to look for with rare=..., or leave these rows out."
        )
    if len(labels) > 2:
        notes.append(
            f"{target!r} has {len(labels)} labels, {_shown(labels.values())}. The rarest, "
            f"{labels[rarest[0]]!r}, is looked for. For another one, use rare=..."
        )
    else:
        notes += _about_doubtful(rarest[0], sizes, labels, target)
    return rarest[0]


def _about_doubtful(
    key: str, sizes: dict[str, int], labels: dict[str, str], target: str
) -> list[str]:
    """Say which of two labels is looked for, if the other one may be meant."""
    share = sizes[key] / sum(sizes.values())
    (other,) = labels.keys() - {key}
    reads_so = _NEGATIVE.match(key) and not _NEGATIVE.match(other)
    if not reads_so and share <= _NOT_RARE:
        return []
    why = "which reads like the usual case" if reads_so else "which is not rare"
    return [
        f"The label {labels[key]!r} of {target!r} is looked for, {why}: {percent(share)} of the "
        f"rows have it. To look for the other one, use rare={labels[other]!r}"
    ]


def _about_spellings(spellings: Counter[str], target: str) -> str:
    first, *others = (spelling for spelling, _ in spellings.most_common())
    shown = ", ".join(repr(spelling) for spelling in others[:3])
    return f"The labels {first!r} and {shown} of {target!r} count as one label, {first!r}."


def _shown(labels: Iterable[str]) -> str:
    names = sorted(labels)
    return ", ".join(repr(label) for label in names[:8]) + (", ..." if len(names) > 8 else "")
