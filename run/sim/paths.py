"""Paths that make and Verilator's makefiles can read: without spaces and non-ASCII letters.

If the project or its Python is in such a folder, builds use a link with another name, created on demand.
"""

import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path

from neuroncore_rtl import ROOT, SIM_BUILD

__all__ = ["UnreadableFolder", "plain_path"]

_READABLE = re.compile(r"[\w./+@-]+", re.ASCII)


class UnreadableFolder(RuntimeError):
    """No link can be made to a folder that make cannot read; the message names the folder."""


def plain_path(text: str, *folders: Path) -> str:
    """Return `text`, a path or an argument with paths, with links instead of folders that make cannot read.

    `folders` may be replaced besides the project's, `sim_build/` and Python's. UnreadableFolder if a link cannot be
    made.
    """
    known = {str(folder) for folder in (*folders, ROOT, SIM_BUILD, sys.prefix, sys.base_prefix)}
    for folder in sorted(known, key=len, reverse=True):
        if folder in text and not _READABLE.fullmatch(folder):
            text = text.replace(folder, str(_link(folder)))
    return text


def _link(folder: str) -> Path:
    """Return the path of a link to a folder; create the link if it is missing. A folder always has the same link."""
    places = [place for place in (tempfile.gettempdir(), "/tmp") if _READABLE.fullmatch(place)]
    # The parent folder must belong to this user, because its owner controls the links' targets.
    link = Path(places[0], f"neuroncore-rtl-{os.getuid()}", hashlib.sha256(os.fsencode(folder)).hexdigest()[:16])
    try:
        link.parent.mkdir(mode=0o700, exist_ok=True)
        if link.parent.stat().st_uid != os.getuid():
            raise PermissionError(f"{link.parent} belongs to another user")
        if not link.is_symlink() or os.readlink(link) != folder:
            # Created under a unique name and renamed, because another process may do the same.
            unfinished = link.with_name(f"{link.name}.{os.getpid()}")
            unfinished.symlink_to(folder)
            unfinished.replace(link)
    except OSError as error:
        raise UnreadableFolder(
            f"make cannot read the name of {folder!r}, and a link to it cannot be made: {error}"
        ) from error
    return link
