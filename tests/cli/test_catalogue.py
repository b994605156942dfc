"""The catalogue of bad inputs: how real tables are written, through every command."""

import itertools
import json
import os

import numpy as np
import pandas as pd
import pytest

from tests.cli.catalogue import (
    FIT,
    Like,
    answer,
    cells,
    changes,
    check,
    check_rows,
    column,
    day,
    excel,
    german,
    like,
    lines,
    noted,
    raw,
    read_for_fit,
    read_later,
    refused,
    run,
    same,
    text,
)
from tests.cli.messy_inputs import MORE_FITS, MORE_LATER
from tests.cli.untidy_inputs import UNTIDY_FITS, UNTIDY_LATER
from tests.conftest import make_cases

FEW = range(3, 9)  # the rows of a few odd cells


def amounts(form):
    """Return a change of the amounts."""
    return column("amount", form)


MEASURED = itertools.cycle(np.random.default_rng(0).random(400))
GAPS = cells("amount", None, FEW)
NO_DAYS = cells("opened", None, FEW)
MINUS = amounts(lambda v: -v)


def NOTE(frame):
    """Add a column that says nothing."""
    return frame.assign(note="x")


# --- inputs of fit: a writer, options, and what must come of them ---

DECIMALS = r"'amount' is read as numbers \(decimal comma"
FITS = {
    # numbers that look like text
    "clean": (text(), (), same()),
    "decimal commas, semicolons": (text(amounts(german), sep=";"), (), same(DECIMALS)),
    "decimal commas, quoted": (text(amounts(german)), (), same(DECIMALS)),
    "decimal commas, tabs": (text(amounts(german), sep="\t", suffix=".tsv"), (), same(DECIMALS)),
    "decimal commas, pipes": (text(amounts(german), sep="|"), (), same(DECIMALS)),
    "decimal commas, said": (
        text(amounts(german), sep=";"),
        ("--read", "decimal=,"),
        same(DECIMALS),
    ),
    "no thousands": (text(amounts(lambda v: german(v, "")), sep=";"), (), same(DECIMALS)),
    "thousands with spaces": (text(amounts(lambda v: german(v, " ")), sep=";"), (), same(DECIMALS)),
    "thousands, no-break": (
        text(amounts(lambda v: german(v, "\xa0")), sep=";"),
        (),
        same(DECIMALS),
    ),
    "thousands, narrow": (text(amounts(lambda v: german(v, "\u202f"))), (), same(DECIMALS)),
    "Swiss thousands": (text(amounts(lambda v: f"{v:,.2f}".replace(",", "'"))), (), same()),
    "English thousands": (
        text(amounts(lambda v: f"{1000 * v:,.2f}")),
        (),
        like(amounts(lambda v: 1000 * v), r"'amount' is read as numbers \(thousands with a comma"),
    ),
    "dollars": (text(amounts(lambda v: f"${v}")), (), same(r"'amount' .*\(in (\$|EUR|CHF)\)")),
    "euros": (text(amounts(lambda v: german(v) + " €"), sep=";"), (), same("'amount' .* in €")),
    "EUR": (text(amounts(lambda v: f"EUR {v}")), (), same(r"'amount' .*\(in (\$|EUR|CHF)\)")),
    "CHF behind": (
        text(amounts(lambda v: f"{v} CHF")),
        (),
        same(r"'amount' .*\(in (\$|EUR|CHF)\)"),
    ),
    "kilograms": (text(amounts(lambda v: f"{v} kg")), (), same("'amount' .*in kg")),
    "plus signs": (text(amounts(lambda v: f"+{v}")), (), same()),
    "scientific": (text(amounts(lambda v: f"{v:.15e}")), (), same()),
    "scientific, large E": (text(amounts(lambda v: f"{v:.15E}")), (), same()),
    "percent": (
        text(amounts(lambda v: f"{v} %")),
        (),
        like(amounts(lambda v: v / 100), "'amount' .* %.: .*--read categorical"),
    ),
    "percent in some rows": (
        text(cells("amount", "12%", range(0, 400, 2))),
        (),
        noted("'amount' holds numbers that are written in several ways, .* '12%'.*--drop amount"),
    ),
    "spaces around": (text(amounts(lambda v: f"  {v} ")), (), same()),
    "no-break spaces around": (text(amounts(lambda v: f"\xa0{v}\xa0")), (), same()),
    "apostrophe before": (text(amounts(lambda v: f"'{v}")), (), same()),
    "minus behind": (text(amounts(lambda v: f"{v}-")), (), like(MINUS, "a minus behind")),
    "brackets for minus": (text(amounts(lambda v: f"({v})")), (), like(MINUS, "brackets or")),
    "points or commas": (
        text(cells("amount", "12,5", range(0, 400, 3))),
        (),
        noted("'amount' holds numbers that are written in several ways.*--read decimal"),
    ),
    "points or commas, said": (
        text(cells("amount", "12,5", FEW)),
        ("--read", "numeric=amount", "--read", "decimal=."),
        like(GAPS, "'amount' .*read as missing.*--read categorical=amount"),
    ),
    "either way, points": (
        text(amounts(lambda v: f"{1 + int(v) % 900}.125")),
        (),
        like(
            amounts(lambda v: 1 + int(v) % 900 + 0.125),
            "'amount' could be .*point .*--read decimal=,",
        ),
    ),
    "either way, commas": (
        text(amounts(lambda v: f"{1 + int(v) % 900},125")),
        (),
        like(
            amounts(lambda v: 1000 * (1 + int(v) % 900) + 125),
            "'amount' could be read in two ways. Its comma .*thousands.*--read decimal=,",
        ),
    ),
    "either way, said": (
        text(amounts(lambda v: f"{1 + int(v) % 900},125")),
        ("--read", "decimal=,"),
        like(amounts(lambda v: 1 + int(v) % 900 + 0.125), "'amount' .*decimal comma"),
    ),
    "either way, settled": (
        text(lambda f: f.assign(price=[f"{i % 90 + 1}.000" for i in range(len(f))]), sep=";"),
        ("--read", "decimal=,"),
        noted("'price' .*'1.000' is 1000|'price' is read as numbers"),
    ),
    # words among numbers
    "unknown": (
        text(cells("amount", "unknown", FEW)),
        (),
        like(GAPS, "'amount' .*'unknown', read as"),
    ),
    "dashes": (text(cells("amount", "-", FEW)), (), like(GAPS, "'amount' .*'-', read as missing")),
    "n/a": (text(cells("amount", "n/a", FEW)), (), like(GAPS, "'amount' .*'n/a', read as missing")),
    "#N/A": (text(cells("amount", "#N/A", FEW)), (), like(GAPS)),
    "null": (text(cells("amount", "null", FEW)), (), like(GAPS)),
    "#DIV/0!": (
        text(cells("amount", "#DIV/0!", FEW)),
        (),
        like(GAPS, "'amount' .*read as missing"),
    ),
    "k.A.": (
        text(cells("amount", "k.A.", FEW)),
        (),
        like(GAPS, "'amount' .*'k.A.', read as missing"),
    ),
    "other words": (
        text(cells("amount", "refused", FEW)),
        (),
        like(GAPS, "'amount' .*'refused', read as missing. .*--read categorical=amount"),
    ),
    "other words, said": (
        text(cells("amount", "refused", FEW)),
        ("--read", "na=refused"),
        like(GAPS),
    ),
    "many words": (
        text(cells("amount", "see file", range(0, 400, 3))),
        (),
        noted("'amount' holds numbers, but in .*--read numeric=amount"),
    ),
    "many words, said": (
        text(cells("amount", "see file", range(0, 400, 3))),
        ("--read", "numeric=amount"),
        like(cells("amount", None, range(0, 400, 3)), "'amount' .*'see file', read as missing"),
    ),
    "-999": (text(cells("amount", -999, FEW)), ("--read", "na=-999"), like(GAPS)),
    "infinity": (
        text(cells("amount", "inf", FEW)),
        (),
        refused("'amount' must be a finite number.*row 4 .*--read na"),
    ),
    "Infinity": (
        text(cells("amount", "-Infinity", FEW)),
        (),
        refused("'amount' must be a finite number; row 4"),
    ),
    "infinity, said": (text(cells("amount", "inf", FEW)), ("--read", "na=inf"), like(GAPS)),
    "no values": (
        text(cells("amount", None, range(400))),
        (),
        noted("'amount' is left out.*is empty"),
    ),
    "only words": (
        text(cells("amount", "much", range(400))),
        ("--read", "numeric=amount"),
        noted("no num"),
    ),
    # codes, truths, categories
    "postal codes": (
        text(lambda f: f.assign(zip=[f"{i % 7:05d}" for i in range(len(f))])),
        (),
        noted("'zip' holds codes with leading zeros, such as '00000'.*--read numeric=zip"),
    ),
    "postal codes without zeros": (
        text(lambda f: f.assign(zip=[(1067, 10115, 4109)[i % 3] for i in range(len(f))])),
        (),
        noted("'zip' is read as numbers: '1067' is a size.*leading zeros.*--read categorical=zip"),
    ),
    "codes like exponents": (
        text(lambda f: f.assign(shelf=[f"{i % 7 + 1}E{i % 3}" for i in range(len(f))])),
        (),
        noted("'shelf' is read as numbers: '1E0' is 1. .*--read categorical=shelf"),
    ),
    "postal codes, numeric": (
        text(lambda f: f.assign(zip=[f"{i % 7:05d}" for i in range(len(f))])),
        ("--read", "numeric=zip"),
        like(lambda f: f.assign(zip=[float(i % 7) for i in range(len(f))])),
    ),
    "codes, categorical": (
        text(lambda f: f.assign(shop=np.arange(len(f)) % 5)),
        ("--read", "categorical=shop"),
        like(lambda f: f.assign(shop=[f"s{i % 5}" for i in range(len(f))])),
    ),
    "yes and no": (
        text(column("vip", {"true": "yes", "false": "no"}.get)),
        (),
        same("'vip' holds 'yes' and 'no', read as true and false"),
    ),
    "ja and nein": (text(column("vip", {"true": "Ja", "false": "NEIN"}.get)), (), same("'ja'")),
    "Y and N": (text(column("vip", {"true": "Y", "false": "N"}.get)), (), same("'vip' holds 'y'")),
    "1 and 0": (text(column("vip", {"true": 1, "false": 0}.get)), (), same()),
    "TRUE and False": (text(column("vip", {"true": "TRUE", "false": "False"}.get)), (), same()),
    "spaces in categories": (text(column("country", lambda v: f" {v} ")), (), same()),
    "no-break in categories": (text(column("country", lambda v: f"{v}\xa0")), (), same()),
    # dates
    "days first, dots": (text(column("opened", day("%d.%m.%Y"))), (), same()),
    "short days, dots": (
        text(column("opened", lambda v: day("%d.%m.%y")(v))),
        (),
        same("'opened'"),
    ),
    "days first": (text(column("opened", day("%d/%m/%Y"))), (), same("'opened' is read as dates")),
    "months first": (
        text(column("opened", day("%m/%d/%Y"))),
        (),
        same("'opened' is read as dates"),
    ),
    "months first, short": (text(column("opened", day("%m/%d/%y"))), (), same("'opened' is read")),
    "days first, dashes": (text(column("opened", day("%d-%m-%Y"))), (), same("'opened' is read")),
    "years first, slashes": (text(column("opened", day("%Y/%m/%d"))), (), same()),
    "names of months": (text(column("opened", day("%d %b %Y"))), (), same("'opened' is read")),
    "names first": (text(column("opened", day("%B %d, %Y"))), (), same("'opened' is read")),
    "midnight": (text(column("opened", day("%Y-%m-%d 00:00:00"))), (), same()),
    "midnight, AM": (
        text(column("opened", day("%m/%d/%Y 12:00 AM"))),
        (),
        same("'opened' is read"),
    ),
    "time zone": (text(column("opened", day("%Y-%m-%dT02:00:00+02:00"))), (), same()),
    "UTC": (text(column("opened", day("%Y-%m-%dT00:00:00Z"))), (), same()),
    "compact": (
        text(column("opened", day("%Y%m%d"))),
        (),
        noted("'opened' looks like dates.*--read date_format=opened=YYYYMMDD"),
    ),
    "compact, said": (
        text(column("opened", day("%Y%m%d"))),
        ("--read", "date_format=opened=YYYYMMDD"),
        same(),
    ),
    "either order": (
        text(column("opened", day("%m/05/2024"))),
        (),
        noted("'opened' looks like dates.*ambiguous.*--read date_format=opened=DD/MM/YYYY"),
    ),
    "either order, said": (
        text(column("opened", day("%m/05/2024"))),
        ("--read", "date_format=MM/DD/YYYY"),
        like(column("opened", day("2024-%m-05"))),
    ),
    "three formats": (
        text(
            lambda f: f.assign(
                opened=[
                    day(("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y")[i % 3])("2024-03-25")
                    for i in range(len(f))
                ]
            )
        ),
        (),
        noted("'opened' holds dates that are written in several ways.*--drop opened"),
    ),
    "both orders": (
        text(changes(column("opened", day("%m/%d/%Y")), cells("opened", "31/12/2024", range(99)))),
        (),
        noted("'opened' holds dates that are written in several ways.*--read date_format"),
    ),
    "wrong format": (
        text(),
        ("--read", "date_format=opened=DD/MM/YYYY"),
        refused("--read date_format=opened=... does not fit.*'2024-"),
    ),
    "no format": (text(), ("--read", "date_format=soon"), refused("is not a date format")),
    "a format of no column": (
        text(),
        ("--read", "date_format=Opened=DD/MM/YYYY"),
        refused("no column 'Opened', which --read date_format=... names"),
    ),
    "days that are none": (
        text(cells("opened", "2024-02-31", FEW)),
        (),
        like(
            NO_DAYS,
            "'opened' holds dates; in 6 .*'2024-02-31', read as missing.*--read categorical=opened",
        ),
    ),
    "zero days": (
        text(cells("opened", "0000-00-00", FEW)),
        (),
        like(NO_DAYS, "'opened' .*read as missing"),
    ),
    "words among dates": (
        text(cells("opened", "unknown", FEW)),
        (),
        like(NO_DAYS, "'opened' .*'unknown'"),
    ),
    # files
    "UTF-8 with a mark": (text(encoding="utf-8-sig"), (), same()),
    "UTF-16": (text(encoding="utf-16"), (), same()),
    "UTF-16 without a mark": (text(encoding="utf-16-le"), (), same()),
    "Windows": (
        text(column("country", {"ar": "är", "br": "br", "cl": "cl"}.get), encoding="cp1252"),
        (),
        same("t.csv is not UTF-8 text, and is read .*'är' is misspelt.*--read encoding"),
    ),
    "Cyrillic": (
        text(column("country", {"ar": "Рим", "br": "br", "cl": "cl"}.get), encoding="cp1251"),
        (),
        refused("t.csv is not UTF-8 text.*--read encoding=cp1252"),
    ),
    "Windows, said": (
        text(column("country", {"ar": "är", "br": "br", "cl": "cl"}.get), encoding="cp1252"),
        ("--read", "encoding=cp1252"),
        same(),
    ),
    "unknown encoding": (
        text(),
        ("--read", "encoding=klingon"),
        refused("--read encoding=klingon is unknown"),
    ),
    "wrong separator": (text(), ("--read", "sep=;;"), refused("--read sep must be one sign")),
    "same signs": (
        text(),
        ("--read", "sep=,", "--read", "decimal=,"),
        refused("--read sep=... and --read decimal"),
    ),
    "wrong decimal": (text(), ("--read", "decimal=x"), refused("--read decimal must be")),
    "a line for Excel": (text(before="sep=;\n", sep=";"), (), same()),
    "Windows line ends": (text(lineterminator="\r\n"), (), same()),
    "old line ends": (text(lineterminator="\r"), (), same()),
    "blank lines": (text(before="\n\n", after="\n\n"), (), same()),
    "no last line end": (
        lambda d, f: _rewritten(text()(d, f), lambda b: b.rstrip(b"\n")),
        (),
        same("has no line end. Was the file written to the end?"),
    ),
    "empty rows": (text(after=",,,,,\n" * 3), (), same("ends with 3 empty rows")),
    "total": (
        text(after="Total,12345,,,,\n"),
        (),
        same("last row .*looks like a total.*--read keep_total=true"),
    ),
    "Summe": (text(amounts(german), sep=";", after="Summe;9,5;;;;\n"), (), same("total", DECIMALS)),
    "Grand total:": (text(after=",Grand total: 12,,,,\n"), (), same("looks like a total")),
    "total, kept": (
        text(after="Total,12345,,,,\n"),
        ("--read", "keep_total=true"),
        refused("'fraud' is empty"),
    ),
    "total after empty rows": (
        text(after=",,,,,\nTotal,9,,,,\n"),
        (),
        same("total", "1 empty row"),
    ),
    "quoted line ends": (text(lambda f: f.assign(note="a\nb")), (), like(NOTE)),
    "quoted separators": (text(lambda f: f.assign(note="a,b;c")), (), like(NOTE)),
    "row numbers": (
        lambda d, f: _rewritten(text()(d, f), _with_row_numbers),
        (),
        same("no name for column 1, which is left out"),
    ),
    "ragged": (text(after="c9,1,ar\n"), (), refused("row 401: .*--read sep")),
    "empty": (raw(b""), (), refused("t.csv is empty")),
    "spaces only": (raw(b" \n"), (), refused("blank")),
    "heading only": (raw(b"case,amount,fraud\n"), (), refused("has no rows")),
    "no heading": (text(header=False), (), refused("no column 'fraud'")),
    "values for a heading": (raw(b"1,2.5,0\n2,3.5,1\n"), (), refused("They look like values")),
    "one column": (raw(b"a:b:fraud\n1:2:no\n"), (), refused("--read sep=...")),
    "twice the same name": (
        text(lambda f: f.rename(columns={"vip": "amount"})),
        (),
        refused("'amount'"),
    ),
    "names with spaces": (text(lambda f: f.rename(columns=lambda c: f" {c} ")), (), same()),
    "zero bytes": (raw(b"a\x00b,fraud\n1,no\n" * 9), (), refused("no text file|damaged")),
    "a picture": (raw(b"\x89PNG\r\n\x1a\n\x00\x00"), (), refused("not UTF-8|damaged|no text")),
    "old Excel": (raw(b"\xd0\xcf\x11\xe0", "t.xls"), (), refused("Save it as .xlsx or .csv")),
    "no extension": (raw(b"a\n1\n", "t"), (), refused("is none of .csv")),
    "gzip that is none": (raw(b"plain", "t.csv.gz"), (), refused("damaged")),
    # Excel
    "Excel": (excel(), (), same()),
    "Excel, title": (excel(title="Report of May"), (), same("has a title above its heading")),
    "Excel, total": (
        excel(total=("Total", 5, None, None, None, None)),
        (),
        same("looks like a total"),
    ),
    "Excel, sheets": (excel(sheets=("Cases", "Notes")), (), same("'Cases' is read.*--read sheet")),
    "Excel, second": (excel(sheets=("Notes", "Cases"), sheet=1), ("--read", "sheet=Cases"), same()),
    "Excel, wrong sheet": (
        excel(sheets=("Notes", "Cases")),
        ("--read", "sheet=May"),
        refused("'Notes', "),
    ),
    "Excel, typed days": (excel(column("opened", pd.Timestamp)), (), same()),
    "Excel, typed truths": (excel(column("vip", {"true": True, "false": False}.get)), (), same()),
    "Excel, decimal commas": (excel(amounts(german)), (), same(DECIMALS)),
    "Excel, #N/A": (excel(cells("amount", "#N/A", FEW)), (), like(GAPS)),
    "Excel, words": (
        excel(cells("amount", "unknown", FEW)),
        (),
        like(GAPS, "'amount' .*'unknown'"),
    ),
    "Excel, formulas": (
        excel(column("amount", lambda v: "=1+1")),
        (),
        refused("formulas without results.*save it"),
    ),
    "Excel, empty": (excel(lambda f: f.iloc[:0, :0]), (), refused("is empty")),
    "Excel that is none": (raw(b"hello", "t.xlsx"), (), refused("t.xlsx is damaged")),
    "Excel, another zip": (
        raw(b"PK\x05\x06" + bytes(18), "t.xlsx"),
        (),
        refused("t.xlsx is damaged"),
    ),
    # JSON lines
    "JSON lines": (lines(), (), same()),
    "JSON, texts": (lines(lambda r: {k: v and str(v) for k, v in r.items()}), (), same()),
    "JSON, gaps": (lines(lambda r: {k: v for k, v in r.items() if v is not None}), (), same()),
    "JSON, objects": (
        lines(lambda r: {"a": {"amount": r.pop("amount")}, **r}),
        ("--read", "numeric=a.amount"),
        same(),
    ),
    "JSON, lists": (lines(lambda r: {**r, "tags": [1]}), (), same("'tags' is left out")),
    "JSON, broken": (raw(b'{"a": 1}\n{"a": \n', "t.jsonl"), (), refused("Line 2 of .*not JSON")),
    "JSON, no objects": (raw(b"[1]\n", "t.jsonl"), (), refused("Line 1 of .*JSON object")),
    "JSON, half a pair": (
        raw(b'{"a": "\\ud83d\\ude00"}\n{"a": "\\ud83d"}\n', "t.jsonl"),
        (),
        refused("Line 2 of .*half of a surrogate pair"),
    ),
    "JSON, empty": (raw(b"", "t.jsonl"), (), refused("is empty")),
    # labels
    "labels in any case": (
        text(cells("fraud", "No", range(20))),
        (),
        like(
            cells("fraud", "no", range(20)),
            "The labels 'no' and 'No' of 'fraud' count as one label",
        ),
    ),
    "labels with spaces": (text(column("fraud", lambda v: f"{v} ")), (), same()),
    "labels that differ in case": (
        text(column("fraud", {"yes": "a", "no": "A"}.get)),
        (),
        refused("'fraud' has only one class, 'A', 'a', as .* upper and lower case only"),
    ),
    "a tie": (
        text(lambda f: f.assign(fraud=["a", "b"] * (len(f) // 2))),
        (),
        refused("'a' and 'b' of 'fraud' are equally rare, with 200 rows each.*--rare"),
    ),
    "a tie, said": (
        text(lambda f: f.assign(fraud=["a", "b"] * (len(f) // 2))),
        ("--rare", "b"),
        noted(),
    ),
    "three labels": (
        text(cells("fraud", "maybe", range(15))),
        (),
        noted("'fraud' has 3 labels.*'maybe', is looked for.*--rare"),
    ),
    "unknown labels": (
        text(cells("fraud", "unknown", range(15))),
        (),
        refused("rarest label of 'fraud' is 'unknown'.*--rare"),
    ),
    "labels missing": (
        text(cells("fraud", None, [3])),
        (),
        refused("'fraud' is empty in 1 .*row 4"),
    ),
    "--rare in another case": (text(), ("--rare", "YES"), same()),
    "--rare that is none": (text(), ("--rare", "maybe"), refused("--rare maybe does not occur")),
    "one label": (text(column("fraud", lambda v: "no")), (), refused("only one class")),
    "measurements": (text(column("fraud", lambda v: next(MEASURED))), (), refused("measurement")),
    # leaks, ids, texts
    "filled for rare rows": (
        text(lambda f: f.assign(cancelled=f["fraud"].map({"yes": "2024-12-31"}))),
        (),
        noted("LEAK. 'cancelled' is filled only for rare rows .*--drop cancelled"),
    ),
    "filled for rare rows, dropped": (
        text(lambda f: f.assign(cancelled=f["fraud"].map({"yes": "2024-12-31"}))),
        ("--drop", "cancelled"),
        same(),
    ),
    "separates": (
        text(lambda f: f.assign(refund=(f["fraud"] == "yes") * 5.5)),
        (),
        noted("LEAK. 'refund' alone separates.*--drop refund"),
    ),
    "free text": (
        text(lambda f: f.assign(note=[f"we wrote to her on day {i}" for i in range(len(f))])),
        (),
        same("'note' holds free text and is left out.*--read categorical=note"),
    ),
    "another id": (
        text(lambda f: f.assign(number=range(len(f)))),
        (),
        noted("'number' .*looks like an id.*--drop number"),
    ),
    "columns": (
        text(lambda f: f.assign(x=1)),
        ("--read", "columns=amount,country,opened,vip"),
        same(),
    ),
    "columns one by one": (
        text(lambda f: f.assign(x=1)),
        ("--drop", "x"),
        same(),
    ),
    "unknown column": (text(), ("--drop", "amuont"), refused("no column 'amuont', which --drop")),
    "unknown categorical": (
        text(),
        ("--read", "categorical=x"),
        refused("which --read categorical=... names"),
    ),
    "unknown numeric": (text(), ("--read", "numeric=x"), refused("which --read numeric=... names")),
    "unknown columns": (text(), ("--read", "columns=x"), refused("which --read columns=... names")),
    "target dropped": (text(), ("--drop", "fraud"), refused("--drop and --target")),
    "everything dropped": (
        text(),
        ("--drop", "amount,country,opened,vip"),
        refused("no column besides"),
    ),
    "ids twice": (
        text(cells("case", "c1", range(5))),
        (),
        noted("The id 'case' is not unique: "),
    ),
    "ids missing": (text(cells("case", None, [3])), (), refused("'case' is empty in 1 .*row 4")),
    "ids of a spreadsheet": (text(cells("case", "1.23E+12", FEW)), (), noted("A spreadsheet has")),
}
FITS |= MORE_FITS | UNTIDY_FITS


def _rewritten(path, change):
    path.write_bytes(change(path.read_bytes()))
    return path


def _with_row_numbers(content):
    first, *rest = content.splitlines()
    return b"\n".join([b"," + first, *(b"%d,%s" % pair for pair in enumerate(rest))]) + b"\n"


@pytest.fixture(scope="module")
def frame():
    """Return a small clean table."""
    return make_cases(400)


@pytest.fixture(scope="module")
def clean(frame, tmp_path_factory):
    """Return the answer of `fit` to the clean table, and the model file."""
    folder = tmp_path_factory.mktemp("clean")
    result = run("fit", text()(folder, frame), *FIT, "-o", folder / "model", "--json")
    assert result.exit_code == 0, result.output
    return answer(result), folder / "model"


@pytest.fixture(scope="module")
def likely(frame, tmp_path_factory):
    """Return a function that gives the answer to a changed table that is written plainly, once."""
    made = {}

    def answered(expected):
        change = getattr(expected, "change", None)
        if change is not None and change not in made:
            folder = tmp_path_factory.mktemp("like")
            path = text(change)(folder, frame)
            made[change] = answer(run("fit", path, *FIT, "-o", folder / "model", "--json"))
        return made.get(change)

    return answered


@pytest.fixture(scope="module")
def clean_rows(frame, tmp_path_factory):
    """Return what the reader makes of the clean table."""
    return read_for_fit(text()(tmp_path_factory.mktemp("rows"), frame))


@pytest.fixture(scope="module")
def likely_rows(frame, tmp_path_factory):
    """Return a function that reads a changed table that is written plainly, once."""
    made = {}

    def rows(expected):
        change = getattr(expected, "change", None)
        if change is not None and change not in made:
            made[change] = read_for_fit(text(change)(tmp_path_factory.mktemp("like"), frame))
        return made.get(change)

    return rows


#: What the reader alone does not answer: other options of `fit`, and rows that differ from those of
#: the clean table although the answer does not.
OF_THE_COMMAND = [
    *("the latest have no time", "one time", "groups with gaps"),
    *("English thousands", "codes, categorical", "1 and 0", "Windows", "Windows, said"),
    *("quoted line ends", "quoted separators", "JSON, gaps", "JSON, objects", "a very long text"),
]


@pytest.mark.parametrize("name", [name for name in FITS if name not in OF_THE_COMMAND])
def test_read(name, frame, clean_rows, likely_rows, tmp_path):
    """The rows of the clean table, or a note with the remedy, or an error."""
    write, options, expected = FITS[name]
    got = read_for_fit(write(tmp_path, frame), options)
    check_rows(got, expected, likely_rows(expected) or clean_rows)


@pytest.mark.parametrize("name", dict.fromkeys([*OF_THE_COMMAND, *list(FITS)[::12]]))
def test_fit(name, frame, clean, likely, tmp_path):
    """The answer of the clean table, or a note with the remedy, or one line of error."""
    write, options, expected = FITS[name]
    path = write(tmp_path, frame)
    before = path.read_bytes()
    result = run("fit", path, *FIT, *options, "-o", tmp_path / "model", "--json")
    check(result, expected, likely(expected) or clean[0])
    assert path.read_bytes() == before
    assert (tmp_path / "model").exists() == (result.exit_code == 0)


# --- later files ---

GERMAN = text(amounts(german), sep=";")
LATER = {
    # read as they are
    "clean": ((), text(), (), same()),
    "semicolons": ((), text(sep=";"), (), same()),
    "pipes": ((), text(sep="|"), (), same()),
    "UTF-16": ((), text(encoding="utf-16"), (), same()),
    "a mark": ((), text(encoding="utf-8-sig"), (), same()),
    "Excel": ((), excel(), (), same()),
    "JSON lines": ((), lines(), (), same()),
    "total": ((), text(after="Total,12345,,,,\n"), (), same("looks like a total")),
    "empty rows": ((), text(after=",,,,,\n"), (), same("1 empty row")),
    "yes and no": ((), text(column("vip", {"true": "ja", "false": "nein"}.get)), (), same()),
    "words": (
        (),
        text(cells("amount", "unknown", FEW)),
        (),
        like(GAPS, "'amount' holds 'unknown'"),
    ),
    "dollars": (
        (),
        text(amounts(lambda v: f"$ {v}")),
        (),
        same(r"'amount' had no currency when the model was fitted, and now holds \$"),
    ),
    "spaces": ((), text(amounts(lambda v: f" {v} ")), (), same()),
    # refused, with the option that helps; and with that option
    "decimal commas": (
        (),
        GERMAN,
        (),
        refused("'amount' must be a finite number.*row [12] of .*--read decimal=,"),
    ),
    "decimal commas, said": ((), GERMAN, ("--read", "decimal=,"), same()),
    "other words": (
        (),
        text(cells("amount", "no idea", FEW)),
        (),
        refused("row 4 of .*--read 'na=no i"),
    ),
    "words, said": (
        (),
        text(cells("amount", "no idea", FEW)),
        ("--read", "na=no idea"),
        like(GAPS),
    ),
    "days first": (
        (),
        text(column("opened", day("%d/%m/%Y"))),
        (),
        refused("'opened' must be a date.*--read date_format"),
    ),
    "days first, said": (
        (),
        text(column("opened", day("%d/%m/%Y"))),
        ("--read", "date_format=DD/MM/YYYY"),
        same(),
    ),
    "no such day": (
        (),
        text(cells("opened", "2024-02-31", FEW)),
        (),
        refused("row 4 of .*--read na"),
    ),
    "Windows": (
        (),
        text(cells("country", "é", FEW), encoding="cp1252"),
        (),
        like(cells("country", "é", FEW), "not UTF-8 text.*'é' is misspelt.*--read encoding"),
    ),
    "fitted: Windows, guessed": (
        (text(cells("country", "é", range(99)), encoding="cp1252"), ()),
        text(cells("country", "é", FEW), encoding="cp1252"),
        (),
        like(cells("country", "é", FEW)),
    ),
    "Windows, said": (
        (),
        text(cells("country", "é", FEW), encoding="cp1252"),
        ("--read", "encoding=cp1252"),
        like(cells("country", "é", FEW)),
    ),
    "a missing column": (
        (),
        text(lambda f: f.drop(columns="amount")),
        (),
        refused("no column 'amo"),
    ),
    "no heading": ((), text(header=False), (), refused("no column")),
    "ragged": ((), text(after="c9,1\n"), (), refused("row 401")),
    "infinity": (
        (),
        text(cells("amount", "inf", FEW)),
        (),
        refused("'amount' must be a finite number; row 4"),
    ),
    "empty": ((), raw(b""), (), refused("is empty")),
    "another truth": (
        (),
        text(cells("vip", "maybe", FEW)),
        (),
        refused("'vip' must be true or false"),
    ),
    # as the table of the fit was
    "fitted: decimal commas": ((GERMAN, ()), GERMAN, (), same()),
    "fitted: decimal commas, now points": (
        (GERMAN, ()),
        text(),
        (),
        refused("'amount' must be a finite number.*--read decimal=\\."),
    ),
    "fitted: decimal commas, points said": ((GERMAN, ()), text(), ("--read", "decimal=."), same()),
    "fitted: decimal commas, now Excel": ((GERMAN, ()), excel(), (), same()),
    "fitted: months first": (
        (text(column("opened", day("%m/%d/%Y"))), ()),
        text(column("opened", day("%m/%d/%Y"))),
        (),
        same(),
    ),
    "fitted: Windows": (
        (text(encoding="cp1252"), ("--read", "encoding=cp1252")),
        text(cells("country", "é", FEW), encoding="cp1252"),
        (),
        like(cells("country", "é", FEW)),
    ),
    "fitted: Windows, now UTF-8": (
        (text(encoding="cp1252"), ("--read", "encoding=cp1252")),
        text(cells("country", "é", FEW)),
        (),
        like(cells("country", "é", FEW)),
    ),
    "fitted: -999": (
        (text(cells("amount", -999, FEW)), ("--read", "na=-999")),
        text(cells("amount", "-999.0", FEW)),
        (),
        like(GAPS),
    ),
}
LATER |= MORE_LATER | UNTIDY_LATER
COMMANDS = {
    "flag": (),
    "select": ("--count", "20"),
    "evaluate": (),
}


@pytest.fixture(scope="module")
def models(frame, clean, tmp_path_factory):
    """Return a function that fits a model to a way of writing the table, once."""
    made = {(): clean[1]}

    def model(way):
        if way not in made:
            folder = tmp_path_factory.mktemp("model")
            result = run("fit", way[0](folder, frame), *FIT, *way[1], "-o", folder / "model")
            assert result.exit_code == 0, result.output
            made[way] = folder / "model"
        return made[way]

    return model


@pytest.fixture(scope="module")
def recent():
    """Return a later table."""
    return make_cases(400, seed=1)


@pytest.fixture(scope="module")
def answers(recent, clean, tmp_path_factory):
    """Return what every command says about the clean table."""
    path = text()(tmp_path_factory.mktemp("answers"), recent)
    given = {c: run(*c.split(), clean[1], path, *more, "--json") for c, more in COMMANDS.items()}
    return {command: answer(result) for command, result in given.items()}


@pytest.fixture(scope="module")
def schemas(frame, clean_rows, tmp_path_factory):
    """Return a function that gives the schema of a way of writing the table, once."""
    made = {(): clean_rows.schema}

    def schema(way):
        if way not in made:
            path = way[0](tmp_path_factory.mktemp("schema"), frame)
            made[way] = read_for_fit(path, way[1]).schema
        return made[way]

    return schema


#: Rows that can be read, but differ from those of the fit: only a model card tells.
OF_THE_CARD = [
    *("the year 2324, typed", "capitals", "9999 for missing", "1900 for missing", "-1 for missing"),
    *("99999999 for missing", "a very long text"),
]


@pytest.mark.parametrize("name", [name for name in LATER if name not in OF_THE_CARD])
def test_read_later(name, recent, clean_rows, schemas, tmp_path):
    """A later file is read as the table of the fit was; a wrong guess can be corrected."""
    way, write, options, expected = LATER[name]
    schema = schemas(way)
    got = read_later(schema, write(tmp_path, recent), options)
    like = excel(expected.change) if isinstance(expected, Like) else text()
    plain = schema if isinstance(expected, Like) else clean_rows.schema
    (tmp_path / "like").mkdir()
    check_rows(got, expected, read_later(plain, like(tmp_path / "like", recent)))


@pytest.mark.parametrize("name", dict.fromkeys([*OF_THE_CARD, *list(LATER)[::8]]))
def test_flag(name, recent, models, answers, tmp_path):
    """The command says what the reader and the model card say."""
    _check_later("flag", name, recent, models, answers, tmp_path)


@pytest.mark.parametrize("command", ["select", "evaluate"])
@pytest.mark.parametrize("name", ["decimal commas, said", "ragged", "total", "days first, said"])
def test_other_commands(command, name, recent, models, answers, tmp_path):
    """They read files as `flag` does."""
    _check_later(command, name, recent, models, answers, tmp_path)


def _check_later(command, name, recent, models, answers, folder):
    way, write, options, expected = LATER[name]
    path = write(folder, recent)
    before = path.read_bytes()
    more = (*COMMANDS[command], "--json")
    result = run(*command.split(), models(way), path, *options, *more)
    given = answers[command]
    if isinstance(expected, Like):  # in a workbook, which has neither separators nor encodings
        given = answer(
            run(*command.split(), models(way), excel(expected.change)(folder, recent), *more)
        )
    check(result, expected, given)
    assert path.read_bytes() == before


# --- nothing is destroyed ---

OUTPUTS = {
    "fit": lambda m, d, o: ("fit", d, *FIT, "-o", o),
    "flag": lambda m, d, o: ("flag", m, d, "-o", o),
    "select": lambda m, d, o: ("select", m, d, "--count", "5", "-o", o),
    "report": lambda m, d, o: ("report", m, d, "-o", o),
    "export": lambda m, d, o: ("export", m, "-o", o),
    "stream": lambda m, d, o: ("stream", m, "--state", o),
}
LINKS = {
    "the same": lambda path, folder: path,
    "another path": lambda path, folder: folder / ".." / folder.name / path.name,
    "a link": lambda path, folder: _linked(os.symlink, path, folder),
    "a hard link": lambda path, folder: _linked(os.link, path, folder),
}


def _linked(link, path, folder):
    link(path, folder / f"link{path.suffix or '.csv'}")
    return folder / f"link{path.suffix or '.csv'}"


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("victim", ["model.csv", "t.csv"])
@pytest.mark.parametrize("command", OUTPUTS)
def test_no_input_is_overwritten(command, victim, link, frame, clean, tmp_path):
    """Neither the table nor the model, by whatever name."""
    data, model = text()(tmp_path, frame), tmp_path / "model.csv"
    model.write_bytes(clean[1].read_bytes())
    others = (("fit", "model.csv"), ("stream", "t.csv"), ("export", "t.csv"))
    if (command, victim) in others:
        pytest.skip("no input of this command")
    before = {path: path.read_bytes() for path in (data, model)}
    out = LINKS[link](tmp_path / victim, tmp_path)
    result = run(*OUTPUTS[command](model, data, out))
    check(result, refused("would overwrite .*, which is the same file"), None)
    assert {path: path.read_bytes() for path in before} == before


# --- lines of a stream ---

STREAMED = {
    "clean": ({}, (), "ok"),
    "texts": ({"amount": "12.5"}, (), "ok"),
    "words": ({"amount": "unknown"}, (), "ok"),
    "currencies": ({"amount": "$ 12.5"}, (), "ok"),
    "truths": ({"vip": "Ja"}, (), "ok"),
    "decimal comma": ({"amount": "12,5"}, (), "'amount' must be a finite number"),
    "decimal comma, said": ({"amount": "12,5"}, ("--read", "decimal=,"), "ok"),
    "another word": ({"amount": "no idea"}, (), "'amount' must be a finite number"),
    "another word, said": ({"amount": "no idea"}, ("--read", "na=no idea"), "ok"),
    "days first": (
        {"opened": "31/12/2024"},
        (),
        "'opened' must be a date such as 2024-05-31; got '31/12/2024'. Use date_format='opened=...' "
        "if dates are written differently here.",
    ),
    "days first, said": ({"opened": "31/12/2024"}, ("--read", "date_format=DD/MM/YYYY"), "ok"),
    "infinity": ({"amount": "inf"}, (), "'amount' must be a finite number"),
    "too large": ({"amount": 1e308}, (), "'amount' must be a finite number"),
    "a list": ({"amount": [1]}, (), "'amount' must be a finite number"),
    "another truth": ({"vip": "maybe"}, (), "'vip' must be true or false"),
}


@pytest.mark.parametrize("name", STREAMED)
def test_stream(name, frame, clean, tmp_path, monkeypatch):
    """A line is read as a row of a table is; an invalid one is answered with what is wrong."""
    changed, options, expected = STREAMED[name]
    record = {**json.loads(frame.iloc[:1].to_json(orient="records", lines=True)), **changed}
    source = tmp_path / "lines.jsonl"
    source.write_text(json.dumps(record) + "\n")
    descriptor = os.open(source, os.O_RDONLY)
    monkeypatch.setattr("shortlist.cli._stream._source", lambda: descriptor)
    result = run("stream", clean[1], "--state", tmp_path / "state", *options)
    os.close(descriptor)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert ("error" not in said) if expected == "ok" else (expected in said["error"]), said
