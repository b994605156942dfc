"""Still more inputs for the catalogue: accounts, months, mixed orders, totals, titles and ends.

They were made up without a look at the others, from exports of offices in several countries.
"""

import decimal

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
from tests.cli.messy_inputs import FEW, amounts, dates, minutes, parquet, rows_of, sheet

GAPS, NO_DAYS = cells("amount", None, FEW), cells("opened", None, FEW)
#: How Stata writes a missing number.
STATA = "8.98846567431158e+307"
BEHIND = "'amount' is read as numbers .*brackets or a minus behind"


def signed(form):
    """Return a change that makes every third amount negative, in some form."""

    def change(frame):
        number = iter(range(len(frame)))
        return column("amount", lambda v: form(-v if next(number) % 3 == 0 else v))(frame)

    return change


def in_brackets(value):
    """Write a number as accountants do."""
    return f"$ ({-value:,.2f})" if value < 0 else f"$ {value:,.2f} "


def round_price(sign, none):
    """Return a form in which whole prices have no digits behind the sign."""

    def form(value):
        whole = int(value)
        return f"{whole}{sign}{none}" if whole % 3 else f"{whole}{sign}50"

    return form


def as_price(value):
    """Return the same price as a number."""
    return int(value) + (0 if int(value) % 3 else 0.5)


def mixed_order(frame):
    """Write months first, and days first in one row of fifty."""
    forms = [day("%d/%m/%Y" if i % 50 == 0 else "%m/%d/%Y") for i in range(len(frame))]
    days = ["2024-03-25" if i % 50 == 0 else value for i, value in enumerate(frame["opened"])]
    return frame.assign(opened=[form(value) for form, value in zip(forms, days, strict=True)])


def months(pattern):
    """Return a writer of dates as months."""
    return text(dates(day(pattern)))


def with_end(*rows, names=None):
    """Return a writer of a workbook with rows below the table."""

    def fill(page, frame):
        rows_of(page, frame if names is None else frame[names])
        for row in rows:
            page.append(row)

    return sheet(fill)


def with_title(*rows):
    """Return a writer of a workbook with rows above the heading."""

    def fill(page, frame):
        for row in rows:
            page.append(row)
        rows_of(page, frame)

    return sheet(fill)


def total(word):
    """Return a row with the sum of the amounts."""
    return [word, 999_999.5, None, None, None, None]


#: What has an order, but cannot be read.
IN_ORDER = {
    "quarters": lambda t: f"Q{t.quarter} {t.year}",
    "short quarters": lambda t: f"{t.quarter}Q{t.year % 100}",
    "weeks": lambda t: f"KW {t.week}/{t.year}",
    "years of accounts": lambda t: f"FY{t.year % 100}/{t.year % 100 + 1}",
    "digits with a time": lambda t: t.strftime("%Y%m%dT1015"),
    "hours": lambda t: f"{t.day % 12 + 1}:30 {'AM' if t.month % 2 else 'PM'}",
    "lengths of time": lambda t: f"PT{t.month}H{t.day}M",
    "feet and inches": lambda t: f"{4 + t.month % 3}'{t.day % 12}\"",
    "fractions": lambda t: f"{t.day} 1/2",
    "eighths": lambda t: f"{t.day % 7 + 1}/8",
    "about": lambda t: f"ca. {t.day * t.month}",
}

