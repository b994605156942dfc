"""More inputs for the catalogue: what people do to tables, and what later files do differently.

They were made up without a look at the first ones, by trying tables of many kinds.
"""

import datetime

import openpyxl
import pandas as pd

from tests.cli.catalogue import (
    cells,
    changes,
    column,
    day,
    german,
    like,
    noted,
    refused,
    same,
    text,
)

FEW = range(3, 9)
HEADING = "case,amount,country,opened,vip,fraud\n"


def amounts(form):
    """Return a change of the amounts."""
    return column("amount", form)


def dates(form):
    """Return a change of the dates, which are texts such as 2024-05-31."""
    return column("opened", form)


def minutes(form=int):
    """Return a change that adds whole numbers, from 200 to 4199, in some form."""

    def change(frame):
        days = pd.to_datetime(frame["opened"]).dt.day_of_year
        return frame.assign(minutes=[form(200 + 13 * number % 4000) for number in days])

    return change


def clock(number):
    """Write minutes as hours and minutes."""
    return f"{number // 60}:{number % 60:02d}"


def split(number):
    """Write a whole number as in Germany."""
    return f"{number:,}".replace(",", ".")


def early(frame):
    """Let every date be one of the first twelve days of a month."""
    days = [f"{text[:8]}{1 + int(text[8:]) % 12:02d}" for text in frame["opened"]]
    return frame.assign(opened=days)


def sheet(fill):
    """Return a writer of a workbook that a function fills."""

    def write(folder, frame):
        book = openpyxl.Workbook()
        frame = frame.astype(object).where(frame.notna(), None)
        fill(book.active, frame)
        book.save(folder / "t.xlsx")
        return folder / "t.xlsx"

    return write


def rows_of(page, frame):
    """Write a table below what a page has."""
    page.append(list(frame.columns))
    for row in frame.itertuples(index=False):
        page.append(list(row))


def by_country(frame):
    """Sort a table by a column."""
    return frame.sort_values("country", kind="stable", na_position="last")


def merged_cells(page, frame):
    """Write a country once, in a cell as high as its rows."""
    frame = by_country(frame)
    rows_of(page, frame)
    places = pd.Series(range(2, len(frame) + 2), index=frame["country"].to_numpy())
    for name in frame["country"].dropna().unique():
        page.merge_cells(f"C{places[name].min()}:C{places[name].max()}")


def merged_heading(page, frame):
    """Write names of groups above the names of columns."""
    page.append(["Case", "Numbers", None, "Other", None, "Label"])
    page.merge_cells("B1:C1")
    page.merge_cells("D1:E1")
    rows_of(page, frame)


def parquet(change):
    """Return a writer of a Parquet file with a changed table."""

    def write(folder, frame):
        change(frame.copy()).to_parquet(folder / "t.parquet")
        return folder / "t.parquet"

    return write


def moments(years=0):
    """Return a change of the dates to values with a type of their own."""

    def change(frame):
        days = [f"{int(text[:4]) + years}{text[4:]}" for text in frame["opened"]]
        return frame.assign(opened=pd.Series(days).to_numpy(dtype="datetime64[s]"))

    return change


