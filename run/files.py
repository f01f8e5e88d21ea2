"""Files that get their names when they are whole, so that no other process reads a part."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["whole_file", "write_text"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the path to write to; the file replaces `path` at the end of the context, without an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> Path:
    """Write a file atomically, in UTF-8; return its path."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    return path
