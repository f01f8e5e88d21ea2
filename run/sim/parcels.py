"""Generated files of a run as an archive, to move builds between computers."""

import io
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.report import set_within

__all__ = ["missing", "note", "noted", "pack_parcel", "unpack_parcel"]

_NOTED: ContextVar[Any] = ContextVar("noted", default=None)

_INTERMEDIATE = ("objects",)
"""Folders of a build that runs do not need."""


def note(*paths: Path) -> None:
    """Add files or folders below `sim_build/` that a run needs to the set of `noted`, if that context is open."""
    found = _NOTED.get()
    if found is not None:
        found.update(path.relative_to(SIM_BUILD).as_posix() for path in paths if path.is_relative_to(SIM_BUILD))


def noted() -> AbstractContextManager[set[str]]:
    """Enter a set, to which `note` adds names relative to `sim_build/` in this context."""
    return set_within(_NOTED, set[str]())


def missing(names: Iterable[str]) -> list[str]:
    """Return the names, relative to `sim_build/`, of files that do not exist on this computer."""
    return [name for name in names if not (SIM_BUILD / name).exists()]


def pack_parcel(names: Iterable[str]) -> bytes:
    """Return files and folders, named relative to `sim_build/`, as a compressed archive."""

    def needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if Path(entry.name).name in _INTERMEDIATE else entry

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name in sorted(names):
            archive.add(SIM_BUILD / name, name, filter=needed)
    return buffer.getvalue()


def unpack_parcel(parcel: bytes, names: Iterable[str]) -> None:
    """Unpack the files and folders that are missing, each atomically."""
    SIM_BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".parcel-", dir=SIM_BUILD) as folder:
        with tarfile.open(fileobj=io.BytesIO(parcel)) as archive:
            archive.extractall(folder, filter="data")
        for name in names:
            place = SIM_BUILD / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                shutil.move(Path(folder, name), place)
