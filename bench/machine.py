"""The machine that measures, without which a time says nothing."""

import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

from neuroncore_rtl.run.sim.vectors import LEVELS, level

__all__ = ["described", "machine", "processor"]


def processor(information: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor, or of its architecture if the system does not tell."""
    text = information.read_text() if information.is_file() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def machine(ways: Iterable[str]) -> dict[str, object]:
    """Return the processor, its cores and their load, the ways to simulate (`run.sim.vectors.WAYS`), and the level of
    vectors, one of `run.sim.vectors.LEVELS`; None if no way has any."""
    ways = list(ways)
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "ways": ways,
        "vectors": level() if "vector" in ways else None,
    }


def described(found: dict[str, object]) -> str:
    """Return a machine, and the ways, in a line."""
    vectors = found["vectors"]
    kinds = {"vector": f" ({vectors}, {LEVELS[vectors].width} lanes at once)"} if vectors else {}
    ways = " beside ".join(f"LANES={way}{kinds.get(way, '')}" for way in found["ways"])
    return ", ".join(filter(None, [found["cpu"], f"{found['cores']} cores", ways]))
