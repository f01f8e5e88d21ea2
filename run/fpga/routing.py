"""Place and route until the router ends, or stands still.

nextpnr's router1 takes a wire from another net where two want it, and goes on for ever when there are too few. Whether
there are depends on the placement, and that on the seed.
"""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from neuroncore_rtl.run.report import progress, shown
from neuroncore_rtl.run.sim.simulation import BuildFailed

__all__ = ["remaining", "routed", "stands_still"]

PATIENCE = 50
"""Thousands of connections that a router may make without fewer of them being left than ever before; of those that end,
each thousand leaves fewer."""

_THOUSAND = re.compile(r"\|\s*(\d+)\|\s*[\d.]+\s+[\d.]+\|")


def remaining(log: str) -> list[int]:
    """Return how many connections were left after each thousand, from what nextpnr says."""
    return [int(found) for found in _THOUSAND.findall(log)]


def stands_still(left: Sequence[int]) -> bool:
    """Return whether a router had fewer connections left so long ago that it will not end."""
    return bool(left) and len(left) - 1 - left.index(min(left)) > PATIENCE


def routed(command: Sequence[str], directory: Path, log: Path, doing: str) -> bool:
    """Run nextpnr; return whether it came to an end before its router stood still.

    Arguments:
        command: nextpnr. directory: where it runs. log: what it writes, as told by `command`. doing: for the progress.

    Raises:
        BuildFailed: if nextpnr fails, with the end of what it said.
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
