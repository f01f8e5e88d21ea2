"""Word-level netlist of a module, from Yosys' JSON.

Every value has a *source*: a port, a cell's output, a register, or a word read from a memory. A *bit* is a source and a
position, or a constant. Sources have at most 64 bits, the machine's word: wider registers and bitwise cells are split,
and wide ports are accessed bit by bit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

__all__ = [
    "WORD", "Bit", "Cell", "LanesNetlist", "NetlistInstance", "NetlistMemory", "NetlistReadPort", "NetlistRegister",
    "NetlistWritePort", "Through", "Unsupported", "chunks", "sources_behind",
]  # fmt: skip

WORD = 64
"""Maximum bits of a computed value."""

CHUNK = 32
"""Maximum bits of each part into which a value of more than `WORD` bits is split."""

Bit = tuple[str, int] | int
"""Bit of a netlist: a source and the position of the bit in it, or the constant 0 or 1."""

BITWISE = ("and", "or", "xor", "xnor", "not", "mux", "pmux", "pos")
"""Cells whose result bit n depends only on bit n of the operands (and on a select)."""

CELLS = {
    *BITWISE,
    *("add", "sub", "mul", "neg"),
    *("shl", "shr", "sshl", "sshr", "shift", "shiftx"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
    *("reduce_and", "reduce_or", "reduce_bool", "reduce_xor", "reduce_xnor"),
    *("logic_not", "logic_and", "logic_or"),
}
"""Cells that can be evaluated, besides flip-flops and memories."""

FLIP_FLOPS = ("dff", "dffe", "sdff", "sdffe", "sdffce")


class Unsupported(Exception):
    """A cell that cannot be evaluated as a vector; the message names it and the reason."""


@dataclass
class Cell:
    """Combinational cell, named as its source.

    `kind` is Yosys' type without the dollar sign, `width` the bits of the result. Operands are by input port; `signed`
    names the ports with signed operands.
    """

    name: str
    kind: str
    width: int
    operands: dict[str, list[Bit]]
    signed: frozenset[str] = frozenset()

    def bits(self) -> Iterator[Bit]:
        return chain.from_iterable(self.operands.values())

    def case(self, side: int) -> list[Bit]:
        """Return the input bits of a multiplexer that the select number `side` chooses; -1: its default."""
        return self.operands["A"] if side < 0 else self.operands["B"][side * self.width : (side + 1) * self.width]


@dataclass
class NetlistRegister:
    """Register with optional enable and synchronous reset; with `reset_first` the reset works without the enable."""

    name: str
    width: int
    init: int
    d: list[Bit]
    enable: Bit = 1
    reset: Bit = 0
    reset_value: int = 0
    reset_first: bool = True

    def bits(self) -> Iterator[Bit]:
        return chain(self.d, [self.enable, self.reset])


@dataclass
class NetlistReadPort:
    """Read port of a memory; a clocked read port keeps its word while `enable` is low."""

    clocked: bool
    enable: Bit
    address: list[Bit]
    chunks: list[str]
    init: int
    transparent: list[bool]

    def bits(self) -> Iterator[Bit]:
        return chain([self.enable], self.address)


@dataclass
class NetlistWritePort:
    """Write port of a memory, with one enable per bit of the word."""

    enables: list[Bit]
    address: list[Bit]
    data: list[Bit]

    def bits(self) -> Iterator[Bit]:
        return chain(self.enables, self.address, self.data)


@dataclass
class NetlistMemory:
    """Memory; a port's word is split into its sources `chunks`, each of at most `CHUNK` bits."""

    name: str
    size: int
    width: int
    init: list[int]
    reads: list[NetlistReadPort]
    writes: list[NetlistWritePort]

    def chunk_widths(self) -> list[int]:
        return [min(CHUNK, self.width - first) for first in range(0, self.width, CHUNK)]

    def bits(self) -> Iterator[Bit]:
        return chain.from_iterable(port.bits() for port in (*self.reads, *self.writes))