ODD = r"'amount' looks like numbers or dates, .*--drop amount"
TIMES = "'minutes' is read as durations or times of day"
LIKE_MINUTES = like(minutes(), TIMES)
MORE_FITS = {
    # headings and rows
    "a title above, with empty cells": (
        text(before="Export of May;;;;;\n", sep=";"),
        (),
        refused("first line of .* names 1 of 6 columns.*lines above the one with"),
    ),
    "a title above": (text(before="Export\n"), (), refused("lines above the one with the column")),
    "the heading twice": (text(after=HEADING), (), refused("the heading comes twice")),
    "zero bytes": (text(cells("country", "a\0r", FEW)), (), refused("holds no zero bytes")),
    "merged cells": (
        sheet(merged_cells),
        (),
        like(by_country, "merged cells. Their value counts for all rows"),
    ),
    "a merged heading": (sheet(merged_heading), (), same("title above its heading")),
    "a table beside": (
        text(lambda f: f.assign(extra=["x" if i < 4 else None for i in range(len(f))])),
        (),
        noted("'extra' is filled in 4 of 400 rows only.*--drop extra"),
    ),
    # numbers
    "Indian thousands": (
        text(amounts(lambda v: f"{1 + int(v) % 9},{int(7 * v) % 90 + 10},{int(v) % 900 + 100}")),
        (),
        like(
            amounts(
                lambda v: (
                    (1 + int(v) % 9) * 100_000 + (int(7 * v) % 90 + 10) * 1000 + int(v) % 900 + 100
                )
            ),
            "'amount' .*thousands with a comma",
        ),
    ),
    "below one, semicolons": (
        text(amounts(lambda v: f"0.{int(7 * v) % 1000:03d}"), sep=";"),
        (),
        like(amounts(lambda v: int(7 * v) % 1000 / 1000)),
    ),
    "two currencies": (
        text(amounts(lambda v: f"$ {v}" if v > 20 else f"{v} EUR")),
        (),
        same(r"'amount' .*in \$ and EUR, which count alike.*--drop amount"),
    ),
    "hours and minutes": (text(minutes(clock)), (), LIKE_MINUTES),
    "with seconds": (
        text(minutes(lambda v: f"{v // 3600}:{v // 60 % 60:02d}:{v % 60:02d}")),
        (),
        LIKE_MINUTES,
    ),
    "durations of Excel": (
        sheet(lambda p, f: rows_of(p, minutes(lambda v: datetime.timedelta(seconds=v))(f))),
        (),
        LIKE_MINUTES,
    ),
    "durations with gaps": (
        text(changes(minutes(clock), cells("minutes", "n/a", FEW))),
        (),
        like(changes(minutes(), cells("minutes", None, FEW)), TIMES, "'minutes' .*'n/a', read as"),
    ),
    "about": (text(amounts(lambda v: f"~{v}")), (), noted(ODD)),
    "kg and g": (text(amounts(lambda v: f"{v} kg" if v > 20 else f"{v} g")), (), noted(ODD)),
    "k and M": (text(amounts(lambda v: f"{v}k" if v > 20 else f"{v}M")), (), noted(ODD)),
    "hours in words": (text(amounts(lambda v: f"{int(v)}h {int(9 * v) % 60}m")), (), noted(ODD)),
    "a share of": (
        text(amounts(lambda v: f"{v}/100")),
        (),
        noted("'amount' .* is treated as text"),
    ),
    "hexadecimal": (text(amounts(lambda v: hex(int(100 * v)))), (), noted(ODD)),
    "other digits": (
        text(amounts(lambda v: str(v).translate({48 + i: 0x660 + i for i in range(10)}))),
        (),
        noted(ODD),
    ),
    "-999, not said": (
        text(cells("amount", -999, FEW)),
        (),
        noted("'amount' is -999 .*--read na=-999"),
    ),
    "99999999": (text(cells("amount", 99999999, FEW)), (), noted("--read na=99999999")),
    # dates
    "months": (text(dates(day("%Y-%m"))), (), noted("--read date_format=opened=YYYY-MM")),
    "months, said": (
        text(dates(day("%Y-%m"))),
        ("--read", "date_format=opened=YYYY-MM"),
        like(dates(day("%Y-%m-01"))),
    ),
    "quarters": (
        text(dates(lambda v: f"{v[:4]}-Q{(int(v[5:7]) + 2) // 3}")),
        (),
        noted("'opened' looks like numbers or dates"),
    ),
    "UTC": (text(dates(lambda v: f"{v} 00:00:00 UTC")), (), same()),
    "CET": (text(dates(lambda v: f"{v} 00:00:00 CET")), (), noted("'opened' looks like numbers")),
    "the year 9999": (
        text(cells("opened", "9999-12-31", FEW)),
        (),
        noted("'opened' is 9999-12-31 in 6 of 400 rows.*--read na=9999-12-31"),
    ),
    "the year 9999, said": (
        text(cells("opened", "9999-12-31", FEW)),
        ("--read", "na=9999-12-31"),
        like(cells("opened", None, FEW)),
    ),
    "the year 2324": (
        parquet(moments(300)),
        (),
        like(dates(lambda v: f"{int(v[:4]) + 300}{v[4:]}")),
    ),
    # categories
    "spellings": (
        text(cells("country", "AR", range(0, 400, 9))),
        (),
        noted("'country' holds .*'AR'.* count as different values"),
    ),
    "letters in two parts": (
        text(changes(cells("country", "é", FEW), cells("country", "e\u0301", range(20, 30)))),
        (),
        noted("'country' .* count as different values"),
    ),
    "vrai and faux": (
        text(column("vip", {"true": "vrai", "false": "faux"}.get)),
        (),
        same("'vip' holds 'vrai' and 'faux'"),
    ),
}

