"""Addresses of tables in databases and of files elsewhere, which are shown without passwords."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

#: The three databases that we know ourselves, and all that SQLAlchemy knows.
_ADDRESS = re.compile(r"(sqlite|duckdb|postgres(?:ql)?|[a-z0-9]+\+[a-z0-9_]+)://.*", re.DOTALL)
_PASSWORD = re.compile(
    r"(?<=//)([^/@:]*):([^/@]*)(?=@)|((?:password|passwd|pwd|token|odbc_connect)=)([^&#\s]*)",
    re.IGNORECASE,
)


#: A user and a password, which hold no @ and no / of their own, hosts, a database and options.
_HOST = r"(?:[^/@?:,\[\]]*|\[[^/@\]]*\])(?::[0-9]*)?"
_CLEAR = re.compile(rf"[a-z0-9+_]+://(?:[^/@]*@)?{_HOST}(?:,{_HOST})*(?:/[^@?]*)?(?:\?.*)?")
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
        Other databases are reached through SQLAlchemy and an installed driver, by its addresses,
        such as "mssql+pyodbc://user:password@host/database?driver=ODBC+Driver+18+for+SQL+Server".

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
    """

    def __init__(self, address: str) -> None:
        found = _ADDRESS.fullmatch(address)
        self.url, _, self.table = (part.strip() for part in address.partition("#"))
        if found is None or not self.table:
            raise ValueError(
                f"{without_user(address)} is not the address of a table. Use for example "
                "sqlite:///cases.db#cases, duckdb:///cases.duckdb#cases or "
                "postgresql://user@host/database#cases. For another database, name its driver as "
                "SQLAlchemy does, such as mysql+pymysql://user@host/database#cases."
            )
        known = {"sqlite": "sqlite", "duckdb": "duckdb", "postgres": "postgresql"}
        self.system = known.get(found[1].removesuffix("ql"), "other")
        is_clear = _CLEAR.fullmatch(self.url) and (self.is_query or "@" not in self.table)
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
    def is_query(self) -> bool:
        """Whether this is a query, and not the name of a table."""
        return re.search(r"\s", self.table) is not None

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


def as_path(text: str) -> Any:
    """Return a file by its path; or a table of a database, or a file elsewhere, by its address."""
    elsewhere = re.match("[A-Za-z][A-Za-z0-9+.-]+://", text)
    if _ADDRESS.fullmatch(text) or (elsewhere and "#" in text):
        return DatabaseTable(text)
    return RemoteFile(text) if elsewhere else Path(text)
