"""Values of a waveform: signals sampled once per clock cycle, and words as decimal numbers."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from vcdvcd import VCDVCD

from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.run.sim.layouts import plain

__all__ = ["NUMBERS", "WIDTHS", "sample_cycles", "words_in"]


def _operand(word: int) -> str:
    """Return an operand word of the array as text; a masked operand is "absent"."""
    fields = plain(Operand(), word)
    sign = "-" if fields["sign"] else ""
    if fields["nan"]:
        return "absent" if fields["inf"] else "nan"
    if fields["inf"]:
        return f"{sign}inf"
    size = fields["significand"] * 2.0 ** (fields["exponent"] - OPERAND_BIAS - (SIGNIFICAND_BITS - 1))
    return f"{sign}{size:.6g}"


NUMBERS: Mapping[str, Callable[[int], str]] = {
    "fp32": lambda word: f"{np.uint32(word).view(np.float32):.6g}",
    "operand": _operand,
}
"""Number formats with their conversion of a word to text, for GTKWave's translation files."""

WIDTHS: Mapping[str, int] = {"fp32": 32, "operand": Operand().size}
"""Bits per word of each format."""


def words_in(vcd: Path, signals: Iterable[str]) -> set[int]:
    """Return the words of signals, except those with unknown bits."""
    wanted = list(dict.fromkeys(signals))
    recorded: Any = VCDVCD(str(vcd), signals=wanted)
    found = {value for name in wanted for _, value in recorded[name].tv}
    return {int(value, 2) for value in found if set(value) <= {"0", "1"}}


def sample_cycles(vcd: Path, clock: str, names: Iterable[str]) -> Mapping[str, list[int | None]]:
    """Return the value of each signal just before the rising edge that ends each cycle; None: unknown."""
    wanted, known = list(dict.fromkeys(names)), {}
    for name in VCDVCD(str(vcd), only_sigs=True).signals:  # with escapes and ranges
        known.setdefault(re.sub(r"\[\d+:\d+\]$", "", name).replace("\\", ""), name)
    recorded: Any = VCDVCD(str(vcd), signals=[known[name] for name in (clock, *wanted)])
    edges = [time for time, value in recorded[known[clock]].tv if value == "1"]
    return {name: _before(edges, recorded[known[name]].tv) for name in wanted}


def _before(edges: list[int], changes: list[tuple[int, str]]) -> list[int | None]:
    """Return the value of a signal just before the times `edges`."""
    times = [time for time, _ in changes]
    words = [None, *(int(word, 2) if set(word) <= {"0", "1"} else None for _, word in changes)]
    return [words[bisect_left(times, edge)] for edge in edges]
