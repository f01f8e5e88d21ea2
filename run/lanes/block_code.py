"""C++ code of a block: its lane instances, their connections, and the remaining cells and registers.

A step begins with copies of the lanes' inputs; then threads step the lanes (`pool.h`); at its end the outputs are
packed. Most copies are rows of words at a regular distance, moved by a loop or memcpy. A lane passes its outputs to
neighbours of its kind itself, so a thread writes what it reads in the next step.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise, takewhile

from neuroncore_rtl.run.lanes.lane_code import GROUP, LaneCode, ctype
from neuroncore_rtl.run.lanes.netlist import Bit, LanesNetlist, NetlistInstance, Unsupported
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
    return [instance for _, _, instance in sorted(zip(places, range(len(instances)), instances, strict=True))]


class BlockCode(LaneCode):
    """C++ code of a block, treated as a lane with one instance that contains other lanes.

    `modules` are the block and its lanes, from Yosys' `write_json`. `lanes` has the code, `order` the instances, of
    each kind of lane, by module. More than `threads` do not pay; a block that `is_long` begins first and
    ends last. Raises Unsupported if it cannot be evaluated this way.
    """

    def __init__(self, modules: Mapping[str, dict], name: str):
        netlist = LanesNetlist.read(name, modules, lane=False)
        self.lanes: dict[str, LaneCode] = {}
        super().__init__(netlist, 1, set(netlist.inputs))
        self.name = f"block_{name}"
        self.order: dict[str, list[NetlistInstance]] = {}
        for instance in netlist.instances.values():
            self.order.setdefault(instance.module, []).append(instance)
        self.order = {module: _along_chains(instances) for module, instances in self.order.items()}
        self.index = {i.name: n for instances in self.order.values() for n, i in enumerate(instances)}
        for module, instances in self.order.items():
            lane = LanesNetlist.read(module, modules, lane=True)
            alike = {
                port for port in lane.inputs if all(i.inputs[port] == instances[0].inputs[port] for i in instances)
            }
            self.lanes[module] = LaneCode(lane, len(instances), alike)
        granules = max((lane.granules for lane in self.lanes.values()), default=0)
        self.threads, self.is_long = 1 + granules, granules >= LONG
        for module, lane in self.lanes.items():
            for port in lane.netlist.inputs:
                if port not in lane.uniform | lane.late and (passed := self._passed(module, lane, port)):
                    lane.passed[port] = passed
        for port, bits in netlist.outputs.items():
            inputs = self.behind(bits) & set(netlist.inputs)
            if inputs:
                raise Unsupported(
                    f"{name}: output {port} depends on input {min(inputs)} within a cycle; a register between them "
                    "would let it be evaluated once a cycle"
                )

    def _passed(self, module: str, lane: LaneCode, port: str) -> tuple[str, int] | None:
        """Return the output of the same kind of lane that most inputs are, and its distance in instances, or None."""
        shapes = [self._shape(instance.inputs[port]) for instance in self.order[module]]
        first, last, steps = self._commonest(shapes) or (0, 0, ())
        alike, (number, *_) = shapes[first]
        kind, name, length, _ = alike[0]
        if (len(alike), kind, steps) != (1, "lane", (1,)) or first <= number or 2 * (last - first) < len(shapes):
            return None
        origin, output, place = self._lane_output(name)
        if origin != module or place or lane.output_is_uniform(output):
            return None
        source, width = lane.register_of(output), lane.netlist.inputs[port]
        read = source is not None and source not in lane.netlist.registers  # from a memory, not stored in each step
        whole = length == width == len(lane.netlist.outputs[output])
        return (lane.port(output), first - number) if whole and not read else None

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
        self.line(f"{self.name}_settle(s);")
        for module, lane in self.lanes.items():
            for port, (output, distance) in lane.passed.items():
                of, size = f"s.{self._lane(module)}", word(lane.netlist.inputs[port]) // 8 * lane.count
                self.line(f"memcpy(&{of}.next_{lane.port(port)}[{distance}], {of}.{output}, {size});")
        self.line("}", 0)

    def _settle(self) -> None:
        """Emit the settle function of the block.

        Late inputs of a lane determine its outputs within a cycle. The function sets the late inputs of each kind of
        lane and calls its settle function; kinds that supply these inputs precede.
        """
        self.line(f"static void {self.name}_settle({self.name}& s) {{", 0)
        waiting = dict(self.lanes)
        while waiting:
            ready = [module for module, lane in waiting.items() if not self._needs(module, lane) & set(waiting)]
            if not ready:
                raise Unsupported(f"{self.netlist.name}: outputs of {min(waiting)} depend on themselves within a cycle")
            for module in ready:
                lane = waiting.pop(module)
                ports = sorted(lane.late)
                sinks = [bit for i in self.order[module] for port in ports for bit in i.inputs[port]]
                self.line("{")
                self._body(schedule(self.netlist.cells, sinks, lambda bit: True), 1)
                for port in ports:
                    self._give(module, lane, port)
                self.line(f"{lane.name}_settle(s.{self._lane(module)});")
                self.line("}")
        self.line("}", 0)

    def _needs(self, module: str, lane: LaneCode) -> set[str]:
        """Return the modules of lanes whose outputs set late inputs of the lanes of `module` within the same cycle."""
        found = set()
        for instance in self.order[module]:
            for port in lane.late:
                for source in self.behind(instance.inputs[port], super()._through):
                    owner = self.netlist.instances.get(source.rpartition(".")[0])
                    if owner is not None and self.lanes[owner.module].late:
                        found.add(owner.module)
        return found

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
        steps = self._steps(shapes[0], shapes[1]) if alike else ()
        if not alike or any(shape != self._moved(shapes[0], steps, n) for n, shape in enumerate(shapes)):
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
        if len(lane.netlist.outputs[port]) != width or lane.output_is_uniform(port):
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
        for module, lane in self.lanes.items():
            self.line(f"s.{self._loop(module)}.end();")
            self.line(f"{lane.name}_end(s.{self._lane(module)});")
        self.line(f"{self.name}_settle(s);")
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
        shapes = [self._shape(instance.inputs[port]) for instance in instances]
        rest = list(range(len(shapes)))
        common = self._commonest(shapes)
        if common is not None:
            first, last, steps = common
            if port not in lane.passed:
                self._give_row(target, width, shapes, first, last - first + 1, 1, steps)
            row = {k for k in range(first, last + 1) if self._moved(shapes[first], steps, k - first) == shapes[k]}
            rest = [k for k in rest if k not in row]
        while rest:
            count, stride, steps = self._row(shapes, rest)
            self._give_row(target, width, shapes, rest[0], count, stride, steps)
            rest = rest[count:]

    def _shape(self, bits: list[Bit]) -> tuple[tuple, tuple[int, ...]]:
        """Return the origins of an operand's bits as two tuples: kinds and names with places, and the numbers."""
        places = [(*self._origin(source, first), length, place) for source, first, length, place in runs(bits)]
        alike = tuple((kind, name, length, place) for kind, name, _, length, place in places)
        return alike, tuple(number for _, _, number, _, _ in places)

    @staticmethod
    def _moved(shape, steps, n: int):
        """Return the shape of the operand `n` places after an operand in a regular row."""
        alike, numbers = shape
        return alike, tuple(number + n * step for number, step in zip(numbers, steps, strict=True))

    @staticmethod
    def _steps(shape, following) -> tuple[int, ...]:
        return tuple(b - a for a, b in zip(shape[1], following[1], strict=True))

    def _commonest(self, shapes) -> tuple[int, int, tuple[int, ...]] | None:
        """Return first and last instance, and steps of the numbers, of the longest regular row of operands."""
        rows: Counter = Counter()
        for k, (shape, following) in enumerate(pairwise(shapes)):
            if shape[0] == following[0]:
                steps = self._steps(shape, following)
                rows[steps, self._moved(shape, steps, -k)] += 1
        if not rows:
            return None
        (steps, base), _ = rows.most_common(1)[0]
        members = [k for k, shape in enumerate(shapes) if shape[0] == base[0] and shape == self._moved(base, steps, k)]
        return members[0], members[-1], steps

    def _row(self, shapes, rest: list[int]) -> tuple[int, int, tuple[int, ...]]:
        """Return size, stride in instances, and steps of the numbers of the regular row from instance `rest[0]` on."""
        alike, numbers = shapes[rest[0]]
        if len(rest) == 1 or shapes[rest[1]][0] != alike:
            return 1, 1, (0,) * len(numbers)
        stride = rest[1] - rest[0]
        steps = self._steps(shapes[rest[0]], shapes[rest[1]])
        row = takewhile(
            lambda n: rest[n] == rest[0] + n * stride and shapes[rest[n]] == self._moved(shapes[rest[0]], steps, n),
            range(1, len(rest)),
        )
        return 1 + len(list(row)), stride, steps

    def _give_row(self, target: str, width: int, shapes, first: int, count: int, stride: int, steps) -> None:
        alike, numbers = shapes[first]
        if len(alike) == 1 and stride == 1:
            kind, name, length, _ = alike[0]
            if steps == (1,) and length == width and (origin := self._lane_array(kind, name, numbers[0], width)):
                self.line(f"memcpy(&{target}[{first}], {origin}, {count * word(width) // 8});")
                return
            if kind == "input" and steps == (32,) and length == width == 32 and numbers[0] % 32 == 0:
                self.line(f"memcpy(&{target}[{first}], i_{self.places[name]} + {numbers[0] // 32}, {4 * count});")
                return
        value = self._alike_value(shapes[first], steps if count > 1 else (0,) * len(steps), width)
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
