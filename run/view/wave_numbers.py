"""Words of a waveform as decimal numbers, for GTKWave's translation files."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from vcdvcd import VCDVCD

from neuroncore_rtl.hdl.arith.operand import OPERAND_BIAS, SIGNIFICAND_BITS, Operand
from neuroncore_rtl.run.sim.layouts import plain

__all__ = ["NUMBERS", "WIDTHS", "words_in"]


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
"""Number formats with their conversion of a word to text."""

WIDTHS: Mapping[str, int] = {"fp32": 32, "operand": Operand().size}
"""Bits per word of each format."""


def words_in(vcd: Path, signals: Iterable[str]) -> set[int]:
    """Return the words of signals, except those with unknown bits."""
    wanted = list(dict.fromkeys(signals))
    recorded: Any = VCDVCD(str(vcd), signals=wanted)
    found = {value for name in wanted for _, value in recorded[name].tv}
    return {int(value, 2) for value in found if set(value) <= {"0", "1"}}
