"""Writer of netlists as RTLIL."""

from collections.abc import Mapping

from neuroncore_rtl.run.lanes.netlist import (
    Bit,
    Cell,
    LanesNetlist,
    NetlistInstance,
    NetlistMemory,
    NetlistRegister,
    chunks,
)
from neuroncore_rtl.run.lanes.values import runs
from tests.run.lanes.rtlil_text import cell_lines, concatenation, constant, constants, memory_lines

__all__ = ["names_of", "rtlil"]


def rtlil(netlist: LanesNetlist, names: Mapping[str, list[Bit | None]]) -> str:
    """Return a module with the netlist's original ports and additional named nets (None: an undriven bit)."""
    return _Writer(netlist, names).text()


def names_of(module: Mapping) -> dict[str, list[Bit | None]]:
    """Return the named internal nets in Yosys' JSON as bits of their drivers (None: inputs and memories)."""
    bits: dict[int | str, Bit] = {"0": 0, "1": 1}
    drivers = {}
    for name, cell in module["cells"].items():
        for port, nets in cell["connections"].items():
            if cell["port_directions"][port] == "output" and cell["type"] != "$mem_v2":
                drivers[name if cell["type"].startswith("$") else f"{name}.{port}"] = nets
    for driver, whole in drivers.items():
        for source, nets in chunks(driver, whole):
            bits.update({net: (source, place) for place, net in enumerate(nets)})
    nets = {name: net for name, net in module["netnames"].items() if not net["hide_name"]}
    return {name: [bits.get(bit) for bit in net["bits"]] for name, net in nets.items() if name not in module["ports"]}


