"""C++ code of a lane: a structure with the state of all instances, and functions that step them.

State and ports are arrays over the instances, except *uniform* ones: they are equal in all instances because the inputs
that they depend on are. Uniform values are evaluated once per step, and a uniform select is a branch.
"""

from collections.abc import Iterable, Iterator

from neuroncore_rtl.run.lanes.netlist import (
    Bit,
    LanesNetlist,
    NetlistMemory,
    NetlistReadPort,
    NetlistRegister,
    Through,
    Unsupported,
    sources_behind,
)
from neuroncore_rtl.run.lanes.rows import RegularRow
from neuroncore_rtl.run.lanes.schedule import Scope, Switch, schedule, switch_of
from neuroncore_rtl.run.lanes.values import Expression, Values, word

__all__ = ["GROUP", "LaneCode", "ctype"]

GROUP = 16
"""Granularity of instance counts: elements of the widest vector."""

PAGE = 1024
"""Words of a page of memory: the same places of pages compete for a set of the cache."""

AHEAD = 512
"""Words between arrays of a page or more: a processor loads what follows a loop, which another thread steps."""

GRANULES = 32
"""Most granules of a loop over instances."""

GRANULE = 1 << 14
"""Least work of a granule, in cells of all its instances: half a microsecond, twice what sharing costs."""


def ctype(width: int) -> str:
    """Return the C++ type that holds `width` bits."""
    return f"uint{word(width)}_t"


