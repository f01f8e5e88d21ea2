"""Delay lines of a block as lanes: ring memories, which write a word in each cycle and read the one that it replaces.

As single memories, the lines in front of an array of 128 rows took as long as all else that its block does itself.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from neuroncore_rtl.run.lanes.lane_code import LaneCode
from neuroncore_rtl.run.lanes.netlist import (
    CHUNK,
    Bit,
    LanesNetlist,
    NetlistInstance,
    NetlistMemory,
    NetlistRegister,
    sources_behind,
)
from neuroncore_rtl.run.lanes.values import runs

__all__ = ["DelayCode", "take_delay_lines"]

AHEAD = 16
"""Distance in lines of the word that is prefetched: the state of a large array evicts words from the second cache."""

_RESULTS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "eq": lambda a, b: a == b,
    "logic_not": lambda a: not a,
    "mux": lambda a, b, s: b if s else a,
}
"""Results of a counter's cells by their operands."""


class DelayCode(LaneCode):
    """C++ code of the delay lines that have words of the same fields.

    `fields` are their widths, `slots` the size of each ring. Ports: `i0`, ... and `o0`, ..., one for each field, and
    `reset`, which sets the addresses to 0.
    """

    def __init__(self, name: str, fields: Sequence[int], slots: Sequence[int]):
        inputs = {f"i{n}": width for n, width in enumerate(fields)}
        netlist = LanesNetlist(name, {**inputs, "reset": 1}, widths={**inputs, "reset": 1})
        for n, width in enumerate(fields):
            given, shown = (_all(f"{kind}{n}", width) for kind in "ir")
            netlist.widths[f"r{n}"] = width
            netlist.registers[f"r{n}"] = NetlistRegister(f"r{n}", width, 0, given)
            netlist.outputs[f"o{n}"] = shown
        super().__init__(netlist, len(slots), {"reset"})
        self.slots = slots

    def _structure(self) -> None:
        super()._structure()
        size = f"{sum(self.slots)}][{len(self.netlist.outputs)}"
        self.lines.insert(-1, f"  alignas(64) uint32_t ring[{size}], at[{len(self.slots) + AHEAD}];")

    def fused(self) -> bool:
        return False

    def _outputs(self) -> None:
        """Emit nothing, because all outputs are registers."""

    def _step(self) -> None:
        self.line(f"static void {self.name}_part({self.name}& s, int, int) {{", 0)
        firsts = [*accumulate(self.slots, initial=0)]
        tables = {"slots": self.slots, "firsts": firsts[:-1]}
        for name, numbers in tables.items():
            self.line(f"static const uint32_t {name}[{len(self.slots) + AHEAD}] = {{{', '.join(map(str, numbers))}}};")
        self.line(f"for (int k = 0; k < {len(self.slots)}; k++) {{")
        self.line(f"__builtin_prefetch(s.ring[firsts[k + {AHEAD}] + s.at[k + {AHEAD}]]);", 2)
        self.line("uint32_t* const word = s.ring[firsts[k] + s.at[k]];", 2)
        for n in range(len(self.netlist.outputs)):
            self.line(f"s.{self.port(f'o{n}')}[k] = word[{n}], word[{n}] = s.{self.port(f'i{n}')}[k];", 2)
        self.line(f"s.at[k] = s.{self.port('reset')} || s.at[k] + 1 == slots[k] ? 0 : s.at[k] + 1;", 2)
        self.line("}")
        self.line("}", 0)
        self.line(f"static void {self.name}_end({self.name}&) {{}}", 0)
        self.line(f"static void {self.name}_settle({self.name}&) {{}}", 0)


def _all(source: str, width: int) -> list[Bit]:
    return [(source, place) for place in range(width)]


