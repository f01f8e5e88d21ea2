"""Estimates of how long an activity takes, from how long it took on this machine before, or from its size.

`sim_build/durations.json` has, for each activity, durations in seconds by size. A size is any number to which the
duration is roughly proportional, such as the characters of a design's Verilog.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from neuroncore_rtl import SIM_BUILD
from neuroncore_rtl.run.files import write_text

__all__ = ["Forecast", "estimate", "remark", "remember"]

FILE = SIM_BUILD / "durations.json"

SHORT = 10.0
"""Seconds below which no estimate is shown."""

RATES = {
    "build verilator": 12e-6,
    "build verilator with waveform": 120e-6,
    "build icarus": 1e-6,
    "elaborating core": 12,
}
"""Seconds per unit of size of an activity that this machine has not executed yet, from `docs/performance.md`.

A key also stands for names such as "elaborating core of 4x4".
"""


def estimate(activity: str, size: float = 1, file: Path | None = None) -> float | None:
    """Return the expected seconds of an activity, from the recorded size nearest to `size`; None: not known."""
    known = _durations(file or FILE).get(activity, {})
    if not known:
        rates = [rate for name, rate in RATES.items() if activity == name or activity.startswith(f"{name} of ")]
        return rates[0] * size if rates else None
    nearest = min(known, key=lambda one: max(float(one), size) / min(float(one), size))
    return known[nearest] * size / float(nearest)


def remember(activity: str, seconds: float, size: float = 1, file: Path | None = None) -> None:
    """Record the duration of an activity, if it is long or its estimate is; errors of the file are ignored."""
    file = file or FILE
    if seconds < SHORT / 2 and not remark(estimate(activity, size, file)):
        return
    known = _durations(file)
    known = {**known, activity: {**known.get(activity, {}), f"{size:g}": round(seconds, 1)}}
    with suppress(OSError):
        write_text(file, json.dumps(known, indent=1) + "\n")


class Forecast:
    """Estimate of an activity's seconds from the part of it that is done.

    What happens once, such as compilation, must not count for the rest. So the rest takes as long as the part since the
    last look, and an estimate counts if the one before differs by less than a factor of two.
    """

    def __init__(self):
        self._seconds = self._part = 0.0
        self._last: float | None = None

    def look(self, seconds: float, part: float) -> float | None:
        """Return the estimate when a `part`, 0 to 1, is done after `seconds`; None while there is none."""
        if part <= self._part:
            return None
        before, found = self._last, seconds + (1 - part) * (seconds - self._seconds) / (part - self._part)
        self._seconds, self._part, self._last = seconds, part, found
        return found if before is not None and found / 2 < before < 2 * found else None


def remark(seconds: float | None) -> str:
    """Return an estimate as text behind an activity, such as " (about 25 s)"; empty if it is short or not known."""
    if seconds is None or seconds < SHORT:
        return ""
    return f" (about {seconds:.0f} s)" if seconds < 100 else f" (about {seconds / 60:.0f} min)"


def _durations(file: Path) -> Mapping[str, Mapping[str, float]]:
    """Return the recorded durations; none if the file is missing or damaged."""
    try:
        return _parsed(file.read_text())
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


@lru_cache(maxsize=1)  # the file rarely changes
def _parsed(text: str) -> Mapping[str, Mapping[str, float]]:
    return {
        name: {size: float(seconds) for size, seconds in one.items() if float(size) > 0}
        for name, one in json.loads(text).items()
    }
