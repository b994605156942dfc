"""Files that are written whole, or not at all, and results as plain JSON for them."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .addresses import DatabaseTable, RemoteFile


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
