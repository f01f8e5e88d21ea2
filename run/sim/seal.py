"""Whether a generated file is still what was generated: a program that was cut short or overwritten is made again.

A seal beside the file has its size, its time and its hash. As long as size and time are those, nothing is read; a copy
of the file, whose time is another, is told by its hash.
"""

import hashlib
import json
import os
from pathlib import Path

__all__ = ["intact", "seal", "seal_of"]


def seal(file: Path) -> None:
    """Keep what a finished file is like, in `<file>.seal`."""
    # Whole or not at all: another process may look at it at the same time.
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.seal")
    unfinished.write_text(json.dumps({**_stamp(file), "sha256": _digest(file)}) + "\n")
    unfinished.replace(seal_of(file))


def intact(file: Path) -> bool:
    """Return whether a file is as it was when it was sealed; one without a seal is not."""
    try:
        kept = json.loads(seal_of(file).read_text())
        if _stamp(file).items() <= kept.items():
            return True
        if _digest(file) != kept["sha256"]:
            return False
        seal(file)
    except (OSError, ValueError, AttributeError, KeyError):
        return False
    return True


def seal_of(file: Path) -> Path:
    """Return where the seal of a file is."""
    return file.with_name(f"{file.name}.seal")


def _stamp(file: Path) -> dict[str, int]:
    status = file.stat()
    return {"size": status.st_size, "time": status.st_mtime_ns}


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