UNTIDY_FITS = {
    # accounts
    "accounts": (text(signed(in_brackets)), (), like(signed(lambda v: round(v, 2)), BEHIND)),
    "accounts, SAP": (
        text(signed(lambda v: german(-v) + "-" if v < 0 else german(v)), sep=";"),
        (),
        like(signed(lambda v: round(v, 2)), BEHIND),
    ),
    "no cents, points": (text(amounts(round_price(".", "-"))), (), like(amounts(as_price))),
    "no cents, dashes": (text(amounts(round_price(".", "\u2014"))), (), like(amounts(as_price))),
    "no cents, commas": (
        text(amounts(round_price(",", "--")), sep=";"),
        (),
        like(amounts(as_price), "'amount' .*decimal comma"),
    ),
    "long dashes for minus": (
        text(signed(lambda v: str(v).replace("-", "\u2013"))),
        (),
        like(signed(lambda v: v)),
    ),
    # dates
    "both orders, seldom": (
        text(mixed_order),
        (),
        noted("'opened' holds '25/03/2024', although .*%m/%d/%Y.*--drop opened"),
    ),
    "several formats": (
        text(
            lambda f: f.assign(
                opened=[v if i % 2 else f"{v[8:]}/{v[5:7]}/{v[:4]}" for i, v in enumerate(f.opened)]
            )
        ),
        (),
        noted("'opened' holds dates that are written in several ways, such as '[^']+' and '[^']+'"),
    ),
    "three formats": (
        text(
            lambda f: f.assign(
                opened=[
                    day(("%Y-%m-%d", "%d/%m/%Y", "%b %d, %Y")[i % 3])(v)
                    for i, v in enumerate(f.opened)
                ]
            )
        ),
        (),
        noted("'opened' holds dates that are written in several ways, such as '[^']+' and '[^']+'"),
    ),
    # codes that a computer takes for numbers
    "postal codes without zeros": (
        text(lambda f: f.assign(zip=[(1067, 99084, 10115)[i % 3] for i in range(len(f))])),
        (),
        noted("'zip' is read as numbers: '1067' .*leading zeros.*--read categorical=zip"),
    ),
    "postal codes, typed": (
        parquet(lambda f: f.assign(PLZ=[(1067, 99084, 10115)[i % 3] for i in range(len(f))])),
        (),
        noted("'PLZ' is read as numbers: .*leading zeros.*--read categorical=PLZ"),
    ),
    "a column of sizes": (
        text(lambda f: f.assign(size=[(1067, 99084, 10115)[i % 3] for i in range(len(f))])),
        (),
        like(lambda f: f.assign(size=[(1067.0, 99084.0, 10115.0)[i % 3] for i in range(len(f))])),
    ),
    "long numbers": (
        text(lambda f: f.assign(account=[2**60 + i % 50 for i in range(len(f))])),
        (),
        noted("'account' holds whole numbers with more than 15 digits.*--read categorical=account"),
    ),
    "long numbers, typed": (
        parquet(lambda f: f.assign(account=[2**60 + i % 50 for i in range(len(f))])),
        (),
        noted("'account' holds whole numbers with more than 15 digits.*--read categorical=account"),
    ),
    "long ids": (
        text(lambda f: f.assign(case=[2**60 + i for i in range(len(f))])),
        (),
        like(lambda f: f.assign(case=[2**60 + i for i in range(len(f))])),
    ),
    "long ids, as floats": (
        parquet(lambda f: f.assign(case=[float(2**60 + i) for i in range(len(f))])),
        (),
        noted("The id 'case' holds .*has shortened them.*ids as text"),
    ),
    "long ids, Excel": (
        sheet(lambda p, f: rows_of(p, f.assign(case=[2**60 + i for i in range(len(f))]))),
        (),
        noted("The id 'case' holds .*has shortened them.*ids as text"),
    ),
    "months, slashes": (months("%m/%Y"), (), noted("'opened' .*--read date_format=opened=MM/YYYY")),
    "months, points": (months("%m.%Y"), (), noted("'opened' .*--read date_format=opened=MM.YYYY")),
    "months, digits": (months("%Y%m"), (), noted("'opened' .*--read date_format=opened=YYYYMM")),
    "months, names": (months("%b-%y"), (), noted("'opened' .*--read date_format=opened=%b-%y")),
    "months, long names": (months("%B %Y"), (), noted("--read 'date_format=opened=%B %Y'")),
    "months, points, said": (
        months("%m.%Y"),
        ("--read", "date_format=opened=MM.YYYY"),
        like(dates(day("%Y-%m-01"))),
    ),
    **{
        f"in order, {what}": (
            text(dates(lambda value, form=form: form(pd.Timestamp(value)))),
            (),
            noted("'opened' looks like numbers or dates, such as .*--drop opened"),
        )
        for what, form in IN_ORDER.items()
    },
    "days of a week": (
        text(dates(day("%a, %d %b %Y 00:00:00 +0000"))),
        (),
        same("'opened' is read as dates: 'Sun"),
    ),
    "long days of a week": (
        text(dates(day("%A, %B %d, %Y"))),
        (),
        same("'opened' is read as dates: 'Sun"),
    ),
    "months and gaps": (
        text(changes(dates(day("%b-%y")), cells("opened", "n/a", FEW))),
        (),
        noted("'opened' .*--read date_format=opened=%b-%y"),
    ),
    # Excel
    "a title of several cells": (
        with_title(["Cases", "as of", "2024-05-31"], []),
        (),
        same("has a title above its heading"),
    ),
    "two lines of title": (
        with_title(["Cases 2024"], ["as of", "2024-05-31"], []),
        (),
        same("has a title above its heading"),
    ),
    "two totals": (
        with_end(total("Summe"), total("Mittelwert")),
        (),
        same(r"looks like a total \(Summe", r"looks like a total \(Mittelwert"),
    ),
    "a total of a pivot": (
        with_end(total("Gesamtergebnis")),
        (),
        same(r"looks like a total \(Gesamtergebnis"),
    ),
    "a French total": (with_end(total("Total général")), (), same("looks like a total")),
    "a total without a word": (
        with_end(total(None)),
        (),
        refused("'fraud' is empty in 1 of 401 rows, first in row 401"),
    ),
    # files
    "both kinds": (
        text(),
        ("--read", "categorical=amount", "--read", "numeric=amount"),
        refused("--read categorical=... and --read numeric=... both name 'amount'"),
    ),
    "a workbook as CSV": (
        text(before="PK\x03\x04"),
        (),
        refused("is not a text file, but an Excel workbook.*extension .xlsx"),
    ),
    "a word for missing as label": (
        text(column("fraud", {"yes": "yes", "no": "None"}.get)),
        (),
        refused("'fraud' is empty in .*None count as empty"),
    ),
    "a very long text": (
        text(cells("country", "y" * 150_000, [399])),
        (),
        like(cells("country", "y", [399])),
    ),
    "numbers beyond all": (
        text(cells("amount", "1e400", FEW)),
        (),
        refused(r"'amount' must be a finite number; row 4 .*--read na=1e400"),
    ),
    "numbers beyond all, said": (
        text(cells("amount", "1e400", FEW)),
        ("--read", "na=1e400"),
        like(GAPS),
    ),
    "numbers of Stata": (
        text(cells("amount", STATA, FEW)),
        (),
        refused(r"'amount' must be a finite number.*row 4 .*--read na=8.98846567431158e\+307"),
    ),
    "numbers of Stata, said": (
        text(cells("amount", STATA, FEW)),
        ("--read", f"na={STATA}"),
        like(GAPS),
    ),
    # splits
    "the latest have no time": (
        text(cells("opened", "9999-12-31", FEW)),
        ("--time", "opened"),
        noted("'opened' is 9999-12-31 in 6 of 400 rows.*these rows are the latest.*leave them out"),
    ),
    "one time": (
        text(dates(lambda v: "2024-05-31")),
        ("--time", "opened"),
        refused("--time leaves no past to learn from: 100 % of the rows"),
    ),
    "groups with gaps": (
        text(),
        ("--group", "country"),
        refused("--group names 'country', which has [0-9]+ missing values"),
    ),
}

