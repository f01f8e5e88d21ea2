"""Folders by names that make can read: it divides words at spaces, and Verilator's makefiles have paths as they are.

Where the project or its Python lies in a folder with a space or a letter beyond ASCII in its name, builds get there
through a link of another name, which is made when it is needed.
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
    """A folder has a name that make cannot read, and no link to it can be made; the message names both."""


def plain_path(text: str, *folders: Path) -> str:
    """Return `text` with links in the place of folders that make cannot read.

    Arguments:
        text: a path, or an argument of a program with paths in it.
        folders: which may be in it, besides the project's, what is generated, and Python's own.

    Raises:
        UnreadableFolder: a link cannot be made.
    """
    known = {str(folder) for folder in (*folders, ROOT, SIM_BUILD, sys.prefix, sys.base_prefix)}
    for folder in sorted(known, key=len, reverse=True):
        if folder in text and not _READABLE.fullmatch(folder):
            text = text.replace(folder, str(_link(folder)))
    return text


def _link(folder: str) -> Path:
    """Return a link to a folder, the same one every time; it is made if it is not there."""
    places = [place for place in (tempfile.gettempdir(), "/tmp") if _READABLE.fullmatch(place)]
    # A folder of this user's, so that nobody else decides where the links lead.
    link = Path(places[0], f"neuroncore-rtl-{os.getuid()}", hashlib.sha256(os.fsencode(folder)).hexdigest()[:16])
    try:
        link.parent.mkdir(mode=0o700, exist_ok=True)
        if link.parent.stat().st_uid != os.getuid():
            raise PermissionError(f"{link.parent} is another user's")
        if not link.is_symlink() or os.readlink(link) != folder:
            # Made under a name of its own, as another process may make it at the same time.
            unfinished = link.with_name(f"{link.name}.{os.getpid()}")
            unfinished.symlink_to(folder)
            unfinished.replace(link)
    except OSError as error:
        raise UnreadableFolder(
            f"make cannot read the name of {folder!r}, and there can be no link to it: {error}"
        ) from error
    return link