COMMAS = (text(changes(minutes(), amounts(german)), sep=";"), ())
WHOLE = (text(minutes()), ())
DOLLARS = (text(amounts(lambda v: f"${v}")), ())
MASSES = (text(amounts(lambda v: f"{v} kg")), ())
SHARES = (text(amounts(lambda v: f"{v} %")), ())
CLOCKS = (text(minutes(clock)), ())
DAYS_FIRST = (text(dates(day("%d/%m/%Y"))), ())
MONTHS_FIRST = (text(dates(day("%m/%d/%Y"))), ())
TWO_DIGITS = (text(dates(day("%d-%m-%y"))), ())
TYPED = (parquet(moments()), ())
NO_DATE = refused("'opened' must be a date .*--read date_format")
MORE_LATER = {
    # either way would do: the file of the fit decides
    "commas: thousands": (
        COMMAS,
        text(changes(minutes(split), amounts(german)), sep=";"),
        (),
        like(minutes()),
    ),
    "commas: only thousands": (
        COMMAS,
        text(changes(minutes(), amounts(lambda v: split(1000 + int(v)))), sep=";"),
        (),
        like(changes(minutes(), amounts(lambda v: 1000 + int(v)))),
    ),
    "commas: below one": (
        COMMAS,
        text(changes(minutes(), amounts(lambda v: f"0.{int(7 * v) % 1000:03d}"))),
        (),
        refused(r"'amount' must be a finite number.*--read decimal=\."),
    ),
    "whole: thousands or parts": (
        WHOLE,
        text(minutes(split)),
        (),
        noted("'minutes' had whole numbers .*--read decimal=,"),
    ),
    "whole: thousands, said": (
        WHOLE,
        text(changes(minutes(split), amounts(german)), sep=";"),
        ("--read", "decimal=,"),
        like(minutes()),
    ),
    "whole: commas": (
        WHOLE,
        text(minutes(lambda v: f"{v:,}")),
        (),
        refused("'minutes' must be a finite number.*--read decimal=,"),
    ),
    "whole: gaps": (
        WHOLE,
        text(minutes(lambda v: split(v).replace(".", "\xa0"))),
        (),
        like(minutes()),
    ),
    "days first, either way": (
        DAYS_FIRST,
        text(changes(early, dates(day("%d/%m/%Y")))),
        (),
        like(changes(early, moments())),
    ),
    "months first, either way": (
        MONTHS_FIRST,
        text(changes(early, dates(day("%m/%d/%Y")))),
        (),
        like(changes(early, moments())),
    ),
    "days first, now months": (DAYS_FIRST, MONTHS_FIRST[0], (), NO_DATE),
    "days first, now years": (DAYS_FIRST, text(), (), NO_DATE),
    "two digits, either way": (
        TWO_DIGITS,
        text(changes(early, dates(day("%d-%m-%y")))),
        (),
        like(changes(early, moments())),
    ),
    "years first, either way": ((), text(changes(early, dates(day("%d/%m/%Y")))), (), NO_DATE),
    "typed dates, either way": (TYPED, text(changes(early, dates(day("%m/%d/%Y")))), (), NO_DATE),
    "typed dates, texts": (TYPED, text(), (), same()),
    "points and days": ((), text(dates(day("%d.%m.%Y"))), (), same()),
    "a year only": ((), text(dates(day("%Y"))), (), NO_DATE),
    "a month only": ((), text(dates(day("%Y-%m"))), (), NO_DATE),
    "numbers of days": (
        (),
        text(dates(lambda v: pd.Timestamp(v).day_of_year + 45_000)),
        (),
        NO_DATE,
    ),
    "seconds": ((), text(dates(lambda v: int(pd.Timestamp(v).timestamp()))), (), NO_DATE),
    "the year 2324, typed": ((), parquet(moments(300)), (), noted("'opened' lies above")),
    # another unit
    "dollars, now euros": (
        DOLLARS,
        text(amounts(lambda v: f"€{v}")),
        (),
        same(r"'amount' was in \$ .* now holds €.*Convert them"),
    ),
    "dollars, now none": (DOLLARS, text(), (), same()),
    "kg, now euros": (MASSES, text(amounts(lambda v: f"{v} EUR")), (), same("was in kg .* EUR")),
    "kg, now g": (
        MASSES,
        text(amounts(lambda v: f"{v} g")),
        (),
        refused("'amount' must be a finite number"),
    ),
    "percent, now without": (SHARES, text(), (), refused("'amount' .* Its values were in %")),
    "percent, now typed": (
        SHARES,
        parquet(amounts(lambda v: round(v / 100, 4))),
        (),
        like(amounts(lambda v: round(v / 100, 4))),
    ),
    "durations": (CLOCKS, text(minutes(clock)), (), like(minutes())),
    "durations, now with seconds": (
        CLOCKS,
        text(minutes(lambda v: f"0:{clock(v)}" if v < 3600 else f"1:{clock(v % 3600)}")),
        (),
        refused("'minutes' must be a finite number"),
    ),
    # the rest
    "truths with points": (
        (),
        text(column("vip", {"true": "1.0", "false": "0.0"}.get)),
        (),
        same(),
    ),
    "another order": ((), text(lambda f: f[f.columns[::-1]]), (), same()),
    "another name": (
        (),
        text(lambda f: f.rename(columns={"amount": "Amount "})),
        (),
        refused("Is 'Amount' the column 'amount'"),
    ),
    "capitals": (
        (),
        text(column("country", str.upper)),
        (),
        noted(r"'country' holds values .*'AR' \(before: 'ar'\)"),
    ),
    "later zero bytes": ((), text(cells("country", "a\0r", FEW)), (), refused("no zero bytes")),
}
