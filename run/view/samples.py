"""Signals of a waveform, sampled once per clock cycle."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vcdvcd import VCDVCD

__all__ = ["recorded_names", "sample_cycles"]


def recorded_names(vcd: Path) -> dict[str, str]:
    """Return the signals of a waveform by plain name (no escapes, no range), as the file names them."""
    found: dict[str, str] = {}
    for name in VCDVCD(str(vcd), only_sigs=True).signals:
        found.setdefault(re.sub(r"\[\d+:\d+\]$", "", name).replace("\\", ""), name)
    return found


def sample_cycles(vcd: Path, clock: str, names: Iterable[str]) -> Mapping[str, list[int | None]]:
    """Return the value of each signal just before the rising edge that ends each cycle; None: unknown."""
    known, wanted = recorded_names(vcd), list(dict.fromkeys(names))
    recorded: Any = VCDVCD(str(vcd), signals=[known[name] for name in (clock, *wanted)])
    edges = [time for time, value in recorded[known[clock]].tv if value == "1"]
    return {name: _before(edges, recorded[known[name]].tv) for name in wanted}


def _before(edges: list[int], changes: list[tuple[int, str]]) -> list[int | None]:
    """Return the value of a signal just before the times `edges`."""
    times = [time for time, _ in changes]
    words = [None, *(int(word, 2) if set(word) <= {"0", "1"} else None for _, word in changes)]
    return [words[bisect_left(times, edge)] for edge in edges]
