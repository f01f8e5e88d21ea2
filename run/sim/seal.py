"""Integrity check of generated files: a truncated or overwritten file is made again.

A seal beside the file contains its size, time and hash. If size and time match, the file is not read; if only the time
differs, as for a copy, the hash decides.
"""

import hashlib
import json
from pathlib import Path

from neuroncore_rtl.run.files import write_text

__all__ = ["intact", "seal", "seal_of"]


def seal(file: Path) -> None:
    """Record size, time and hash of a finished file in `<file>.seal`."""
    write_text(seal_of(file), json.dumps({**_stamp(file), "sha256": _digest(file)}) + "\n")


def intact(file: Path) -> bool:
    """Return whether a file has the size and time in its seal, or else the hash; False without a seal."""
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
    """Return the path of a file's seal."""
    return file.with_name(f"{file.name}.seal")


def _stamp(file: Path) -> dict[str, int]:
    status = file.stat()
    return {"size": status.st_size, "time": status.st_mtime_ns}


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