class LaneCode:
    """C++ code that evaluates all instances (lanes) of one module.

    Arguments:
        uniform_inputs: input ports that have the same value in all instances.

    Attributes:
        name: name of the structure and prefix of its functions: `_part` steps a range of instances, `_end` then the
            uniform state, and `_settle` updates outputs from the state and the late inputs.
        late: inputs that outputs depend on within a cycle.
        passed: for inputs that most instances get from another one, which stores them for the next step: the output,
            and how many places before the input's instance its instance is.
        constants: for these inputs, the instances that have a constant instead, and its C++ value. It replaces the
            value passed to such an instance by the thread that passed it, as memory of another thread is slow.
        boxes: outputs that the block reads of a few instances, far apart. The thread that steps these copies the
            outputs to an array, which costs the threads fewer lines of the cache.
        granules: ranges of instances that threads divide among them; 0 if sharing would not pay.
    """

    def __init__(self, netlist: LanesNetlist, count: int, uniform_inputs: set[str]):
        self.netlist = netlist
        self.count = -(-count // GROUP) * GROUP
        self.name = f"lane_{netlist.name}"
        self.places = {source: f"x{number}" for number, source in enumerate(netlist.widths)}
        self.uniform = self._uniform(uniform_inputs)
        self.late = self.behind(bit for bits in netlist.outputs.values() for bit in bits) & set(netlist.inputs)
        granules = min(GRANULES, self.count // GROUP, len(netlist.cells) * self.count // GRANULE)
        self.granules = granules if granules > 1 else 0
        self.passed: dict[str, tuple[str, int]] = {}
        self.constants: dict[str, dict[RegularRow, str]] = {}
        self.boxes: dict[str, RegularRow] = {}
        self.lines: list[str] = []

    def _uniform(self, inputs: set[str]) -> set[str]:
        """Return the largest set of sources that depend only on uniform inputs and on sources of the set."""
        netlist = self.netlist
        uniform = set(netlist.widths) - (set(netlist.inputs) - inputs)

        def same(bits) -> bool:
            return all(isinstance(bit, int) or bit[0] in uniform for bit in bits)

        changed = True
        while changed:
            changed = False
            for name, driver in [*netlist.cells.items(), *netlist.registers.items()]:
                if name in uniform and not same(driver.bits()):
                    uniform.discard(name)
                    changed = True
            for memory in netlist.memories.values():
                written_alike = all(same(write.bits()) for write in memory.writes)
                for read in memory.reads:
                    if read.chunks[0] in uniform and not (written_alike and same(read.bits())):
                        uniform.difference_update(read.chunks)
                        changed = True
        return uniform

    def is_uniform(self, bit: Bit) -> bool:
        return isinstance(bit, int) or bit[0] in self.uniform

    def memory_is_uniform(self, memory: NetlistMemory) -> bool:
        return all(self.is_uniform(bit) for write in memory.writes for bit in write.bits())

    def behind(self, bits: Iterable[Bit], through: Through | None = None) -> set[str]:
        """Return the ports, registers and read words that bits depend on within a cycle.

        `through` replaces `_through`, which returns the bits that a source depends on; None if it ends the search.
        """
        return sources_behind(bits, through or self._through)

    def _through(self, source: str) -> Iterable[Bit] | None:
        cell = self.netlist.cells.get(source)
        return None if cell is None else cell.bits()

    def _state(self, source: str, first: int, length: int) -> tuple[Expression, int, int]:
        """Return a port's, register's or evaluated cell's C++ expression, the first bit in it, and its width."""
        width = self.netlist.widths[source]
        place = self.places[source]
        if source in self.netlist.cells:
            return Expression(place, word(width), source not in self.uniform), first, width
        if source in self.uniform:
            return Expression(f"s.{place}", word(width), False), first, width
        return Expression(f"load(&s.{place}[k])", word(width), True), first, width

    def port(self, name: str) -> str:
        if name in self.netlist.inputs:
            return self.places[name]
        source = self.register_of(name)
        return self.places[source] if source else f"o_{list(self.netlist.outputs).index(name)}"

    def register_of(self, output: str) -> str | None:
        """Return the register that an output port equals in every cycle; None if there is no such register."""
        bits = self.netlist.outputs[output]
        source = bits[0][0] if isinstance(bits[0], tuple) else None
        if source is None or source in self.netlist.cells or len(bits) != self.netlist.widths[source]:
            return None
        whole = bits == [(source, place) for place in range(len(bits))]
        return source if whole and source not in self.netlist.inputs else None

    def output_is_uniform(self, name: str) -> bool:
        return all(map(self.is_uniform, self.netlist.outputs[name]))

    def text(self) -> str:
        self.values = Values(self.netlist.name, self._state)
        self.lines = []
        self._structure()
        self._init()
        self._outputs()
        self._step()
        return "\n".join(self.lines) + "\n"

    def line(self, text: str, depth: int = 1) -> None:
        self.lines.append("  " * depth + text)

    def _member(self, width: int, name: str, uniform: bool) -> None:
        self.line(f"{ctype(width)} {name};" if uniform else f"alignas(64) {ctype(width)} {name}[{self._room()}];")

    def _room(self) -> int:
        # After pages, an extra group keeps the values of one instance in different sets of the cache.
        return self.count + GROUP * (self.count % PAGE == 0) + AHEAD * (self.count >= PAGE)

    def _structure(self) -> None:
        netlist = self.netlist
        self.line(f"struct {self.name} {{", 0)
        for port, (_, distance) in self.passed.items():
            kind, place = ctype(netlist.inputs[port]), self.places[port]
            self.line(f"{kind} *{place}, *next_{place};  // of this and of the next step")
            self.line(f"alignas(64) {kind} room_{place}[2][{self._room() + distance}];")
        for source, width in netlist.widths.items():
            if source not in netlist.cells and source not in self.passed:
                self._member(width, self.places[source], source in self.uniform)
        for output, bits in netlist.outputs.items():
            if not self.register_of(output):
                self._member(len(bits), self.port(output), self.output_is_uniform(output))
        for output, (_, count, *_) in self.boxes.items():
            self.line(f"alignas(64) {ctype(len(netlist.outputs[output]))} box_{self.port(output)}[{count}];")
        for number, memory in enumerate(netlist.memories.values()):
            each = "" if self.memory_is_uniform(memory) else f"[{self.count}]"
            self.line(f"alignas(64) uint32_t m{number}[{memory.size}][{len(memory.chunk_widths())}]{each};")
        self.line("};", 0)

    def _init(self) -> None:
        netlist = self.netlist
        self.line(f"static void {self.name}_init({self.name}& s) {{", 0)
        for place in map(self.port, self.passed):
            self.line(f"s.{place} = s.room_{place}[0];")
            self.line(f"s.next_{place} = s.room_{place}[1];")
        for source, register in netlist.registers.items():
            self._init_source(source, register.init)
        for number, memory in self._memories():
            for read in memory.reads:
                for chunk, source in enumerate(read.chunks):
                    self._init_source(source, read.init >> 32 * chunk & (1 << netlist.widths[source]) - 1)
            if not memory.init:
                continue
            chunks = memory.chunk_widths()
            words = ", ".join(
                f"{value >> 32 * chunk & 0xFFFFFFFF:#x}u" for value in memory.init for chunk in range(len(chunks))
            )
            self.line(f"static const uint32_t words{number}[{len(memory.init)}][{len(chunks)}] = {{{words}}};")
            where = f"for (int a = 0; a < {len(memory.init)}; a++) for (int c = 0; c < {len(chunks)}; c++)"
            if self.memory_is_uniform(memory):
                self.line(f"{where} s.m{number}[a][c] = words{number}[a][c];")
            else:
                self.line(f"{where} for (int k = 0; k < {self.count}; k++) s.m{number}[a][c][k] = words{number}[a][c];")
        self.line("}", 0)

    def _init_source(self, source: str, value: int) -> None:
        if value:
            of_each = "" if source in self.uniform else "[k]"
            loop = f"for (int k = 0; k < {self.count}; k++) " if of_each else ""
            kind = ctype(self.netlist.widths[source])
            self.line(f"{loop}s.{self.places[source]}{of_each} = ({kind}){value:#x}ull;")

    def _outputs(self) -> None:
        self.line(f"INLINE void {self.name}_outputs({self.name}& s, int k) {{", 0)
        ports = [port for port in self.netlist.outputs if not self.register_of(port)]
        sinks = [bit for port in ports for bit in self.netlist.outputs[port]]
        self._body(schedule(self.netlist.cells, sinks, self.is_uniform), 1)
        for port in ports:
            bits = self.netlist.outputs[port]
            value = self.values.bits(bits, word(len(bits)))
            if self.output_is_uniform(port):
                self.line(f"s.{self.port(port)} = {value.code};")
            else:
                self._store(self.port(port), value.as_vector().code, 1)
        self.line("}", 0)

    def _store(self, place: str, value: str, depth: int) -> None:
        self.line(f"store(&s.{place}[k], {value});", depth)
        for port, (output, distance) in self.passed.items():
            if output == place:
                self.line(f"store(&s.next_{self.port(port)}[k + {distance}], {value});", depth)

    def _body(self, scope: Scope, depth: int) -> None:
        for name in scope.cells:
            cell = self.netlist.cells[name]
            kind = ctype(cell.width) if name in self.uniform else f"V{word(cell.width)}"
            if name not in scope.branches:
                self.line(f"const {kind} {self.places[name]} = {self._word(name, self.values.cell(cell))};", depth)
                continue
            self.line(f"{kind} {self.places[name]};", depth)
            switch = switch_of(cell, self.netlist.cells)
            if switch:
                self._switch(name, switch, scope.branches[name], depth)
                continue
            opening = ""
            for side, inner in scope.branches[name].items():
                select = "" if side < 0 else f"if ({self.values.bits([cell.operands['S'][side]], 32).code}) "
                self.line(f"{opening}{select}{{", depth)
                self._side(name, side, inner, depth + 1)
                opening = "} else "
            self.line("}", depth)

    def _switch(self, name: str, switch: Switch, sides: dict[int, Scope], depth: int) -> None:
        self.line(f"switch ({self.values.bits(list(switch.bits), 32).code}) {{", depth)
        for side, inner in sides.items():
            self.line("default: {" if side < 0 else f"case {switch.values[side]:#x}u: {{", depth)
            self._side(name, side, inner, depth + 1, " break; }")
        self.line("}", depth)

    def _side(self, name: str, side: int, scope: Scope, depth: int, end: str = "") -> None:
        """Emit the evaluation of one side of a multiplexer, and the text `end`."""
        self._body(scope, depth)
        cell = self.netlist.cells[name]
        value = self._word(name, self.values.bits(cell.case(side), word(cell.width)))
        self.line(f"{self.places[name]} = {value};{end}", depth)

    def _word(self, name: str, value: Expression) -> str:
        """Return the C++ expression of a source's value: a vector, or a scalar if the source is uniform."""
        return value.code if name in self.uniform else value.as_vector().code

    def _step(self) -> None:
        """Emit the functions that execute one clock cycle.

        `_part` evaluates uniform cells, then all other cells, state and outputs, for one vector of instances at a time.
        `_end` changes the uniform state, which all parts read.
        """
        netlist = self.netlist
        registers = netlist.registers.values()
        varying = [register for register in registers if register.name not in self.uniform]
        common = [register for register in registers if register.name in self.uniform]
        sinks = [bit for register in varying for bit in register.bits()]
        sinks += [bit for memory in netlist.memories.values() for bit in self._read_bits(memory, False)]
        guarded = {
            (number, port): [*write.bits()]
            for number, memory in self._memories()
            if not self.memory_is_uniform(memory)
            for port, write in enumerate(memory.writes)
        }
        guards = [bit for (number, port) in guarded for bit in self._guard(number, port)]
        self.needed = self.behind([*sinks, *(bit for bits in guarded.values() for bit in bits)])
        self.line(f"static void {self.name}_part({self.name}& s, int first, int last) {{", 0)

        cells = {name: cell for name, cell in netlist.cells.items() if name not in self.uniform}
        inner = schedule(cells, sinks, self.is_uniform, guarded, netlist.cells)
        used = [
            *self._scope_bits(inner, sinks),
            *(b for key, scope in inner.guarded.items() for b in self._scope_bits(scope, guarded[key])),
        ]
        self._uniform_body([bit for bit in [*used, *guards] if self.is_uniform(bit)])
        self.line("const int low = first < last ? first : last, high = first < last ? last : first;")
        self.line("for (int n = 0; n < high - low; n += WIDTH) {")
        self.line("const int k = first < last ? low + n : high - WIDTH - n;", 2)
        self._body(inner, 2)
        for register in varying:
            self.line(f"const V{word(register.width)} n_{self.places[register.name]} = {self._next(register)};", 2)
        words = [place for number, memory in self._memories() for place in self._reads(number, memory, False, 2)]
        for number, memory in self._memories():
            self._writes(number, memory, False, 2, inner)
        for place in [*(self.places[register.name] for register in varying), *words]:
            self._store(place, f"n_{place}", 2)
        if self.fused():
            self.line(f"{self.name}_outputs(s, k);", 2)
        self.line("}")
        for port, (_, distance) in self.passed.items():
            for row, value in self.constants[port].items():
                self.line(f"{self._over(row, distance)} s.next_{self.port(port)}[n] = {value};")
        for port, row in self.boxes.items():
            self.line(f"{self._over(row, 0)} s.box_{self.port(port)}[n / {row.stride}] = s.{self.port(port)}[n];")
        self.line("}", 0)

        self.line(f"static void {self.name}_end({self.name}& s) {{", 0)
        uniform_sinks = [bit for register in common for bit in register.bits()]
        for memory in netlist.memories.values():
            uniform_sinks += self._read_bits(memory, True)
            if self.memory_is_uniform(memory):
                uniform_sinks += [bit for write in memory.writes for bit in write.bits()]
        self._uniform_body(uniform_sinks)
        self._end_uniform(common)
        self.line("}", 0)
        body = "" if self.fused() else f"for (int k = 0; k < {self.count}; k += WIDTH) {self.name}_outputs(s, k);"
        self.line(f"static void {self.name}_settle({self.name}& s) {{ {body} }}", 0)

    def _over(self, row: RegularRow, distance: int) -> str:
        """Return the head of a loop over the instances of a row that are `distance` after one from `low` to `high`."""
        end = f"n < high + {distance} && n < {row.first + row.count * row.stride}"
        return f"for (int n = from(low + {distance}, {row.first}, {row.stride}); {end}; n += {row.stride})"

    def _uniform_body(self, sinks: list[Bit]) -> None:
        cells = {name: cell for name, cell in self.netlist.cells.items() if name in self.uniform}
        self._body(schedule(cells, sinks, lambda bit: True), 1)

    def _end_uniform(self, registers: Iterable[NetlistRegister]) -> None:
        """Emit the code of a clock edge for the registers and memories that are uniform."""
        places = []
        for register in registers:
            places.append(self.places[register.name])
            self.line(f"const {ctype(register.width)} n_{places[-1]} = {self._next(register)};")
        for number, memory in self._memories():
            places += self._reads(number, memory, True, 1)
        for number, memory in self._memories():
            self._writes(number, memory, True, 1)
        for place in places:
            self.line(f"s.{place} = n_{place};")

    def fused(self) -> bool:
        """Return whether the outputs are computed with the step, directly from the new state in vector registers."""
        state = self.behind(bit for bits in self.netlist.outputs.values() for bit in bits)
        return not self.late and not any(source in self.uniform for source in state)

    def _scope_bits(self, scope: Scope, sinks: list[Bit]) -> Iterator[Bit]:
        yield from sinks
        for name in scope.cells:
            cell = self.netlist.cells[name]
            switch = switch_of(cell, self.netlist.cells) if name in scope.branches else None
            yield from (*cell.operands["A"], *cell.operands["B"], *switch.bits) if switch else cell.bits()
            for inner in scope.branches.get(name, {}).values():
                yield from self._scope_bits(inner, [])

    def _read_bits(self, memory: NetlistMemory, uniform: bool) -> Iterator[Bit]:
        for read in memory.reads:
            if not read.clocked:
                raise Unsupported(f"{self.netlist.name}: {memory.name} is read within a cycle")
            if (read.chunks[0] in self.uniform) == uniform:
                yield from read.bits()

    def _guard(self, number: int, port: int) -> list[Bit]:
        """Return uniform bits such that whenever a write is enabled, one of them is set; empty if none are known."""
        memory = list(self.netlist.memories.values())[number]
        guard = []
        for bit in dict.fromkeys(memory.writes[port].enables):
            if not self.is_uniform(bit):
                bit = self._uniform_condition(bit)
            if bit is None:
                return []
            guard.append(bit)
        return list(dict.fromkeys(guard))

    def _uniform_condition(self, bit: Bit) -> Bit | None:
        """Return a uniform bit that is set whenever `bit` is set; None if no such bit is known."""
        assert isinstance(bit, tuple), "a constant is uniform"
        source, place = bit
        cell = self.netlist.cells.get(source)
        if cell is None or cell.kind not in ("and", "mux"):
            return None
        for port, other in (("A", "B"), ("B", "A")):
            side = cell.operands[port]
            if place < len(side) and self.is_uniform(side[place]):
                if cell.kind == "and" or cell.operands[other][place] == 0:
                    return side[place]
        return None

    def _next(self, register: NetlistRegister) -> str:
        size = word(register.width)
        old, *_ = self._state(register.name, 0, register.width)

        def select(bit: Bit, high: Expression, low: Expression) -> Expression:
            if bit == 1:
                return high
            if bit == 0:
                return low
            return self.values.mux(self.values.bits([bit], 32), high, low, size)

        value = self.values.bits(register.d, size)
        reset = Expression(f"({ctype(size)}){register.reset_value:#x}ull", size, False)
        if register.reset_first:
            value = select(register.reset, reset, select(register.enable, value, old))
        else:
            value = select(register.enable, select(register.reset, reset, value), old)
        return self._word(register.name, value)

    def _memories(self):
        # The words of all instances at one address are adjacent.
        return enumerate(self.netlist.memories.values())

    def _reads(self, number: int, memory: NetlistMemory, uniform: bool, depth: int) -> Iterator[str]:
        """Emit the clocked reads of a memory, and yield the struct members of the read words."""
        for read in memory.reads:
            if (read.chunks[0] in self.uniform) != uniform:
                continue
            if any(read.transparent):
                raise Unsupported(f"{self.netlist.name}: {memory.name} forwards a write of the same cycle to a read")
            yield from self._port_reads(number, memory, read, uniform, depth)

    def _port_reads(self, number: int, memory: NetlistMemory, read: NetlistReadPort, uniform: bool, depth: int):
        address = self.values.bits(read.address, 32)
        enable = self.values.bits([read.enable], 32)
        each = not self.memory_is_uniform(memory)
        kind = "uint32_t" if uniform else "V32"
        for chunk, source in enumerate(read.chunks):
            place = self.places[source]
            if address.varying:
                base = f"&s.m{number}[0][{chunk}]" + ("[k]" if each else "")
                stride = len(read.chunks) * (self.count if each else 1)
                word = f"gather({base}, {address.code}, {stride}u, {int(each)}u, {memory.size}u)"
            else:
                word = f"s.m{number}[{address.code}][{chunk}]"
                if not uniform:
                    word = f"load(&{word}[k])" if each else f"K32({word})"
                if memory.size < 1 << len(read.address):
                    word = f"({address.code} < {memory.size}u ? {word} : {kind}{{}})"
            old = self._state(source, 0, 1)[0].code
            if not uniform and source not in self.needed:
                # No other cell needs the old word in this step.
                if chunk == 0:
                    self.line(f"if ({f'some({enable.code})' if enable.varying else enable.code}) {{", depth)
                word = f"choose({enable.code}, {word}, {old})" if enable.varying else word
                self.line(f"store(&s.{place}[k], {word});", depth + 1)
                if chunk == len(read.chunks) - 1:
                    self.line("}", depth)
                continue
            choice = f"choose({enable.code}, {word}, {old})" if enable.varying else f"{enable.code} ? {word} : {old}"
            self.line(f"const {kind} n_{place} = {choice};", depth)
            yield place

    def _writes(
        self, number: int, memory: NetlistMemory, uniform: bool, depth: int, scope: Scope | None = None
    ) -> None:
        if self.memory_is_uniform(memory) != uniform:
            return
        for port, write in enumerate(memory.writes):
            guard = [] if uniform else self._guard(number, port)
            if scope is not None:
                conditions = [self.values.bits(part, size).code for part, size in self.values.pieces(guard)]
                self.line(f"if ({' || '.join(conditions)}) {{" if guard else "{", depth)
                self._body(scope.guarded[number, port], depth + 1)
            address = self.values.bits(write.address, 32)
            within = "" if memory.size >= 1 << len(write.address) else f"{address.code} < {memory.size}u && "
            for chunk, width in enumerate(memory.chunk_widths()):
                part = slice(32 * chunk, 32 * chunk + width)
                mask = self.values.bits(write.enables[part], 32)
                data = self.values.bits(write.data[part], 32)
                if uniform:
                    at = f"s.m{number}[{address.code}][{chunk}]"
                    self.line(f"if ({within}{mask.code}) {at} = {at} ^ (({at} ^ {data.code}) & {mask.code});", depth)
                elif address.varying:
                    base, stride = f"&s.m{number}[0][{chunk}][k]", len(memory.chunk_widths()) * self.count
                    arguments = f"{address.code}, {data.as_vector().code}, {mask.as_vector().code}"
                    self.line(f"scatter({base}, {arguments}, {stride}u, {memory.size}u);", depth)
                else:
                    at = f"&s.m{number}[{address.code}][{chunk}][k]"
                    test = f"some(w{chunk})" if mask.varying else mask.code
                    self.line(f"const V32 w{chunk} = {mask.as_vector().code};", depth)
                    data_code = data.as_vector().code
                    self.line(f"if ({within}{test}) store({at}, merge(load({at}), {data_code}, w{chunk}));", depth)
            if scope is not None:
                self.line("}", depth)