@dataclass
class NetlistInstance:
    """Instance of a module that is not flattened; its outputs are sources named `name.port`."""

    name: str
    module: str
    inputs: dict[str, list[Bit]]


@dataclass
class LanesNetlist:
    """Netlist of a module.

    Attributes:
        inputs: widths of input ports except `clk`.
        outputs: bits of output ports.
        widths: width of every source; ports and instance outputs may exceed `WORD`.
    """

    name: str
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, list[Bit]] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    registers: dict[str, NetlistRegister] = field(default_factory=dict)
    memories: dict[str, NetlistMemory] = field(default_factory=dict)
    instances: dict[str, NetlistInstance] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, modules: Mapping[str, dict], *, lane: bool) -> "LanesNetlist":
        """Return a module's netlist from `write_json`; `lane` splits wide ports; Unsupported for unknown cells."""
        return _Reader(name, modules, lane).netlist


def chunks(port: str, bits: list) -> list[tuple[str, list]]:
    """Return (name, bits) of the parts of a port; a port of at most `WORD` bits is a single part."""
    if len(bits) <= WORD:
        return [(port, bits)]
    return [(f"{port}[{first}]", bits[first : first + CHUNK]) for first in range(0, len(bits), CHUNK)]


Through = Callable[[str], Iterable[Bit] | None]
"""Returns the bits that a source depends on within a cycle; None for a port or state."""


def sources_behind(bits: Iterable[Bit], through: Through) -> set[str]:
    """Return the sources for which `through` returns None, of those that bits depend on."""
    found: set[str] = set()
    seen: set[str] = set()
    todo = [bit for bit in bits if isinstance(bit, tuple)]
    while todo:
        source = todo.pop()[0]
        if source in seen:
            continue
        seen.add(source)
        further = through(source)
        if further is None:
            found.add(source)
        else:
            todo += [bit for bit in further if isinstance(bit, tuple)]
    return found


def _number(bits: str) -> int:
    """Return the value of a constant; undefined bits count as 0."""
    return int(bits.replace("x", "0").replace("z", "0") or "0", 2)


def _part(digits: str, number: int, width: int) -> str:
    """Return the digits of word `number`, counted from the right."""
    return digits[len(digits) - (number + 1) * width : len(digits) - number * width]


