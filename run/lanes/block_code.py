"""C++ code of a block: its lane instances, their connections, and the remaining cells and registers.

A step begins with copies of the lanes' inputs; then threads step the lanes (`pool.h`); at its end the outputs are
packed. Most copies are rows of words at a regular distance, moved by a loop or memcpy. A lane passes its outputs to
neighbours of its kind itself, so a thread writes what it reads in the next step.
"""

import math
import re
from collections.abc import Iterator, Mapping

from neuroncore_rtl.run.lanes.delay_code import DelayCode, take_delay_lines
from neuroncore_rtl.run.lanes.lane_code import GROUP, LaneCode, ctype
from neuroncore_rtl.run.lanes.netlist import Bit, LanesNetlist, NetlistInstance, Through, Unsupported
from neuroncore_rtl.run.lanes.rows import RegularRow, Shape, moved, rows_of, steps_between
from neuroncore_rtl.run.lanes.schedule import Scope, Switch, schedule
from neuroncore_rtl.run.lanes.values import Expression, Values, runs, word

__all__ = ["BlockCode"]

LONG = 16
"""Least granules of a long block, which begins first and ends last."""

Place = tuple[str, str, int]
"""Origin of bits (see `BlockCode._origin`): kind, name, and a number that differs between instances."""


def _depths(instances: list[NetlistInstance], port: str) -> list[int]:
    """Return how many lanes precede each lane in the chain that is connected through an input."""
    followers: dict[str | None, list[str]] = {}
    depths = dict.fromkeys((instance.name for instance in instances), 0)
    for instance in instances:
        owners = {bit[0].rpartition(".")[0] for bit in instance.inputs[port] if isinstance(bit, tuple)}
        followers.setdefault(min(owners & depths.keys(), default=None), []).append(instance.name)
    depth, found = 0, followers.get(None)
    while found:
        depths |= dict.fromkeys(found, depth)
        depth, found = depth + 1, [name for before in found for name in followers.get(before, ())]
    return [*depths.values()]


def _along_chains(instances: list[NetlistInstance]) -> list[NetlistInstance]:
    """Order lanes by their places in chains, the tiles of an array by columns: neighbours have regular distances."""
    depths = {tuple(_depths(instances, port)) for port in instances[0].inputs}
    places = zip(*sorted(depths, key=lambda of: (max(of), of)), strict=True)
    names = [re.sub(r"\d+", lambda digits: digits[0].zfill(9), instance.name) for instance in instances]
    return [instance for _, _, instance in sorted(zip(places, names, instances, strict=True))]


