"""Rows on disk: one line of JSON each, appended whole when its task is finished.

A process that is killed, or a disk that is full, costs at most the row that was being written: its unfinished line is
cut off. One campaign at a time writes; anybody may read.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from neuroncore_rtl.run.report import shown
from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.tb.campaign.task import Row, Status

__all__ = ["Store", "write_parquet"]


class Store:
    """Rows by their keys; of several of one key the last counts.

    Arguments:
        path: of the file; it and its folder need not exist.

    It is read at once; to add rows, enter it (`with Store(path) as store`).

    Raises:
        UsageError: on entering, if another campaign writes to it.
    """

    def __init__(self, path: Path):
        self.path = path
        self._rows: dict[str, Row] = {}
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        self._read()

    def _read(self) -> int:
        """Read the rows; return the bytes of their lines."""
        self._rows.clear()
        text = self.path.read_bytes() if self.path.is_file() else b""
        whole = text.rpartition(b"\n")[0]
        for line in whole.splitlines():
            row = json.loads(line)
            self._rows[row["key"]] = row
        return len(whole) + 1 if whole else 0

    def __enter__(self) -> "Store":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise UsageError(f"{shown(self.path)} must be written by one campaign at a time; another runs") from None
        size = self._read()
        if self.path.is_file():
            os.truncate(self.path, size)
        return self

    def __exit__(self, *problem: object) -> None:
        self._lock.release()

    def known(self, key: str) -> bool:
        """Return whether there is a result of this key; a row without one, whose task is broken, is none."""
        return key in self._rows and self._rows[key]["status"] != Status.BROKEN

    def row(self, key: str) -> Row:
        """Return the row of a key."""
        return self._rows[key]

    def rows(self) -> list[Row]:
        """Return all rows, one a key, in the order in which the keys came first."""
        return list(self._rows.values())

    def add(self, row: Mapping) -> None:
        """Append a row, on disk when this returns.

        Raises:
            OSError: if it cannot be written; the file has what it had before.
        """
        line = json.dumps(row, allow_nan=False).encode() + b"\n"
        with self.path.open("ab", buffering=0) as file:
            size = file.tell()
            try:
                while line:
                    line = line[file.write(line) :]
                os.fsync(file.fileno())
            except OSError as error:
                os.truncate(self.path, size)
                raise OSError(error.errno, error.strerror, shown(self.path)) from error
        self._rows[row["key"]] = dict(row)


def write_parquet(rows: Iterable[Mapping], path: Path) -> Path:
    """Write rows as Parquet, with a column for every name in any of them; return the path.

    Arguments:
        rows: at least one. A column of whole numbers is BIGINT, one of numbers DOUBLE, one of truths BOOLEAN, any other
            VARCHAR; what a row does not have is NULL. Names that differ in their letters' case alone are one to
            readers of Parquet: the second has an underscore behind it.
        path: of the file, which appears whole.
    """
    import duckdb

    rows = _renamed(list(rows))
    columns = {name: _type([row.get(name) for row in rows]) for name in dict.fromkeys(n for row in rows for n in row)}
    lines, unfinished = path.with_name(f".{path.name}.json"), path.with_name(f".{path.name}.unfinished")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        with duckdb.connect() as database:
            table = database.read_json(str(lines), columns=columns, format="newline_delimited")
            table.write_parquet(str(unfinished))
    finally:
        lines.unlink()
    unfinished.replace(path)
    return path


def _renamed(rows: list[Mapping]) -> list[Mapping]:
    """Return rows no two of whose columns have a name that differs in case alone."""
    taken: dict[str, str] = {}
    names = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        own = name
        while taken.setdefault(own.lower(), name) != name:
            own += "_"
        names[name] = own
    return [{names[name]: value for name, value in row.items()} for row in rows]


def _type(values: list) -> str:
    kinds = {type(value) for value in values if value is not None}
    for name, members in (("BOOLEAN", {bool}), ("BIGINT", {int}), ("DOUBLE", {int, float})):
        if kinds and kinds <= members:
            return name
    return "VARCHAR"
