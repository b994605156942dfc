"""The form of the catalogue of bad inputs: a file, options, and what must come of them.

An input gets the answer of the clean table, or a note that names the column and the remedy, or one
line that says what is wrong. Nothing else: no traceback, no silent wrong answer, no lost file.
"""

import io
import json
import re
import warnings
from dataclasses import dataclass

import pandas as pd
from typer.testing import CliRunner

from shortlist.cli._app import app
from shortlist.cli._shell import in_options
from shortlist.tables import ReadOptions
from shortlist.tables.fit import read_to_fit
from shortlist.tables.inspect import notes_on

FIT = ("--target", "fraud", "--id", "case", "--learner", "logistic")
FIT += ("--fraction", "0.1", "--folds", "1")


@dataclass(frozen=True)
class Same:
    """The answer of the clean table, with these notes (patterns) and no others."""

    notes: tuple = ()


@dataclass(frozen=True)
class Noted:
    """Another answer than that of the clean table, with these notes (patterns)."""

    notes: tuple


@dataclass(frozen=True)
class Like:
    """The answer of the clean table with another change, with these notes (patterns)."""

    change: object
    notes: tuple


@dataclass(frozen=True)
class Refused:
    """One line of error with these words (patterns), and an exit code."""

    words: tuple
    code: int = 2


def same(*notes):
    """Expect the answer of the clean table."""
    return Same(notes)


def noted(*notes):
    """Expect an answer, and notes on what was done."""
    return Noted(notes)


def like(change, *notes):
    """Expect the answer of a table with another change, written plainly."""
    return Like(change, notes)


def refused(*words, code=2):
    """Expect one line of error."""
    return Refused(words, code)


def run(*arguments, input=None):
    """Run a command in this process and return what it printed."""
    arguments = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "300"}, input=input)


def notes_of(result):
    """Return the notes of a command."""
    return [line for line in result.stderr.splitlines() if line.startswith(("Note:", "Warning:"))]


def check(result, expected, clean):
    """Compare what came with what is expected; `clean` is the answer for the clean table."""
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    if isinstance(expected, Refused):
        assert result.exit_code == expected.code, result.output
        errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
        assert len(errors) == 1, result.output
        for words in expected.words:
            assert re.search(words, errors[0]), errors[0]
        return
    assert result.exit_code == 0, result.output
    said = notes_of(result)
    for words in expected.notes:
        assert any(re.search(words, note) for note in said), (words, said)
    if isinstance(expected, Same | Like):
        assert answer(result) == clean
        about_reading = [note for note in said if note.startswith("Note:")]
        assert len(about_reading) <= len(expected.notes), said


def answer(result):
    """Return the numbers of an answer: those of JSON, or else all of it."""
    try:
        content = json.loads(result.stdout)
    except ValueError:
        return result.stdout
    for name in ("model", "schema", "notes", "out", "seconds_per_row", "file_bytes", "cost"):
        content.pop(name, None)
    return content


# --- the reader alone: what a fit or a flag would be given, in milliseconds ---


@dataclass(frozen=True)
class Rows:
    """The rows of a table, its schema, and what was said about it; or the error."""

    rows: object = None
    schema: object = None
    notes: tuple = ()
    error: str | None = None


def said_about_files(options):
    """Return options of the command line as the reader takes them, and which label is rare."""
    given = {}
    words = iter(options)
    for word in words:
        name, value = word.removeprefix("--"), next(words)
        if name == "read":
            name, _, value = value.partition("=")
        if name == "keep_total":
            given[name] = value == "true"
        elif name in ("na", "drop", "columns", "categorical", "numeric", "date_format"):
            given[name] = (*given.get(name, ()), value)
        else:
            given[name] = value
    return given.pop("rare", None), given


def read_for_fit(path, options=()):
    """Read a table as `fit` does."""

    def read():
        rare, given = said_about_files(options)
        rows, schema, notes = read_to_fit(
            path, ReadOptions(**given), target="fraud", id="case", rare=rare
        )
        return rows, schema, notes + notes_on(rows, schema)

    return _gathered(read)


