"""Place and route until the router ends, or stands still.

nextpnr's router2 goes on for ever when too many wires are wanted in one place. Whether they are depends on the
placement, and that on the seed.
"""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from neuroncore_rtl.tb.sim.report import progress, shown
from neuroncore_rtl.tb.sim.simulation import BuildFailed

__all__ = ["FEW", "PATIENCE", "overused", "routed", "stands_still"]

FEW = 1000
"""Wires taken twice; with more, hardly any router has come to an end that did not get fewer of them in each round."""

PATIENCE = (10, 100)
"""Rounds in which a router with more than `FEW` wires taken twice, and with fewer of them, may find no better way."""

_ROUND = re.compile(r"iter=\d+ wires=\d+ overused=(\d+)")


def overused(log: str) -> list[int]:
    """Return how many wires were taken twice after each round, from what nextpnr says."""
    return [int(found) for found in _ROUND.findall(log)]


def stands_still(rounds: Sequence[int]) -> bool:
    """Return whether a router had fewer wires taken twice so long ago that it will not end."""
    if not rounds:
        return False
    least = min(rounds)
    return len(rounds) - 1 - rounds.index(least) > PATIENCE[least <= FEW]


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
                if log.is_file() and stands_still(overused(log.read_text(errors="replace"))):
                    return False
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        raise BuildFailed(f"nextpnr failed in {shown(directory)}:\n{said.read_text(errors='replace')[-2000:]}")
    return True
