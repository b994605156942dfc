"""Files that are written whole, or not at all, addresses of tables elsewhere, and plain JSON."""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

# --- addresses of tables in databases and of files elsewhere, shown without passwords ---

#: The three databases that we know ourselves, and all that SQLAlchemy knows.
_ADDRESS = re.compile(r"(sqlite|duckdb|postgres(?:ql)?|[a-z0-9]+\+[a-z0-9_]+)://.*", re.DOTALL)
_PASSWORD = re.compile(
    r"(?<=//)([^/@:]*):([^/@]*)(?=@)|((?:password|passwd|pwd|token|odbc_connect)=)([^&#\s]*)",
    re.IGNORECASE,
)
#: A user and a password, which hold no @ and no / of their own, hosts, a database and options.
_HOST = r"(?:[^/@?:,\[\]]*|\[[^/@\]]*\])(?::[0-9]*)?"
_CLEAR = re.compile(rf"[a-z0-9+_]+://(?:[^/@]*@)?{_HOST}(?:,{_HOST})*(?:/[^@?]*)?(?:\?.*)?")
#: How a query begins that may hold an @; what else holds one may be the end of a password.
_BEGINS = re.compile(r"(?:select|with|from|values|table)\s", re.IGNORECASE)
_USER = re.compile(r"(?<=:/)(/?[^/@:]*):.*@", re.DOTALL)


class DatabaseTable:
    """A table of a database, or what a query finds in it, for functions that take a file.

    Parameters
    ----------
    address : str
        Where the database is, followed by # and the name of a table or a query:
        "sqlite:///cases.db#cases" (four slashes before a path from the root),
        "duckdb:///cases.duckdb#cases" or "postgresql://user:password@host/database#schema.cases".
        A text with spaces is a query, such as "sqlite:///cases.db#select * from cases where day =
        7". What PostgreSQL finds in its own variables and password file need not be in the address.
        With `query`, the database alone: "sqlite:///cases.db".
        Other databases are reached through SQLAlchemy and an installed driver, by its addresses,
        such as "mssql+pyodbc://user:password@host/database?driver=ODBC+Driver+18+for+SQL+Server".
    query : str, default=None
        What to read, in the words of the database: ``query="select * from cases where day = 7"``.

    Notes
    -----
    Rows come in batches, so that a table may be longer than the memory; a fit holds all of its
    rows. Nothing is changed in a database that is read. Answers are appended in one transaction to
    a table that is created if it does not exist: all of them, or none.

    Examples
    --------
    >>> from shortlist.tables import DatabaseTable
    >>> DatabaseTable("postgresql://ann:secret@db.example/office#cases")
    postgresql://ann:***@db.example/office#cases
    >>> DatabaseTable("duckdb:///cases.duckdb", query="from cases limit 9")
    duckdb:///cases.duckdb#from cases limit 9
    """

    def __init__(self, address: str, query: str | None = None) -> None:
        found = _ADDRESS.fullmatch(address)
        self.url, sign, table = (part.strip() for part in address.partition("#"))
        self.table = table if query is None else query.strip()
        self.is_query = query is not None or re.search(r"\s", table) is not None
        if found is None or not self.table or (query is not None and sign):
            raise ValueError(
                f"{without_user(address)} is not the address of a table. Use for example "
                "sqlite:///cases.db#cases, duckdb:///cases.duckdb#cases or "
                "postgresql://user@host/database#cases; with a query, leave out # and what "
                "follows. For another database, name its driver as SQLAlchemy does, such as "
                "mysql+pymysql://user@host/database#cases."
            )
        known = {"sqlite": "sqlite", "duckdb": "duckdb", "postgres": "postgresql"}
        self.system = known.get(found[1].removesuffix("ql"), "other")
        is_clear = _CLEAR.fullmatch(self.url) and ("@" not in table or _BEGINS.match(table))
        if self.system in ("postgresql", "other") and not is_clear:
            raise ValueError(
                "The address of the database, which is not shown as it may hold a password, "
                "cannot be told apart from its password. Write @ in a password as %40, / as %2F, "
                "# as %23 and spaces as %20."
            )

    def __repr__(self) -> str:
        return self.without_password(f"{self.url}#{self.table}")

    @property
    def name(self) -> str:
        """What the table is called in reports."""
        return self.table

    @property
    def file(self) -> Path | None:
        """The file of the database, if it is one."""
        path = unquote(self.url.partition("://")[2])
        return Path(path.removeprefix("/")) if self.system in ("sqlite", "duckdb") else None

    def without_password(self, text: str) -> str:
        """Return a text in which the password of the address does not occur."""
        for found in _PASSWORD.finditer(getattr(self, "url", text)):
            secret = found[2] or found[4]
            for shown in (secret, unquote(secret or "")):
                text = text.replace(shown, "***") if shown else text
        return text