class _Writer:
    def __init__(self, netlist: LanesNetlist, names: Mapping[str, list[Bit | None]]):
        self.netlist, self.names, self.ports = netlist, names, 1
        self.lines = [f"module \\{netlist.name}", "wire input 1 \\clk"]

    def text(self) -> str:
        netlist = self.netlist
        for port, width in _whole(netlist.inputs).items():
            self._port("input", port, width)
        for port, width in _whole({port: len(bits) for port, bits in netlist.outputs.items()}).items():
            self._port("output", port, width)
        for source, width in netlist.widths.items():
            if source not in netlist.inputs:
                if register := netlist.registers.get(source):
                    self.lines.append(f"attribute \\init {constant(register.init, width)}")
                self.lines.append(f"wire width {width} ${source}")
        for cell in netlist.cells.values():
            self._cell(cell)
        for register in netlist.registers.values():
            self._register(register)
        for memory in netlist.memories.values():
            self._memory(memory)
        for instance in netlist.instances.values():
            self._instance(instance)
        for port, bits in netlist.outputs.items():
            name, first = _part(port)
            self._connect(name, {first + place: bit for place, bit in enumerate(bits)})
        for name, bits in self.names.items():
            self.lines.append(f"wire width {len(bits)} {_identifier(name)}")
            self._connect(name, {place: bit for place, bit in enumerate(bits) if bit is not None})
        return "\n".join([*self.lines, "end", ""])

    def _port(self, direction: str, port: str, width: int) -> None:
        self.ports += 1
        self.lines.append(f"wire width {width} {direction} {self.ports} \\{port}")

    def _connect(self, wire: str, bits: Mapping[int, Bit]) -> None:
        if bits:
            driven = concatenation(f"{_identifier(wire)} [{place}]" for place in bits)
            self.lines.append(f"connect {driven} {self._value(list(bits.values()))}")

    def _value(self, bits: list[Bit]) -> str:
        parts = []
        for source, first, length, _ in runs(bits):
            if source is None:
                parts.append(constant(first, length))
                continue
            wire = f"${source}"
            if source in self.netlist.inputs:
                name, offset = _part(source)
                wire, first = f"\\{name}", first + offset
            parts.append(f"{wire} [{first + length - 1}:{first}]")
        return concatenation(parts)

    def _cell(self, cell: Cell) -> None:
        if cell.kind in ("mux", "pmux"):
            parameters = {"WIDTH": cell.width}
            if cell.kind == "pmux":
                parameters["S_WIDTH"] = len(cell.operands["S"])
        else:
            parameters = {"Y_WIDTH": cell.width}
            for port, bits in cell.operands.items():
                parameters |= {f"{port}_WIDTH": len(bits), f"{port}_SIGNED": int(port in cell.signed)}
        operands = {port: self._value(bits) for port, bits in cell.operands.items()}
        self.lines += cell_lines(f"${cell.kind}", f"$cell${cell.name}", parameters, operands | {"Y": f"${cell.name}"})

    def _register(self, register: NetlistRegister) -> None:
        kind, value = "$sdffe" if register.reset_first else "$sdffce", constant(register.reset_value, register.width)
        parameters = {"WIDTH": register.width, "SRST_VALUE": value}
        parameters |= {f"{port}_POLARITY": 1 for port in ("CLK", "EN", "SRST")}
        connections = {"CLK": "\\clk", "D": self._value(register.d), "Q": f"${register.name}"}
        connections |= {"EN": self._value([register.enable]), "SRST": self._value([register.reset])}
        self.lines += cell_lines(kind, f"$register${register.name}", parameters, connections)

    def _memory(self, memory: NetlistMemory) -> None:
        reads, writes = memory.reads, memory.writes
        connections = {
            "RD_CLK": concatenation("\\clk" if read.clocked else "1'0" for read in reads),
            "RD_EN": self._value([read.enable for read in reads]),
            "RD_ADDR": self._value([bit for read in reads for bit in read.address]),
            "RD_DATA": concatenation(f"${chunk}" for read in reads for chunk in read.chunks),
            "WR_EN": self._value([bit for write in writes for bit in write.enables]),
            "WR_ADDR": self._value([bit for write in writes for bit in write.address]),
            "WR_DATA": self._value([bit for write in writes for bit in write.data]),
        }
        shape = {
            **{"size": memory.size, "width": memory.width, "address": len((writes or reads)[0].address)},
            **{"reads": len(reads), "writes": len(writes)},
        }
        other = {
            **dict.fromkeys(("RD_CLK_ENABLE", "RD_CLK_POLARITY"), constants([int(read.clocked) for read in reads], 1)),
            "RD_TRANSPARENCY_MASK": constants([int(shown) for read in reads for shown in read.transparent], 1),
            "INIT": constants(memory.init + [0] * (memory.size - len(memory.init)), memory.width),
            "RD_INIT_VALUE": constants([read.init for read in reads], memory.width),
        }
        self.lines += memory_lines(_identifier(memory.name), connections, **shape, **other)

    def _instance(self, instance: NetlistInstance) -> None:
        parts = {port: self._value(bits) for port, bits in instance.inputs.items()}
        prefix = f"{instance.name}."
        outputs = (source for source in self.netlist.widths if source.startswith(prefix))
        parts |= {source.removeprefix(prefix): f"${source}" for source in outputs}
        connections: dict[str, list[str]] = {"clk": ["\\clk"]}
        for part, value in parts.items():
            connections.setdefault(_part(part)[0], []).append(value)
        whole = {port: concatenation(values) for port, values in connections.items()}
        self.lines += cell_lines(f"\\{instance.module}", _identifier(instance.name), {}, whole)


def _identifier(name: str) -> str:
    """Return the RTLIL of a name; JSON omits the backslash unless the name would look like an internal one of Yosys."""
    return name if name.startswith("\\") else f"\\{name}"


def _part(port: str) -> tuple[str, int]:
    name, _, first = port.removesuffix("]").partition("[")
    return name, int(first or 0)


def _whole(parts: Mapping[str, int]) -> dict[str, int]:
    widths: dict[str, int] = {}
    for port, width in parts.items():
        name, first = _part(port)
        widths[name] = first + width
    return widths