class BlockCode(LaneCode):
    """C++ code of a block, treated as a lane with one instance that contains other lanes.

    `modules` are the block and its lanes, from Yosys' `write_json`. `lanes` has the code, `order` the instances, of
    each kind of lane, by module. More than `threads` do not pay; a block that `is_long` begins first and
    ends last. Raises Unsupported if it cannot be evaluated this way.
    """

    def __init__(self, modules: Mapping[str, dict], name: str):
        netlist = LanesNetlist.read(name, modules, lane=False)
        slots = take_delay_lines(netlist)
        self.lanes: dict[str, LaneCode] = {}
        super().__init__(netlist, 1, set(netlist.inputs))
        self.name = f"block_{name}"
        self.order: dict[str, list[NetlistInstance]] = {}
        for instance in netlist.instances.values():
            self.order.setdefault(instance.module, []).append(instance)
        self.order = {module: _along_chains(instances) for module, instances in self.order.items()}
        self.index = {i.name: n for instances in self.order.values() for n, i in enumerate(instances)}
        for module, instances in self.order.items():
            if instances[0].name in slots:
                fields = [len(bits) for port, bits in instances[0].inputs.items() if port != "reset"]
                self.lanes[module] = DelayCode(module, fields, [slots[instance.name] for instance in instances])
                continue
            lane = LanesNetlist.read(module, modules, lane=True)
            alike = {
                port for port in lane.inputs if all(i.inputs[port] == instances[0].inputs[port] for i in instances)
            }
            self.lanes[module] = LaneCode(lane, len(instances), alike)
        granules = max((lane.granules for lane in self.lanes.values()), default=0)
        self.threads, self.is_long = 1 + granules, granules >= LONG
        if self.is_long:  # the other kinds are stepped, and settled, while helpers step the long one
            for lane in self.lanes.values():
                lane.granules *= lane.granules >= LONG
        self.rows = {
            (module, port): rows_of([self._shape(instance.inputs[port]) for instance in self.order[module]])
            for module, lane in self.lanes.items()
            for port in set(lane.netlist.inputs) - lane.uniform
        }
        for module, lane in self.lanes.items():
            for port in lane.netlist.inputs:
                if port not in lane.uniform | lane.late and (passed := self._passed(module, lane, port)):
                    lane.passed[port], lane.constants[port] = passed, self._constants(module, lane, port)
        for module, lane in self.lanes.items():
            if lane.granules and lane.fused():
                lane.boxes = self._boxes(module, lane)
        for port, bits in netlist.outputs.items():
            inputs = self.behind(bits) & set(netlist.inputs)
            if inputs:
                raise Unsupported(
                    f"{name}: output {port} depends on input {min(inputs)} within a cycle; a register between them "
                    "would let it be evaluated once a cycle"
                )

    def _passed(self, module: str, lane: LaneCode, port: str) -> tuple[str, int] | None:
        """Return the output of the same kind of lane that most inputs are, and its distance in instances, or None."""
        instances = self.order[module]
        longest, _ = self.rows[module, port]
        first, count, _, steps = longest[0] if longest else RegularRow(0, 0, 1, ())
        alike, (number, *_) = self._shape(instances[first].inputs[port])
        kind, name, length, _ = alike[0]
        if (len(alike), kind, steps) != (1, "lane", (1,)) or first <= number or 2 * count < len(instances):
            return None
        origin, output, place = self._lane_output(name)
        if origin != module or place or lane.output_is_uniform(output):
            return None
        source, width = lane.register_of(output), lane.netlist.inputs[port]
        read = source is not None and source not in lane.netlist.registers  # from a memory, not stored in each step
        whole = length == width == len(lane.netlist.outputs[output])
        return (lane.port(output), first - number) if whole and not read else None

    def _constants(self, module: str, lane: LaneCode, port: str) -> dict[RegularRow, str]:
        """Return the rows of constants of an input, with their C++ values."""
        found = {}
        for row in self.rows[module, port][1]:
            shape = self._shape(self.order[module][row.first].inputs[port])
            if all(kind == "constant" for kind, *_ in shape[0]) and not any(row.steps):
                found[row] = self._alike_value(shape, row.steps, lane.netlist.inputs[port])
        return found

    def _boxes(self, module: str, lane: LaneCode) -> dict[str, RegularRow]:
        """Return the outputs that the block reads of a few instances, far apart, with the row of these."""
        netlist = self.netlist
        bits = [bit for some in netlist.outputs.values() for bit in some]
        for parts in (netlist.cells, netlist.registers, netlist.memories):
            bits += [bit for part in parts.values() for bit in part.bits()]
        for kind, other in self.lanes.items():
            for port in other.netlist.inputs:
                rows = [RegularRow(0, 1, 1, ())] if port in other.uniform else self._given(kind, other, port)
                for first, count, stride, _ in rows:
                    given = self.order[kind][first : first + count * stride : stride]
                    bits += [bit for instance in given for bit in instance.inputs[port]]
        read: dict[str, set[int]] = {}
        for source in {bit[0] for bit in bits if isinstance(bit, tuple)}:
            owner, _, port = source.rpartition(".")
            if owner in netlist.instances and netlist.instances[owner].module == module:
                read.setdefault(port, set()).add(self.index[owner])
        found = {}
        for port, places in read.items():
            first, last = min(places), max(places)
            stride = math.gcd(*(place - first for place in places))
            if stride >= GROUP and not lane.output_is_uniform(port):
                found[port] = RegularRow(first, 1 + (last - first) // stride, stride, ())
        return found

    def _through(self, source: str):
        owner, _, port = source.rpartition(".")
        instance = self.netlist.instances.get(owner)
        if instance is None:
            return super()._through(source)
        if instance.module not in self.lanes:  # while the lanes themselves are read
            return None
        lane = self.lanes[instance.module]
        late = lane.behind(lane.netlist.outputs[port]) & lane.late
        return [bit for name in late for bit in instance.inputs[name]] if late else None

    def _state(self, source: str, first: int, length: int) -> tuple[Expression, int, int]:
        if source in self.netlist.inputs:
            size = word(length)
            return Expression(f"bits{size}(i_{self.places[source]}, {first}u, {length}u)", size, False), 0, length
        owner, _, port = source.rpartition(".")
        if owner in self.netlist.instances:
            module = self.netlist.instances[owner].module
            width = self.netlist.widths[source]
            return Expression(self._lane_word(module, port, str(self.index[owner])), word(width), False), first, width
        return super()._state(source, first, length)

    def _lane_word(self, module: str, port: str, index: str) -> str:
        lane = self.lanes[module]
        if port in lane.boxes:
            return f"s.{self._lane(module)}.box_{lane.port(port)}[({index}) / {lane.boxes[port].stride}]"
        each = "" if lane.output_is_uniform(port) else f"[{index}]"
        return f"s.{self._lane(module)}.{lane.port(port)}{each}"

    def _lane(self, module: str) -> str:
        return f"l_{list(self.order).index(module)}"

    def _loop(self, module: str) -> str:
        return f"loop_{list(self.order).index(module)}"

    def text(self) -> str:
        lanes = "".join(lane.text() for lane in self.lanes.values())
        self.values = Values(self.netlist.name, self._state)
        self.lines = []
        self._structure()
        self._parts()
        self._settle()
        self._init()
        self._pack()
        self._step()
        return lanes + "\n".join(self.lines) + "\n"

    def _structure(self) -> None:
        netlist = self.netlist
        self.line(f"struct {self.name} {{", 0)
        for module, lane in self.lanes.items():
            self.line(f"{lane.name} {self._lane(module)};")
            self.line(f"lanes::Loop {self._loop(module)};")
        for source, width in netlist.widths.items():
            owner = source.rpartition(".")[0]
            if source not in netlist.cells and source not in netlist.inputs and owner not in netlist.instances:
                self._member(width, self.places[source], True)
        for number, memory in self._memories():
            self.line(f"uint32_t m{number}[{memory.size}][{len(memory.chunk_widths())}];")
        self.line("int step;")
        self.line("bool begun;  // and not ended")
        self.line("};", 0)

    def _arguments(self, inputs: bool) -> str:
        ports = self.netlist.inputs if inputs else {port: len(bits) for port, bits in self.netlist.outputs.items()}
        names = self.places if inputs else {port: f"o_{n}" for n, port in enumerate(ports)}
        const, prefix = ("const ", "i_") if inputs else ("", "")
        return "".join(f", {const}uint32_t* {prefix}{names[port]}" for port in ports)

    def _init(self) -> None:
        super()._init()
        self.lines.pop()
        for module, lane in self.lanes.items():
            self.line(f"{lane.name}_init(s.{self._lane(module)});")
            loop = self._loop(module)
            self.line(f"s.{loop} = {{{self.name}_{loop}, &s, {lane.count}, {GROUP}, {lane.granules}}};")
            if lane.fused():
                self.line(
                    f"for (int k = 0; k < {lane.count}; k += WIDTH) {lane.name}_outputs(s.{self._lane(module)}, k);"
                )
            for port, (first, count, stride, _) in lane.boxes.items():
                box, output = self._lane_word(module, port, "n"), f"s.{self._lane(module)}.{lane.port(port)}[n]"
                self.line(f"for (int n = {first}; n < {first + count * stride}; n += {stride}) {box} = {output};")
        self.line(f"{self.name}_settle_0(s);")
        self.line(f"{self.name}_settle_1(s);")
        for module, lane in self.lanes.items():
            for port, (output, distance) in lane.passed.items():
                of, size = f"s.{self._lane(module)}", word(lane.netlist.inputs[port]) // 8 * lane.count
                self.line(f"memcpy(&{of}.next_{lane.port(port)}[{distance}], {of}.{output}, {size});")
                for (first, count, stride, _), value in lane.constants[port].items():
                    at = f"{of}.{{}}{lane.port(port)}[{first} + n * {stride}]"
                    self.line(f"for (int n = 0; n < {count}; n++) {at.format('')} = {at.format('next_')} = {value};")
        self.line("}", 0)

    def _settle(self) -> None:
        """Emit the two settle functions of the block.

        Late inputs of a lane determine its outputs within a cycle. The functions set the late inputs of each kind of
        lane and call its settle function; kinds that supply these inputs precede. What does not depend on kinds that
        threads step is in the first function, which is called while they do.
        """
        waiting, shared = dict(self.lanes), {}
        while waiting:
            ready = [module for module, lane in waiting.items() if not self._needs(module, lane) & set(waiting)]
            if not ready:
                raise Unsupported(f"{self.netlist.name}: outputs of {min(waiting)} depend on themselves within a cycle")
            for module in ready:
                lane = waiting.pop(module)
                kinds = {module, *self._owners(module, lane), *self._needs(module, lane)}
                shared[module] = any(self.lanes[kind].granules or shared.get(kind) for kind in kinds)
        for number in range(2):
            self.line(f"static void {self.name}_settle_{number}({self.name}& s) {{", 0)
            for module in (module for module in shared if shared[module] == number):
                self._settle_kind(module, self.lanes[module])
            self.line("}", 0)

    def _settle_kind(self, module: str, lane: LaneCode) -> None:
        ports = sorted(lane.late)
        sinks = [bit for i in self.order[module] for port in ports for bit in i.inputs[port]]
        self.line("{")
        self._body(schedule(self.netlist.cells, sinks, lambda bit: True), 1)
        for port in ports:
            self._give(module, lane, port)
        self.line(f"{lane.name}_settle(s.{self._lane(module)});")
        self.line("}")

    def _owners(self, module: str, lane: LaneCode, through: Through | None = None) -> set[str]:
        """Return the modules of the lanes that late inputs of the lanes of `module` depend on; see `behind`."""
        bits = (bit for instance in self.order[module] for port in lane.late for bit in instance.inputs[port])
        owners = (self.netlist.instances.get(source.rpartition(".")[0]) for source in self.behind(bits, through))
        return {owner.module for owner in owners if owner is not None}

    def _needs(self, module: str, lane: LaneCode) -> set[str]:
        """Return the modules of lanes whose outputs set late inputs of the lanes of `module` within the same cycle."""
        return {kind for kind in self._owners(module, lane, super()._through) if self.lanes[kind].late}

    def _pack(self) -> None:
        self.line(f"static void {self.name}_outputs({self.name}& s{self._arguments(False)}) {{", 0)
        outputs = self.netlist.outputs
        sinks = [bit for bits in outputs.values() for bit in bits]
        self._body(schedule(self.netlist.cells, sinks, lambda bit: True), 1)
        for number, bits in enumerate(outputs.values()):
            self.line(f"memset(o_{number}, 0, {4 * -(-len(bits) // 32)});")
            self._pack_bits(f"o_{number}", bits)
        self.line("}", 0)

    def _pack_bits(self, target: str, bits: list[Bit]) -> None:
        parts = [
            (self._origin(source, first), length, place)
            for whole in runs(bits)
            for source, first, length, place in self._pieces(*whole)
        ]
        at = 0
        while at < len(parts):
            (kind, name, number), length, place = parts[at]
            count, steps = 1, None
            while at + count < len(parts):
                (next_kind, next_name, next_number), next_length, next_place = parts[at + count]
                before = parts[at + count - 1]
                found = (next_number - before[0][2], next_place - before[2])
                if (next_kind, next_name, next_length) != (kind, name, length) or steps not in (None, found):
                    break
                steps = found
                count += 1
            if count < 3 or steps is None:
                count, steps = 1, (0, 0)
            self._pack_row(target, parts[at], count, steps)
            at += count

    def _pieces(self, source, first, length, place) -> Iterator[tuple]:
        """Split a run of bits (see `runs`) into runs of at most 64 bits."""
        for offset in range(0, length, 64):
            size = min(64, length - offset)
            value = first >> offset & (1 << size) - 1 if source is None else first + offset
            yield source, value, size, place + offset

    def _pack_row(self, target: str, part, count: int, steps: tuple[int, int]) -> None:
        (kind, name, number), length, place = part
        several = count > 1
        if length == 32 and steps == (1, 32) and place % 32 == 0:
            if first := self._lane_array(kind, name, number, length):
                self.line(f"memcpy({target} + {place // 32}, {first}, {4 * count});")
                return
        if kind == "constant":
            if not several and not number:
                return
            value = f"{number:#x}ull" + f" + n * {steps[0]}ull" * several
        else:
            value = self._row_value(kind, name, f"{number}" + f" + n * {steps[0]}" * several, length)
        loop, distance = (f"for (int n = 0; n < {count}; n++) ", f" + n * {steps[1]}u") if several else ("", "")
        self.line(f"{loop}put({target}, {place}u{distance}, {length}u, {value});")

    def _switch(self, name: str, switch: Switch, sides: dict[int, Scope], depth: int) -> None:
        """Emit a switch; if its operands form a regular row (see `_origin`), it becomes one indexed expression."""
        cell = self.netlist.cells[name]
        cases = sorted((value, side) for side, value in enumerate(switch.values))
        shapes = [self._shape(cell.case(side)) for _, side in cases]
        first, last = cases[0][0], cases[-1][0]
        alike = last - first == len(cases) - 1 and all(shape[0] == shapes[0][0] for shape in shapes)
        alike &= all(kind != "own" for kind, *_ in shapes[0][0]) and not any(inner.cells for inner in sides.values())
        steps = steps_between(shapes[0], shapes[1]) if alike else ()
        if not alike or any(shape != moved(shapes[0], steps, n) for n, shape in enumerate(shapes)):
            super()._switch(name, switch, sides, depth)
            return
        place, size = self.places[name], word(cell.width)
        number = self.values.bits(list(switch.bits), 32).code
        self.line(f"{place} = {self.values.bits(cell.operands['A'], size).code};", depth)
        self.line(f"if (const uint32_t n = {number} - {first}u; n <= {last - first}u)", depth)
        value = self._alike_value(shapes[0], steps, cell.width)
        self.line(f"{place} = {value};", depth + 1)

    def _origin(self, source: str | None, first: int) -> Place:
        """Return kind, name and number of a bit's origin: constant, input of the block, output of a lane, or own cell.

        Successive operands form a *regular row*, which a loop computes, if their origins differ only in the numbers, by
        a constant step.
        """
        if source is None:
            return "constant", "", first
        if source in self.netlist.inputs:
            return "input", source, first
        owner, _, port = source.rpartition(".")
        if owner in self.netlist.instances:
            module = self.netlist.instances[owner].module
            return "lane", f"{module}:{port}@{first}", self.index[owner]
        return "own", f"{source}@{first}", 0

    def _lane_output(self, name: str) -> tuple[str, str, int]:
        before, _, first = name.rpartition("@")
        module, _, port = before.partition(":")
        return module, port, int(first)

    def _lane_array(self, kind: str, name: str, number: int, width: int) -> str | None:
        """Return the address of a word in the array of a lane's output of `width` bits; None for other origins."""
        if kind != "lane" or not name.endswith("@0"):
            return None
        module, port, _ = self._lane_output(name)
        lane = self.lanes[module]
        if len(lane.netlist.outputs[port]) != width or lane.output_is_uniform(port) or port in lane.boxes:
            return None
        return f"&s.{self._lane(module)}.{lane.port(port)}[{number}]"

    def _row_value(self, kind: str, name: str, number: str, length: int) -> str:
        """Return the C++ expression of bits of an origin; `number` is C++, with or without the loop variable `n`."""
        if kind == "input":
            return f"bits{word(length)}(i_{self.places[name]}, {number}, {length}u)"
        if kind == "lane":
            module, port, first = self._lane_output(name)
            width = len(self.lanes[module].netlist.outputs[port])
            value = self._lane_word(module, port, number)
        else:
            source, _, at = name.rpartition("@")
            first, width = int(at), self.netlist.widths[source]
            value = LaneCode._state(self, source, first, length)[0].code
        if first:
            value = f"({value} >> {first})"
        if first + length < width:
            value = f"({value} & {(1 << length) - 1:#x}{'u' if word(width) == 32 else 'ull'})"
        return value

    def _step(self) -> None:
        netlist = self.netlist
        sinks = [bit for register in netlist.registers.values() for bit in register.bits()]
        for memory in netlist.memories.values():
            sinks += [*self._read_bits(memory, True)]
            sinks += [bit for write in memory.writes for bit in write.bits()]
        sinks += [
            bit
            for i in netlist.instances.values()
            for port, bits in i.inputs.items()
            if port not in self.lanes[i.module].late
            for bit in bits
        ]
        self._end()
        self.line(f"static void {self.name}_begin({self.name}& s{self._arguments(True)}) {{", 0)
        self.line(f"{self.name}_end(s);")
        self._body(schedule(netlist.cells, sinks, lambda bit: True), 1)
        for module, lane in self.lanes.items():
            for place in map(lane.port, lane.passed):
                self.line(f"exchange(s.{self._lane(module)}.{place}, s.{self._lane(module)}.next_{place});")
            for port in lane.netlist.inputs:
                if port not in lane.late:
                    self._give(module, lane, port)
        self._end_uniform(netlist.registers.values())
        for module in self.lanes:
            self.line(f"s.{self._loop(module)}.begin();")
        self.line("s.begun = true;")
        self.line("}", 0)

    def _parts(self) -> None:
        for module, lane in self.lanes.items():
            self.line(f"static void {self.name}_{self._loop(module)}(void* s, int first, int last) {{", 0)
            self.line(f"{lane.name}_part((({self.name}*)s)->{self._lane(module)}, first, last);")
            self.line("}", 0)

    def _end(self) -> None:
        self.line(f"static void {self.name}_end({self.name}& s) {{", 0)
        self.line("if (!s.begun) return;")
        self.line("s.begun = false;")
        for shared in range(2):
            for module, lane in self.lanes.items():
                if bool(lane.granules) == shared:
                    self.line(f"s.{self._loop(module)}.end();")
                    self.line(f"{lane.name}_end(s.{self._lane(module)});")
            self.line(f"{self.name}_settle_{shared}(s);")
        self.line("}", 0)

    def _give(self, module: str, lane: LaneCode, port: str) -> None:
        """Emit the code that sets the input `port` of all lanes (instances) of a module."""
        instances = self.order[module]
        width = lane.netlist.inputs[port]
        size = word(width)
        target = f"s.{self._lane(module)}.{lane.port(port)}"
        if port in lane.uniform:
            self.line(f"{target} = {self.values.bits(instances[0].inputs[port], size).code};")
            return
        for row in self._given(module, lane, port):
            self._give_row(target, width, self._shape(instances[row.first].inputs[port]), row)

    def _given(self, module: str, lane: LaneCode, port: str) -> list[RegularRow]:
        """Return the rows of an input that are set when a step begins."""
        longest, rows = self.rows[module, port]
        return [row for row in rows if row not in lane.constants[port]] if port in lane.passed else [*longest, *rows]

    def _shape(self, bits: list[Bit]) -> Shape:
        places = [(*self._origin(source, first), length, place) for source, first, length, place in runs(bits)]
        alike = tuple((kind, name, length, place) for kind, name, _, length, place in places)
        return alike, tuple(number for _, _, number, _, _ in places)

    def _give_row(self, target: str, width: int, shape: Shape, row: RegularRow) -> None:
        (alike, numbers), (first, count, stride, steps) = shape, row
        if len(alike) == 1 and stride == 1:
            kind, name, length, _ = alike[0]
            if steps == (1,) and length == width and (origin := self._lane_array(kind, name, numbers[0], width)):
                self.line(f"memcpy(&{target}[{first}], {origin}, {count * word(width) // 8});")
                return
            if kind == "input" and steps == (32,) and length == width == 32 and numbers[0] % 32 == 0:
                self.line(f"memcpy(&{target}[{first}], i_{self.places[name]} + {numbers[0] // 32}, {4 * count});")
                return
        value = self._alike_value(shape, steps if count > 1 else (0,) * len(steps), width)
        if count == 1:
            self.line(f"{target}[{first}] = {value};")
        else:
            self.line(f"for (int n = 0; n < {count}; n++) {target}[{first} + n * {stride}] = {value};")

    def _alike_value(self, shape, steps, width: int) -> str:
        """Return the C++ expression of operand `n`, the loop variable, of a regular row that begins with `shape`."""
        terms = []
        for (kind, name, length, place), number, step in zip(*shape, steps, strict=True):
            at = f"{number} + n * {step}" if step else f"{number}"
            if kind == "constant":
                value = f"({at})"
                if not number and not step:
                    continue
            else:
                value = self._row_value(kind, name, at, length)
            terms.append(f"(({ctype(width)}){value} << {place})" if place else f"({ctype(width)}){value}")
        return " | ".join(terms) or "0"