def read_later(schema, path, options=()):
    """Read a table as `flag` does with a model of this schema."""

    def read():
        with schema.open(path, reading=ReadOptions(**said_about_files(options)[1])) as source:
            return schema.read(source), schema, []

    return _gathered(read)


def _gathered(read):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows, schema, notes = read()
        except ValueError as error:
            return Rows(error=in_options(" ".join(str(error).split())))
    notes += [str(each.message) for each in caught]
    return Rows(rows, schema, tuple(in_options(" ".join(note.split())) for note in notes))


def check_rows(got, expected, clean):
    """Compare what was read with what is expected; `clean` are the rows of the clean table."""
    if isinstance(expected, Refused):
        assert got.error is not None, got.notes
        for words in expected.words:
            assert re.search(words, got.error), got.error
        return
    assert got.error is None, got.error
    for words in expected.notes:
        assert any(re.search(words, note) for note in got.notes), (words, got.notes)
    if isinstance(expected, Same | Like):
        assert kinds(got.schema) == kinds(clean.schema)
        pd.testing.assert_frame_equal(got.rows.X, clean.rows.X, check_exact=True)
        for name in ("ids", "is_rare"):
            ours, theirs = getattr(got.rows, name), getattr(clean.rows, name)
            assert (ours is None) == (theirs is None)
            assert ours is None or (ours == theirs).all()
        assert len(got.notes) <= len(expected.notes), got.notes


def kinds(schema):
    """Return the columns and their kinds."""
    return {feature.name: feature.kind for feature in schema.features}


# --- ways to write a table ---


def text(change=None, *, suffix=".csv", sep=",", encoding="utf-8", after="", before="", **options):
    """Return a writer of a text file with a changed table."""

    def write(folder, frame):
        frame = frame if change is None else change(frame.copy())
        content = frame.to_csv(index=False, sep=sep, **options)
        path = folder / f"t{suffix}"
        path.write_bytes((before + content + after).encode(encoding))
        return path

    return write


def raw(content, name="t.csv"):
    """Return a writer of a file with the given bytes."""

    def write(folder, frame):
        (folder / name).write_bytes(content)
        return folder / name

    return write


def excel(change=None, *, title=None, total=None, sheets=("Sheet1",), sheet=0, **options):
    """Return a writer of a workbook with a changed table on one of its sheets."""

    def write(folder, frame):
        frame = frame if change is None else change(frame.copy())
        path = folder / "t.xlsx"
        with pd.ExcelWriter(path, engine="openpyxl") as book:
            for place, name in enumerate(sheets):
                first = 0 if title is None else 2
                content = frame if place == sheet else pd.DataFrame({"other": [1]})
                content.to_excel(book, sheet_name=name, index=False, startrow=first, **options)
                if title is not None:
                    book.sheets[name].cell(1, 1, title)
                if total is not None:
                    book.sheets[name].append(list(total))
        return path

    return write


def lines(change=None, name="t.jsonl"):
    """Return a writer of JSON lines; `change` may change each record."""

    def write(folder, frame):
        frame = frame.astype(object).where(frame.notna(), None)
        records = frame.to_dict("records")
        records = records if change is None else [change(record) for record in records]
        content = "".join(json.dumps(record) + "\n" for record in records)
        (folder / name).write_text(content)
        return folder / name

    return write


def column(name, form):
    """Return a change of one column: what each value becomes; what is missing stays so."""

    def change(frame):
        frame[name] = [None if pd.isna(value) else form(value) for value in frame[name]]
        return frame

    return change


def changes(*all):
    """Return one change after another."""

    def change(frame):
        for one in all:
            frame = one(frame)
        return frame

    return change


def cells(name, value, places):
    """Return a change of some cells of a column."""

    def change(frame):
        frame[name] = frame[name].astype(object)
        frame.loc[frame.index.isin(places), name] = value
        return frame

    return change


def german(value, thousands="."):
    """Write a number as in Germany."""
    return f"{value:,.2f}".translate(str.maketrans({",": thousands, ".": ","}))


def day(pattern):
    """Return a form of dates."""
    return lambda value: pd.Timestamp(value).strftime(pattern)


def read_csv(result):
    """Return decisions as a frame."""
    return pd.read_csv(io.StringIO(result.stdout))
