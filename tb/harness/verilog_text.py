"""Verilog as text: the macros that a harness is written with, and the modules of its subject."""

import re
from collections.abc import Mapping
from pathlib import Path

from neuroncore_rtl.tb.sim.layouts import define_lines
from neuroncore_rtl.tb.sim.vectors import MARK

__all__ = ["XORSHIFT", "assemble", "modules_of"]

XORSHIFT = Path(__file__).with_name("xorshift.v")
"""A function that harnesses draw their pauses with; it stands before their module."""


def assemble(defines: Mapping[str, object], *parts: str) -> str:
    """Return the text of a harness: its macros, and what is written with them."""
    return "\n".join([define_lines(defines), *parts])


def modules_of(text: str, pattern: str) -> tuple[str, ...]:
    """Return the names of the modules that a regular expression matches, from their beginning; not of those that call
    a library (`tb.sim.vectors`)."""
    modules = re.findall(rf"^({MARK}.*\n)?module (\w+)", text, re.MULTILINE)
    return tuple(name for marked, name in modules if not marked and re.match(pattern, name))
