"""Harnesses as text: their macros, wires for the ports of their subject, the modules of that; and their arguments."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog import module_ports
from neuroncore_rtl.tb.sim.layouts import define_lines
from neuroncore_rtl.tb.sim.vectors import MARK

__all__ = [
    "XORSHIFT",
    "assemble",
    "bounds",
    "connections",
    "modules_of",
    "plusargs",
    "port_widths",
    "port_wires",
    "wires",
]

XORSHIFT = Path(__file__).with_name("xorshift.v")
"""A function that harnesses draw their pauses with; it stands before their module."""


def assemble(defines: Mapping[str, object], *parts: str | Path) -> str:
    """Return the text of a harness: its macros, and what is written with them, texts or the files that hold them."""
    texts = (part.read_text() if isinstance(part, Path) else part for part in parts)
    return "\n".join([define_lines(defines), *texts])


def modules_of(text: str, pattern: str) -> tuple[str, ...]:
    """Return the names of the modules that a regular expression matches, from their beginning; not of those that call
    a library (`tb.sim.vectors`)."""
    modules = re.findall(rf"^({MARK}.*\n)?module (\w+)", text, re.MULTILINE)
    return tuple(name for marked, name in modules if not marked and re.match(pattern, name))


def plusargs(**values: object) -> list[str]:
    """Return the arguments of a simulation that a harness asks for by these names."""
    return [f"+{name}={value}" for name, value in values.items()]


def bounds(width: int) -> str:
    """Return what stands before the name of a signal of so many bits in its declaration."""
    return "" if width == 1 else f"[{width - 1}:0] "


def wires(widths: Mapping[str, int], behind: str = "") -> str:
    """Return the declarations of wires, vectors all of them; behind: what follows each name, the bounds of an array."""
    return " ".join(f"wire [{width - 1}:0] {name}{behind};" for name, width in widths.items())


def connections(ports: Mapping[str, object]) -> str:
    """Return the connections of an instance's ports, by their names."""
    return ", ".join(f".{name}({value})" for name, value in ports.items())


def port_widths(signature: wiring.Signature) -> dict[str, int]:
    """Return the bits of a component's ports, by their names in Verilog."""
    return {name: len(value) for name, _, value in module_ports(signature, signature.create())}


def port_wires(signature: wiring.Signature, but: Collection[str] = ()) -> dict[str, str]:
    """Return the macros of a harness with one subject: `PORT_WIRES`, called as its ports with `_` in place of `__`,
    and `PORTS`, the connections to them; clock and reset are the harness's `clk` and `rst`.

    Arguments:
        signature: of the subject.
        but: ports that the harness has itself, and therefore declares.
    """
    widths = port_widths(signature)
    names = {port: _RESERVED.get(port, port.replace("__", "_")) for port in widths}
    return {
        "PORT_WIRES": " ".join(f"wire {bounds(widths[port])}{names[port]};" for port in widths if port not in but),
        "PORTS": connections({"clk": "clk", "rst": "rst"} | {_RESERVED.get(p, p): wire for p, wire in names.items()}),
    }


_RESERVED = {"time": r"\time "}
"""Names that mean something else in Verilog, as it takes them nevertheless."""
