"""Numbers as people write them, for every sentence, table and page."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from numbers import Integral
from typing import Any

_MILLION = 1_000_000


def number(value: Any, digits: int = 3) -> str:
    """Write a number with so many digits, but all those before the point; a dash if there is none.

    A number that somebody stated takes `digits=12`.

    Examples
    --------
    >>> number(1480.4), number(15.234), number(6938), number(2e-5), number(6e6)
    ('1,480', '15.2', '6,938', '0.00002', '6 million')
    >>> number(35129.18000000001, digits=12)
    '35,129.18'
    """
    if value is None or value != value:
        return "–"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    value = float(value) + 0.0  # without the sign of -0.0
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if _MILLION <= abs(value) < _MILLION**2 and value % (_MILLION / 10) == 0:
        return f"{Decimal(value) / _MILLION:,f} million"
    before_point = len(str(int(abs(value))))
    return f"{Decimal(f'{value:.{max(digits, before_point)}g}'):,f}"


def percent(share: float | None) -> str:
    """Write a measured share with a suitable number of digits; a dash if there is none.

    Examples
    --------
    >>> percent(0.0625), percent(0.0025), percent(1.0), percent(None)
    ('6.3 %', '0.25 %', '100 %', '–')
    """
    if share is None or share != share:
        return "–"
    if 0 < share < 0.0001:
        return "below 0.01 %"
    digits = 2 if 0 < share < 0.01 else 0 if share == 1 else 1
    # Halves are rounded up, as in the script of the report, which shows the same numbers.
    exact = Decimal(100 * float(share)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{exact} %"


def between(low: float, high: float) -> str:
    """Write an interval of measured shares, such as 31.3 to 64.5 %."""
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def stated_percent(share: float) -> str:
    """Write a share that somebody stated, such as a confidence of 95 %, with its own digits."""
    return f"{number(100 * float(share), 4)} %"


def counted(count: int, one: str, many: str | None = None) -> str:
    """Write how many there are of something: 1 row, 2 rows.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(0, "batch", "batches")
    ('1 row', '2,000 rows', '0 batches')
    """
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"


def duration(seconds: float) -> str:
    """Return a time in seconds, minutes or hours, whichever is easiest to read.

    >>> duration(8.2), duration(170), duration(9_000)
    ('8 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return counted(max(1, round(seconds)), "second")
    if seconds < 5_400:
        return counted(round(seconds / 60), "minute")
    return f"{seconds / 3600:.1f} hours"
