"""Place and route with a stop when the router makes no progress.

nextpnr's router1 rips up a net when two nets need the same wire, and never ends if wires are too few. Whether they are
depends on the placement, and so on the seed.
"""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from neuroncore_rtl.run.report import progress, shown
from neuroncore_rtl.run.sim.simulation import BuildFailed

__all__ = ["remaining", "route", "stands_still"]

PATIENCE = 50
"""Thousands of connections that the router may make without a new minimum of remaining ones. In runs that end, each
thousand is a new minimum."""

_THOUSAND = re.compile(r"\|\s*(\d+)\|\s*[\d.]+\s+[\d.]+\|")


def remaining(log: str) -> list[int]:
    """Return the number of remaining connections after each thousand, from the log of nextpnr."""
    return [int(found) for found in _THOUSAND.findall(log)]


def stands_still(left: Sequence[int]) -> bool:
    """Return whether the minimum of the remaining connections is older than `PATIENCE`."""
    return bool(left) and len(left) - 1 - left.index(min(left)) > PATIENCE


def route(command: Sequence[str], directory: Path, log: Path, doing: str) -> bool:
    """Run nextpnr in a directory; return False if it was stopped because its router made no progress.

    The command names the log; `doing` is the activity, for the progress display.

    Raises:
        BuildFailed: if nextpnr fails, with the end of its output.
    """
    log.unlink(missing_ok=True)
    said = directory / "nextpnr.txt"
    with progress(doing), said.open("w") as output:
        process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT)
        try:
            while process.poll() is None:
                time.sleep(1)
                if log.is_file() and stands_still(remaining(log.read_text(errors="replace"))):
                    return False
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        raise BuildFailed(f"nextpnr failed in {shown(directory)}:\n{said.read_text(errors='replace')[-2000:]}")
    return True