class _Reader:
    def __init__(self, name: str, modules: Mapping[str, dict], lane: bool):
        self.lane = lane
        self.modules = modules
        self.module = modules[name]
        self.netlist = LanesNetlist(name)
        self.bits: dict[int, Bit] = {}
        self.inits: dict[int, str] = {}
        for net in self.module["netnames"].values():
            init = net["attributes"].get("init", "")
            self.inits.update(zip(net["bits"], reversed(init), strict=False))
        [self.clock] = self.module["ports"].get("clk", {"bits": [None]})["bits"]
        self._sources()
        self._cells()
        self.netlist.outputs.update({part: self.of(bits) for part, bits in self.ports("output")})

    def ports(self, direction: str) -> Iterator[tuple[str, list]]:
        """Yield name and bits of each port of a direction except `clk`; a lane's wide ports are split."""
        for port, what in self.module["ports"].items():
            if what["direction"] == direction and port != "clk":
                yield from chunks(port, what["bits"]) if self.lane else [(port, what["bits"])]

    def of(self, bits: list) -> list[Bit]:
        return [self.bit(bit) for bit in bits]

    def bit(self, bit) -> Bit:
        if isinstance(bit, str):
            return int(bit == "1")
        if bit not in self.bits:
            raise Unsupported(f"{self.netlist.name}: net {bit} has no driver")
        return self.bits[bit]

    def name(self, source: str, bits: list) -> None:
        self.netlist.widths[source] = len(bits)
        for place, bit in enumerate(bits):
            self.bits[bit] = (source, place)

    def _sources(self) -> None:
        for part, bits in self.ports("input"):
            self.netlist.inputs[part] = len(bits)
            self.name(part, bits)
        self.parts: dict[str, list[slice]] = {}
        for name, cell in self.module["cells"].items():
            kind, connections = cell["type"].removeprefix("$"), cell["connections"]
            if cell["type"] in self.modules:
                for port, bits in connections.items():
                    if cell["port_directions"][port] == "output":
                        for part, some in chunks(port, bits):
                            self.name(f"{name}.{part}", some)
            elif kind == "mem_v2":
                self._words(name, cell)
            elif kind in FLIP_FLOPS:
                self._named_parts(name, connections["Q"])
            elif kind in BITWISE:
                self._named_parts(name, connections["Y"])
            elif kind in CELLS:
                if len(connections["Y"]) > WORD:
                    raise Unsupported(f"{self.netlist.name}: {name} ({kind}) has {len(connections['Y'])} bits")
                self.name(name, connections["Y"])
            else:
                raise Unsupported(f"{self.netlist.name}: cannot evaluate {name}, a cell {cell['type']}")

    def _named_parts(self, name: str, bits: list) -> None:
        """Name the source of the bits that a cell drives; too many bits get several sources."""
        size = len(bits) if len(bits) <= WORD else CHUNK
        self.parts[name] = [slice(n, min(n + size, len(bits))) for n in range(0, len(bits), size)]
        for part, some in chunks(name, bits):
            self.name(part, some)

    def _words(self, name: str, cell: dict) -> None:
        width = _number(cell["parameters"]["WIDTH"])
        data = cell["connections"]["RD_DATA"]
        for port in range(len(data) // width):
            word = data[port * width : (port + 1) * width]
            for chunk, first in enumerate(range(0, width, CHUNK)):
                self.name(f"{name}.{port}.{chunk}", word[first : first + CHUNK])

    def _cells(self) -> None:
        for name, cell in self.module["cells"].items():
            kind = cell["type"].removeprefix("$")
            if cell["type"] in self.modules:
                inputs = {
                    part: self.of(some)
                    for port, bits in cell["connections"].items()
                    if cell["port_directions"][port] == "input" and port != "clk"
                    for part, some in chunks(port, bits)
                }
                if cell["connections"]["clk"] != [self.clock]:
                    raise Unsupported(f"{self.netlist.name}: {name} has a separate clock")
                self.netlist.instances[name] = NetlistInstance(name, cell["type"], inputs)
            elif kind == "mem_v2":
                self._memory(name, cell)
            elif kind in FLIP_FLOPS:
                self._register(name, kind, cell)
            else:
                self._cell(name, kind, cell)

    def _on_clock(self, name: str, bits: list, polarity: str) -> None:
        if bits != [self.clock] or set(polarity[-1:]) != {"1"}:
            raise Unsupported(f"{self.netlist.name}: {name} is not clocked by the rising edge of clk")

    def _register(self, name: str, kind: str, cell: dict) -> None:
        connections, parameters = cell["connections"], cell["parameters"]
        self._on_clock(name, connections["CLK"], parameters["CLK_POLARITY"])
        enable = self._active(name, "EN", cell) if "EN" in connections else 1
        reset = self._active(name, "SRST", cell) if "SRST" in connections else 0
        value = _number(parameters.get("SRST_VALUE", "0"))
        d = self.of(connections["D"])
        init = _number("".join(self.inits.get(bit, "0") for bit in reversed(connections["Q"])))
        for part in self.parts[name]:
            source = name if len(self.parts[name]) == 1 else f"{name}[{part.start}]"
            width = part.stop - part.start
            first, after = (word >> part.start & (1 << width) - 1 for word in (init, value))
            inputs = d[part], enable, reset, after
            self.netlist.registers[source] = NetlistRegister(source, width, first, *inputs, kind != "sdffce")

    def _active(self, name: str, port: str, cell: dict) -> Bit:
        """Return the bit of a flip-flop's control input, inverted if the input is active low."""
        bit = self.bit(cell["connections"][port][0])
        if _number(cell["parameters"][f"{port}_POLARITY"]):
            return bit
        source = f"{name}.{port}"
        self.netlist.cells[source] = Cell(source, "not", 1, {"A": [bit]})
        self.netlist.widths[source] = 1
        return source, 0

    def _cell(self, name: str, kind: str, cell: dict) -> None:
        connections, parameters = cell["connections"], cell["parameters"]
        operands = {port: self.of(bits) for port, bits in connections.items() if port != "Y"}
        signed = frozenset(port for port in "AB" if _number(parameters.get(f"{port}_SIGNED", "0")))
        width = len(connections["Y"])
        parts = self.parts.get(name, [slice(0, width)])
        if len(parts) == 1:
            self.netlist.cells[name] = Cell(name, kind, width, operands, signed)
            return
        # Wider than a machine word, but bitwise, so it can be split.
        wide = {port: self._extended(bits, width, signed) for port, bits in operands.items() if port in "AB"}
        for part in parts:
            source = f"{name}[{part.start}]"
            of_part = dict(operands)
            for port, bits in wide.items():
                if kind == "pmux" and port == "B":
                    of_part[port] = [bit for n in range(0, len(bits), width) for bit in bits[n : n + width][part]]
                else:
                    of_part[port] = bits[part]
            self.netlist.cells[source] = Cell(source, kind, part.stop - part.start, of_part)

    def _extended(self, bits: list[Bit], width: int, signed: frozenset[str]) -> list[Bit]:
        if len(bits) >= width:
            return bits
        return bits + [bits[-1] if signed == {"A", "B"} or signed == {"A"} else 0] * (width - len(bits))

    def _memory(self, name: str, cell: dict) -> None:
        connections, parameters = cell["connections"], cell["parameters"]
        width, size = _number(parameters["WIDTH"]), _number(parameters["SIZE"])
        address_bits = _number(parameters["ABITS"])
        read_count, write_count = _number(parameters["RD_PORTS"]), _number(parameters["WR_PORTS"])
        for option in ("RD_WIDE_CONTINUATION", "WR_WIDE_CONTINUATION", "WR_PRIORITY_MASK"):
            if _number(parameters[option]):
                raise Unsupported(f"{self.netlist.name}: memory {name} has {option}")
        if any(bit not in ("0", "x") for port in ("RD_SRST", "RD_ARST") for bit in connections[port]):
            raise Unsupported(f"{self.netlist.name}: memory {name} has a reset of its read data")
        if _number(parameters["OFFSET"]):
            raise Unsupported(f"{self.netlist.name}: memory {name} does not begin at address 0")
        transparent = parameters["RD_TRANSPARENCY_MASK"][::-1]
        clocked = parameters["RD_CLK_ENABLE"][::-1]
        reads = []
        chunks = range(-(-width // CHUNK))
        for port in range(read_count):
            if clocked[port] == "1":
                self._on_clock(name, [connections["RD_CLK"][port]], parameters["RD_CLK_POLARITY"][-1 - port])
            reads.append(
                NetlistReadPort(
                    clocked=clocked[port] == "1",
                    enable=self.bit(connections["RD_EN"][port]),
                    address=self.of(connections["RD_ADDR"][port * address_bits : (port + 1) * address_bits]),
                    chunks=[f"{name}.{port}.{chunk}" for chunk in chunks],
                    init=_number(_part(parameters["RD_INIT_VALUE"], port, width)),
                    transparent=[
                        transparent[port * write_count + write : port * write_count + write + 1] == "1"
                        for write in range(write_count)
                    ],
                )
            )
        writes = []
        for port in range(write_count):
            self._on_clock(name, [connections["WR_CLK"][port]], parameters["WR_CLK_POLARITY"][-1 - port])
            address = connections["WR_ADDR"][port * address_bits : (port + 1) * address_bits]
            enables, data = (connections[one][port * width : (port + 1) * width] for one in ("WR_EN", "WR_DATA"))
            writes.append(NetlistWritePort(*map(self.of, (enables, address, data))))
        contents = parameters["INIT"]
        count = min(size, len(contents) // width) if "1" in contents else 0
        words = [_number(_part(contents, n, width)) for n in range(count)]
        self.netlist.memories[name] = NetlistMemory(name, size, width, words, reads, writes)