UNTIDY_LATER = {
    "two totals": ((), with_end(total("Summe"), total("Ergebnis")), (), same("Summe", "Ergebnis")),
    "a total in CSV": (
        (),
        text(after="Total general,999999,,,,\nAverage,2.5,,,,\n"),
        (),
        same("Total general", "Average"),
    ),
    "a subtotal in the middle": (
        (),
        text(before="case,amount,country,opened,vip,fraud\nNorth Total,999999,,,,\n", header=False),
        (),
        noted(r"A row of .* looks like a total \(North Total, 999999\), but counts as a case"),
    ),
    "a subtotal in the middle of a sheet": (
        (),
        sheet(
            lambda page, frame: [
                rows_of(page, frame.head(9)),
                page.append(total("Zwischensumme")),
                *(page.append(list(row)) for row in frame.tail(9).itertuples(index=False)),
            ]
        ),
        (),
        noted(r"A row of .* looks like a total \(Zwischensumme, 999999.5\)"),
    ),
    "empty rows in the middle": (
        (),
        text(before="case,amount,country,opened,vip,fraud\nx,,,,,\ny,,,,,\n", header=False),
        (),
        noted("2 rows hold no value of any column that the model learned from, first row 1 of"),
    ),
    "a remark at the end": (
        (),
        text(after="as of 2024-05-31,,,,,\n"),
        (),
        noted(r"The last row of .* is nearly empty \(as of 2024-05-31\), but counts as a case"),
    ),
    "9999 for missing": (
        (),
        text(cells("opened", "9999-12-31", FEW)),
        (),
        noted("'opened' is 9999-12-31 in 6 of 400 rows, far from .*--read na=9999-12-31"),
    ),
    "9999 for missing, said": (
        (),
        text(cells("opened", "9999-12-31", FEW)),
        ("--read", "na=9999-12-31"),
        like(NO_DAYS),
    ),
    "1900 for missing": (
        (),
        text(cells("opened", "1900-01-01", range(0, 400, 9))),
        (),
        noted("'opened' is 1900-01-01 in 45 of 400 rows, far from .*--read na=1900-01-01"),
    ),
    "-1 for missing": (
        (),
        text(cells("amount", -1, FEW)),
        (),
        noted("'amount' is -1 in 6 of 400 rows, far from .*--read na=-1"),
    ),
    "99999999 for missing": (
        (),
        text(cells("amount", 99999999, [3, 5])),
        (),
        noted("Note: 'amount' is 99999999 in 2 of 400 rows, far from .*--read na=99999999"),
    ),
    "now numbers of Stata": (
        (),
        text(cells("amount", STATA, FEW)),
        (),
        refused("a finite number; row 4"),
    ),
    "a very long text": (
        (),
        text(cells("country", "y" * 150_000, [399])),
        (),
        noted("'country' holds values that the fit did not see.*'y{79}. They count"),
    ),
    "decimals of a database": (
        (),
        parquet(amounts(lambda v: decimal.Decimal(str(v)))),
        (),
        same(),
    ),
    "now percent": (
        (),
        text(amounts(lambda v: f"{v}%")),
        (),
        refused("'amount' must be a finite number.*Its values were plain numbers"),
    ),
    "no cents": (
        (),
        text(amounts(round_price(".", "-"))),
        (),
        like(amounts(as_price)),
    ),
    "fitted: no cents, now with": (
        (text(changes(minutes(), amounts(round_price(".", "-")))), ()),
        text(changes(minutes(), amounts(as_price))),
        (),
        like(changes(minutes(), amounts(as_price))),
    ),
}
