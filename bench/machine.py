"""Description of the computer on which a benchmark runs."""

import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

from neuroncore_rtl.run.sim.vectors import LEVELS, level

__all__ = ["machine", "machine_line", "processor"]


def processor(information: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor, or its architecture if the system does not report a name."""
    text = information.read_text() if information.is_file() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def machine(ways: Iterable[str]) -> dict[str, object]:
    """Return the computer's processor, cores, load and vector instruction level, and the measured ways to simulate."""
    ways = list(ways)
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "ways": ways,
        "vectors": level() if "vector" in ways else None,
    }


def machine_line(found: dict[str, object]) -> str:
    """Return the result of `machine` as a line of text."""
    vectors = found["vectors"]
    kinds = {"vector": f" ({vectors}, {LEVELS[vectors].width} lanes at a time)"} if vectors else {}
    ways = " beside ".join(f"LANES={way}{kinds.get(way, '')}" for way in found["ways"])
    return ", ".join(filter(None, [found["cpu"], f"{found['cores']} cores", ways]))
