"""Tables of databases, read and written through their own drivers, or through SQLAlchemy."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, BinaryIO
from urllib.parse import quote

from .._core.arrow import pa
from .._core.extras import load_extra
from .._core.files import DatabaseTable
from ..exceptions import TableError
from ._records import as_arrow
from ._source import OpenTable

_CHUNK_ROWS = 1 << 14
_DRIVERS = {"sqlite": "sqlite3", "postgresql": "psycopg", "duckdb": "duckdb", "other": "sqlalchemy"}
#: Types of answers, by their names in Arrow: in SQL, and as SQLAlchemy calls them.
_TYPES = {
    "string": ("TEXT", "UnicodeText"),
    "double": ("DOUBLE PRECISION", "Double"),
    "bool": ("BOOLEAN", "Boolean"),
    "int64": ("BIGINT", "BigInteger"),
    "int8": ("BIGINT", "BigInteger"),
}


@contextlib.contextmanager
def _connected(address: DatabaseTable, *, writes: bool = False) -> Iterator[Any]:
    """Connect to a database; what the driver complains of is said without the password.

    A database that cannot be written to is an error of the system, as a file would be.
    """
    driver = load_extra(_DRIVERS[address.system], needed_for=f"Reading {address}")
    errors = driver.exc.SQLAlchemyError if address.system == "other" else driver.Error
    try:
        with contextlib.closing(_connect(driver, address, writes)) as connection:
            yield connection
    except ModuleNotFoundError as error:
        missing = f"{address} needs {error.name}, which is not installed"
        raise ImportError(f"{missing}. Install it with: pip install {error.name}") from None
    except errors as error:
        reason = " ".join(address.without_password(str(error)).split()).rstrip(".")
        kind = OSError if writes else TableError
        raise kind(f"{address} cannot be used: {reason}.") from None


def _connect(driver: Any, address: DatabaseTable, writes: bool) -> Any:
    if address.system == "duckdb":
        return driver.connect(str(address.file), read_only=not writes)
    if address.system == "sqlite":
        file = f"file:{quote(str(address.file))}?mode={'rwc' if writes else 'ro'}"
        return driver.connect(file, uri=True, isolation_level=None)
    if address.system == "other":
        engine = driver.create_engine(address.url, poolclass=driver.pool.NullPool)
        return engine.connect().execution_options(stream_results=not writes, no_parameters=True)
    connection = driver.connect(address.url)
    connection.read_only = not writes
    return connection


def _quoted(address: DatabaseTable, *names: str) -> list[str]:
    sign = "`" if address.url.startswith(("mysql", "mariadb")) else '"'
    return [sign + name.replace(sign, 2 * sign) + sign for name in names]


def _table_of(address: DatabaseTable) -> str:
    return ".".join(_quoted(address, *address.table.split(".")))


def _executed(connection: Any, address: DatabaseTable, query: str, **named: str) -> Any:
    """Return the rows of a query, of which the server keeps those that were not asked for yet."""
    if address.system == "other":
        return connection.exec_driver_sql(query)
    cursor = connection.cursor(**named)
    cursor.execute(query)
    return cursor


def open_database(address: DatabaseTable, source: OpenTable) -> OpenTable:
    """Open a table of a database, or what a query finds."""
    connection = source.stack.enter_context(_connected(address))
    query = f"SELECT * FROM {_table_of(address)}"
    query = address.table.rstrip("; \n") + "\n" if address.is_query else query  # after a comment
    nothing = _executed(connection, address, f"SELECT * FROM ({query}) cases WHERE 1 = 0")
    described = nothing.cursor if address.system == "other" else nothing
    columns = [column[0] for column in described.description]
    nothing.close()

    def chunks(wanted: Collection[str], at_once: float = 0) -> Iterator[Any]:
        # A cursor with a name stays on the server, with rows that were not asked for yet.
        named = {"name": "shortlist"} if address.system == "postgresql" else {}
        asked = f"SELECT {', '.join(_quoted(address, *wanted))} FROM ({query}) cases"
        with contextlib.closing(_executed(connection, address, asked, **named)) as rows:
            most = None if at_once == math.inf else max(int(at_once), _CHUNK_ROWS)
            for batch in iter(lambda: rows.fetchmany(most) if most else rows.fetchall(), []):
                plain = ([_plain(value) for value in each] for each in zip(*batch, strict=True))
                yield pa.table(dict(zip(wanted, map(as_arrow, plain), strict=True)))

    return replace(source, columns=columns, chunks=chunks)


def _plain(value: Any) -> Any:
    """Return a decimal as a number that has all of its digits, or else as a text that has them."""
    if not isinstance(value, Decimal):
        return value
    if value.is_finite() and value == value.to_integral_value():
        has_places = str(value) != str(int(value))
        return float(value) if has_places and float(value) == value else int(value)
    nearest = float(value)
    return nearest if not value.is_finite() or Decimal(repr(nearest)) == value else f"{value:f}"


@contextlib.contextmanager
def append_whole(address: DatabaseTable) -> Iterator[BinaryIO]:
    """Take a Parquet file; its rows are then appended to a table, all of them or none."""
    with tempfile.TemporaryFile() as file:
        yield file
        answers = pa.parquet.ParquetFile(file)
        with _connected(address, writes=True) as connection:
            if address.system == "other":
                _append_elsewhere(address, answers, connection)
                return
            fields, table = answers.schema_arrow, _table_of(address)
            cursor = connection.cursor()
            if address.system != "postgresql":  # whose driver begins by itself
                cursor.execute("BEGIN")
            named = _quoted(address, *fields.names)
            typed = ", ".join(f"{n} {_type_of(f)[0]}" for n, f in zip(named, fields, strict=True))
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} ({typed})")
            into, marks = f"{table} ({', '.join(named)})", ", ".join("?" * len(named))
            for batch in answers.iter_batches(_CHUNK_ROWS):
                rows = list(zip(*batch.to_pydict().values(), strict=True))
                if address.system == "postgresql":
                    with cursor.copy(f"COPY {into} FROM STDIN") as copy:
                        for row in rows:
                            copy.write_row(row)
                else:
                    cursor.executemany(f"INSERT INTO {into} VALUES ({marks})", rows)
            cursor.execute("COMMIT")


def _append_elsewhere(address: DatabaseTable, answers: Any, connection: Any) -> None:
    """Append answers through SQLAlchemy, which knows the types of a database."""
    sql = load_extra("sqlalchemy", needed_for=f"Writing {address}")
    schema, _, name = address.table.rpartition(".")
    columns = [sql.Column(f.name, getattr(sql, _type_of(f)[1])) for f in answers.schema_arrow]
    table = sql.Table(name, sql.MetaData(), *columns, schema=schema or None)
    with connection.begin():  # otherwise each part is committed by itself
        table.create(connection, checkfirst=True)
        for batch in answers.iter_batches(_CHUNK_ROWS):
            connection.execute(table.insert(), batch.to_pylist())


def _type_of(field: Any) -> tuple[str, str]:
    if str(field.type) not in _TYPES:
        raise TableError(
            f"The column {field.name!r} has the type {field.type}, and databases get "
            f"{', '.join(_TYPES)} only. Write a file, or convert the column."
        )
    return _TYPES[str(field.type)]


def check_appendable(address: DatabaseTable) -> None:
    """Raise an error for a database that cannot be written to, before long work starts."""
    if address.is_query:
        raise TableError(f"{address} is a query. Answers need the name of a table.")
    file = address.file
    if file is None or file.exists() or not file.parent.is_dir():
        with _connected(address, writes=True):
            pass  # a new file is made when there are answers, not before
