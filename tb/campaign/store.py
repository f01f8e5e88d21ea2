"""Row store: a file with one JSON line per row. A killed process or a full disk costs at most the row being written."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from neuroncore_rtl.run.settings import UsageError
from neuroncore_rtl.run.shell import display_path
from neuroncore_rtl.tb.campaign.task import Row, Status

__all__ = ["Store"]


class Store:
    """Rows by their keys, in a file that is read when the store is created; the last row with a key is valid.

    To add rows, enter the store as a context; raises UsageError if another campaign has entered it.
    """

    def __init__(self, path: Path):
        self.path = path
        self._rows: dict[str, Row] = {}
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        self._load()

    def _load(self) -> int:
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
            raise UsageError(
                f"{display_path(self.path)} must be written by one campaign at a time; another is running"
            ) from None
        size = self._load()
        if self.path.is_file():
            os.truncate(self.path, size)
        return self

    def __exit__(self, *problem: object) -> None:
        self._lock.release()

    def has_result(self, key: str) -> bool:
        """Return whether a key's task has a result; a broken task has no result."""
        return key in self._rows and self._rows[key]["status"] != Status.BROKEN

    def row(self, key: str) -> Row:
        return self._rows[key]

    def rows(self) -> list[Row]:
        return list(self._rows.values())

    def add(self, row: Mapping) -> None:
        """Append a row to the file; it is on disk when this returns. After an OSError the file is unchanged."""
        line = json.dumps(row, allow_nan=False).encode() + b"\n"
        with self.path.open("ab", buffering=0) as file:
            size = file.tell()
            try:
                while line:
                    line = line[file.write(line) :]
                os.fsync(file.fileno())
            except OSError as error:
                os.truncate(self.path, size)
                raise OSError(error.errno, error.strerror, display_path(self.path)) from error
        self._rows[row["key"]] = dict(row)