def take_delay_lines(netlist: LanesNetlist) -> dict[str, int]:
    """Replace the delay lines of a netlist by instances, and remove the counters that no other cell needs.

    Return the size of each line's ring. Lines with the same fields are of the same module, which exists only here.
    Fields have at most `CHUNK` bits and end where the source of the bits changes.
    """
    slots: dict[str, int] = {}
    moved: dict[Bit, Bit] = {}
    for name, memory in [*netlist.memories.items()]:
        reset = _reset_of_ring(netlist, memory)
        if reset is None:
            continue
        data, chunks = memory.writes[0].data, memory.reads[0].chunks
        cuts = [0]
        for _, _, length, place in runs(data):
            if place + length - cuts[-1] > CHUNK:
                cuts += range(place or CHUNK, place + length, CHUNK)
        fields = [data[first:last] for first, last in pairwise([*cuts, len(data)])]
        inputs = {f"i{n}": field for n, field in enumerate(fields)}
        module = "_".join(["delay", *(str(len(field)) for field in fields)])
        netlist.instances[name] = NetlistInstance(name, module, {**inputs, "reset": [reset]})
        outputs = [bit for n, field in enumerate(fields) for bit in _all(f"{name}.o{n}", len(field))]
        moved |= {(chunks[at // CHUNK], at % CHUNK): bit for at, bit in enumerate(outputs)}
        slots[name] = memory.size
        del netlist.memories[name]
        for chunk in chunks:
            del netlist.widths[chunk]
        netlist.widths |= {f"{name}.o{n}": len(field) for n, field in enumerate(fields)}
    _rename(netlist, moved)
    _remove_unused(netlist)
    return slots


def _reset_of_ring(netlist: LanesNetlist, memory: NetlistMemory) -> Bit | None:
    """Return the bit that resets the address of a ring memory; None for any other memory."""
    if len(memory.reads) != 1 or len(memory.writes) != 1 or memory.init:
        return None
    [read], [write] = memory.reads, memory.writes
    source = read.address[0][0] if read.address and isinstance(read.address[0], tuple) else ""
    slot = netlist.registers.get(source)
    whole = slot is not None and read.address == write.address == _all(source, slot.width)
    always = read.clocked and {read.enable, *write.enables} == {1}
    if slot is None or not whole or not always or read.init or any(read.transparent) or slot.enable != 1:
        return None
    cells = netlist.cells
    resets = sources_behind(slot.bits(), lambda name: cells[name].bits() if name in cells else None) - {source}
    if len(resets) != 1 or netlist.widths[reset := min(resets)] != 1:
        return None
    try:
        counted = [[_next(netlist, slot, at, reset, level) for at in range(memory.size)] for level in range(2)]
    except KeyError:
        return None
    return (reset, 0) if counted == [[*range(1, memory.size), 0], [0] * memory.size] else None


def _next(netlist: LanesNetlist, counter: NetlistRegister, at: int, reset: str, level: int) -> int:
    """Return the value of a counter after `at`, with the level of its reset; KeyError for cells of no counter."""
    words = {counter.name: at, reset: level}

    def value(bits: Sequence[Bit]) -> int:
        return sum((bit if isinstance(bit, int) else source(bit[0]) >> bit[1] & 1) << n for n, bit in enumerate(bits))

    def source(name: str) -> int:
        if name not in words:
            cell = netlist.cells[name]
            operands = (value(cell.operands[port]) for port in "ABS" if port in cell.operands)
            words[name] = int(_RESULTS[cell.kind](*operands)) & (1 << cell.width) - 1
        return words[name]

    return counter.reset_value if value([counter.reset]) else value(counter.d)


def _rename(netlist: LanesNetlist, moved: dict[Bit, Bit]) -> None:
    def renamed(bits: Iterable[Bit]) -> list[Bit]:
        return [moved.get(bit, bit) for bit in bits]

    netlist.outputs = {port: renamed(bits) for port, bits in netlist.outputs.items()}
    for cell in netlist.cells.values():
        cell.operands = {port: renamed(bits) for port, bits in cell.operands.items()}
    for instance in netlist.instances.values():
        instance.inputs = {port: renamed(bits) for port, bits in instance.inputs.items()}
    for register in netlist.registers.values():
        register.d = renamed(register.d)
        register.enable, register.reset = renamed([register.enable, register.reset])
    for memory in netlist.memories.values():
        for read in memory.reads:
            [read.enable, *read.address] = renamed([read.enable, *read.address])
        for write in memory.writes:
            write.enables, write.address, write.data = map(renamed, (write.enables, write.address, write.data))


def _remove_unused(netlist: LanesNetlist) -> None:
    """Remove the registers that only registers like them depend on."""
    todo: list[Bit] = [bit for bits in netlist.outputs.values() for bit in bits]
    todo += [bit for instance in netlist.instances.values() for bits in instance.inputs.values() for bit in bits]
    todo += [bit for memory in netlist.memories.values() for bit in memory.bits()]
    used: set[str] = set()
    while todo:
        bit = todo.pop()
        driver = None if isinstance(bit, int) else netlist.cells.get(bit[0]) or netlist.registers.get(bit[0])
        if driver is not None and driver.name not in used:
            used.add(driver.name)
            todo += driver.bits()
    for name in [*netlist.registers]:
        if name not in used:
            del netlist.registers[name], netlist.widths[name]