def without_user(text: str) -> str:
    """Return an address of any kind, also one that cannot be used, without a password or a token.

    >>> without_user("mysql://ann:secret@db.example/office")
    'mysql://ann:***@db.example/office'
    """
    return re.sub(r"(?<=:/)(\S*?)\?\S+", r"\1?...", _USER.sub(r"\1:***@", text))


class RemoteFile:
    """A file elsewhere, or with a * in its address all that match."""

    file = None

    def __init__(self, url: str) -> None:
        self.url, self.name = url, Path(url.partition("?")[0]).name

    def __repr__(self) -> str:
        return without_user(self.url)


def as_path(text: str, query: str | None = None) -> Any:
    """Return a file by its path; or a table of a database, or a file elsewhere, by its address."""
    elsewhere = re.match("[A-Za-z][A-Za-z0-9+.-]+://", text)
    if query is not None or _ADDRESS.fullmatch(text) or (elsewhere and "#" in text):
        return DatabaseTable(text, query)
    return RemoteFile(text) if elsewhere else Path(text)


# --- files that are written whole ---


@contextlib.contextmanager
def write_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its name only when all of it has reached the disk.

    Whatever ends the block early (an error, a full disk, Ctrl-C), the unfinished file is removed
    and a file that stood there before is left as it was.
    """
    check_writable(path)
    target = path.resolve()  # a link stays a link
    # Named before it is made: Ctrl-C can never leave it behind.
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with open(unfinished, "xb", opener=_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.chmod(_mode_for(target))
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def check_writable(path: Path, *, keep: Iterable[Path | None] = ()) -> None:
    """Raise an error for a place that cannot be written to, before long work starts.

    `keep` are the files that will be read (``-`` is standard input). An output that is one of them,
    also by another name or a link, is refused.
    """
    if isinstance(path, RemoteFile):
        raise ValueError(f"{path} cannot be written to. Write a file here, and copy it there.")
    if isinstance(path, DatabaseTable):
        return
    check_distinct(path, keep=keep)
    folder = path.resolve().parent
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name a file in it.")
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder {folder} does not exist. Make it, or write elsewhere.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"The folder {folder} cannot be written to. Choose another place.")


def check_distinct(path: Path, *, keep: Iterable[Path | None]) -> None:
    """Raise an error if a file to write is one of the files to read, by whatever name."""
    for each in keep:
        read = getattr(each, "file", each)  # of a database, or none elsewhere
        if read is not None and _is_same_file(path, read):
            what = "standard input" if str(read) == "-" else str(read)
            raise ValueError(
                f"{path} would overwrite {what}, which is the same file. Write to another file."
            )


def _is_same_file(path: Path, read: Path) -> bool:
    try:
        if str(read) == "-":
            return os.path.samestat(os.fstat(sys.stdin.fileno()), path.stat())
        return path.resolve() == read.resolve() or path.samefile(read)
    except (OSError, ValueError):  # one of them does not exist, or standard input is no file
        return False


def sync_folder(folder: Path) -> None:
    """Make sure that a file renamed in a folder keeps its name after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read until it is finished."""
    return os.open(path, flags, 0o600)


def _mode_for(target: Path) -> int:
    """Return the mode of the file that is replaced, or else what a new file would have."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


# --- plain JSON ------------------------------------------------------------------------------


def to_plain(content: Any) -> Any:
    """Return dicts, lists, texts and numbers that JSON can hold; NaN and infinities become None.

    Dataclasses become dicts of their fields, tuples and arrays lists, and NumPy scalars become
    Python numbers.

    >>> to_plain({"shares": (0.5, math.nan)})
    {'shares': [0.5, None]}
    """
    if is_dataclass(content) and not isinstance(content, type):
        return {field.name: to_plain(getattr(content, field.name)) for field in fields(content)}
    if isinstance(content, dict):
        return {str(key): to_plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [to_plain(value) for value in content]
    if hasattr(content, "tolist"):  # an array or a number of NumPy
        return to_plain(content.tolist())
    return None if isinstance(content, float) and not math.isfinite(content) else content


def flattened(record: dict[str, Any]) -> dict[str, Any]:
    """Return an object without objects inside: theirs are named with a dot.

    >>> flattened({"id": 7, "shop": {"country": "ar", "size": 3}})
    {'id': 7, 'shop.country': 'ar', 'shop.size': 3}
    """
    if not any(isinstance(value, dict) for value in record.values()):
        return record
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict) and value:
            flat |= {f"{name}.{inner}": each for inner, each in flattened(value).items()}
        else:
            flat[name] = value
    return flat
