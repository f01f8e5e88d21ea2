"""Harnesses as Verilog text: macros, wires, connections, hierarchical blocks and plusargs."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from amaranth.lib import wiring

from neuroncore_rtl.hdl.verilog.text import module_ports
from neuroncore_rtl.run.sim.layouts import define_lines
from neuroncore_rtl.run.sim.simulation import Design
from neuroncore_rtl.run.sim.vectors import MARK

__all__ = [
    "arguments", "bounds", "connections", "harness", "modules_of", "plusargs", "port_widths", "port_wires", "wires",
]  # fmt: skip


def harness(
    device: str,
    top: str,
    defines: Mapping[str, object],
    *parts: str | Path,
    ports: Collection[str] = (),
    blocks: str | None = None,
    kept: str | None = None,
    waves: bool = False,
) -> Design:
    """Return a harness as a design with the clock `clk` and the output `done`.

    Arguments:
        device: Python file of the device; the harness's Verilog file has the same stem.
        top: module of the harness.
        defines: macros of the harness, by name.
        parts: further Verilog, texts or files.
        ports: ports that are read at the end, besides `done`.
        blocks: regular expression of hierarchical blocks of Verilator; see `modules_of`.
        kept: regular expression of modules that Verilator does not inline.
        waves: whether `WAVES` is defined.
    """
    texts = [part.read_text() if isinstance(part, Path) else part for part in (Path(device).with_suffix(".v"), *parts)]
    if "xorshift(" in texts[0]:  # before the module that draws its pauses with it
        texts.insert(0, Path(__file__).with_name("xorshift.v").read_text())
    text = "\n".join([define_lines({"WAVES": "", **defines} if waves else defines), *texts])
    apart, whole = (modules_of(text, pattern) if pattern else () for pattern in (blocks, kept))
    return Design(top, text, hier_blocks=apart, kept=whole, public=("done", *ports), clock="clk")


def modules_of(text: str, pattern: str) -> tuple[str, ...]:
    """Return the modules that match a regular expression and call no vector library (`run.sim.vectors`)."""
    modules = re.findall(rf"^({MARK}(?:.*\n)+?)?module (\w+)", text, re.MULTILINE)
    return tuple(name for marked, name in modules if not marked and re.match(pattern, name))


def plusargs(**values: object) -> list[str]:
    """Return plusargs of a simulation, such as `+seed=1`."""
    return [f"+{name}={value}" for name, value in values.items()]


def arguments(
    numbers: Iterable[str] = (),
    memories: Iterable[str] = (),
    files: Iterable[str] = (),
    *,
    images: Iterable[str] = (),
    hexadecimal: Iterable[str] = (),
    prefix: str = "",
) -> str:
    """Return the statements that read a harness's plusargs, all required, into variables of the same names.

    Numbers are decimal or `hexadecimal`, and their plusargs begin with `prefix`. Memories are loaded from hexadecimal
    files with NAME_count lines, wide ones (`images`) from binary files: Verilator shifts the whole word for each digit.
    Files are output files.
    """
    counts = [f"{name}_count" for name in (*memories, *images)]
    forms = dict.fromkeys([*numbers, *counts], "d") | dict.fromkeys(hexadecimal, "h")
    found = [_plusarg(f"{prefix}{name}", form, name) for name, form in forms.items()]
    for name in memories:
        found += [_plusarg(name, "s", "path"), f"if ({name}_count > 0) $readmemh(path, {name}, 0, {name}_count - 1);"]
    for name in images:
        loaded = f'file = $fopen(path, "rb"); got = $fread({name}, file, 0, {name}_count); $fclose(file);'
        failed = f'if (got != {name}_count * ($bits({name}[0]) / 8)) $fatal(1, "the file of +{name} is too short");'
        loaded = f"if ({name}_count > 0) begin : load_{name} integer file, got; {loaded} {failed} end"
        found += [_plusarg(name, "s", "path"), loaded]
    for name in files:
        failed = f'if ({name} == 0) $fatal(1, "the file of +{name} cannot be written");'
        found += [_plusarg(name, "s", "path"), f'{name} = $fopen(path, "w");', failed]
    return " ".join(found)


def _plusarg(name: str, form: str, variable: str) -> str:
    return f'if (!$value$plusargs("{name}=%{form}", {variable})) $fatal(1, "+{name} is missing");'


def bounds(width: int) -> str:
    """Return the range in a signal's declaration."""
    return "" if width == 1 else f"[{width - 1}:0] "


def wires(widths: Mapping[str, int], behind: str = "") -> str:
    """Return declarations of wires, as vectors even for one bit; `behind` follows each name, such as array bounds."""
    return " ".join(f"wire [{width - 1}:0] {name}{behind};" for name, width in widths.items())


def connections(ports: Mapping[str, object]) -> str:
    """Return the connections of an instance's ports."""
    return ", ".join(f".{name}({value})" for name, value in ports.items())


def port_widths(signature: wiring.Signature) -> dict[str, int]:
    """Return the bits of a component's ports by their Verilog names."""
    return {name: len(value) for name, _, value in module_ports(signature, signature.create())}


def port_wires(signature: wiring.Signature, but: Collection[str] = ()) -> dict[str, str]:
    """Return the macros `PORT_WIRES` and `PORTS` of a harness with one subject: wires of its ports, and connections.

    A wire's name has `_` instead of `__`. The harness declares `clk`, `rst` and the wires of `but`.
    """
    widths = port_widths(signature)
    names = {port: _RESERVED.get(port, port.replace("__", "_")) for port in widths}
    return {
        "PORT_WIRES": " ".join(f"wire {bounds(widths[port])}{names[port]};" for port in widths if port not in but),
        "PORTS": connections({"clk": "clk", "rst": "rst"} | {_RESERVED.get(p, p): wire for p, wire in names.items()}),
    }


_RESERVED = {"time": r"\time "}
"""Keywords of Verilog as escaped identifiers."""
