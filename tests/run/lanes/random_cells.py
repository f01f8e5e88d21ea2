"""Module of random cells as RTLIL text: each kind of cell allowed in lanes, in random widths, corner cases first.

Cells with undefined results in Yosys are excluded: `$shiftx` beyond its operand, `$pmux` with several selects set, two
ports that write the same bit of a memory in one cycle; and `$shr` and `$shift` of a signed operand narrower than the
result, which Yosys' library extends before the shift (as Verilog does) but Yosys' simulator after it.
"""

import random

from tests.run.lanes.rtlil_text import cell_lines, concatenation, constant, memory_lines

__all__ = ["LANE", "RandomCells"]

LANE = "random_lane"

INPUTS = {
    **{f"own_{width}": width for width in (1, 2, 5, 8, 16, 31, 32, 33, 48, 63, 64, 70, 130)},
    **{f"common_{width}": width for width in (1, 3, 8, 32, 40, 64, 100)},
    **{f"late_{width}": width for width in (1, 12, 64)},
}
"""Widths of the ports. A `common` port has the same value for all instances; a `late` port has a combinational path to
outputs."""

REDUCTIONS = ("reduce_and", "reduce_or", "reduce_bool", "reduce_xor", "reduce_xnor", "logic_not")
ARITHMETIC = ("add", "sub", "mul")
BITWISE = ("and", "or", "xor", "xnor")
ORDER = ("lt", "le", "gt", "ge")
EQUALITY = ("eq", "ne", "logic_and", "logic_or")
SHIFTS = ("shl", "sshl", "shr", "sshr", "shift", "shiftx")
FLIP_FLOPS = ("dff", "dffe", "sdff", "sdffe", "sdffce")
EDGES = (1, 2, 31, 32, 33, 63, 64)  # widths around word boundaries


class RandomCells:
    """Builder of the module's text: `repeats` cells per kind; `kinds` by output."""

    def __init__(self, py_rng: random.Random, repeats: int, odd: bool = True):
        self.py_rng, self.inputs = py_rng, INPUTS
        self.outputs: dict[str, int] = {}
        self.kinds: dict[str, str] = {}
        self.wires: list[str] = ["wire input 1 \\clk"]
        self.cells: list[str] = []
        self.own: dict[str, int] = {}
        self.common: dict[str, int] = {}
        self.late = {port: width for port, width in self.inputs.items() if port.startswith("late")}
        late = {f"\\{port}": width for port, width in self.late.items()}
        self.pools = [self.own, self.own, self.own, late, self.common]
        for number, (port, width) in enumerate(self.inputs.items()):
            self.wires.append(f"wire width {width} input {number + 2} \\{port}")
            if port not in self.late:
                pool = self.own if port.startswith("own") else self.common
                pool[self.flip_flop("dff", width, f"\\{port}")] = width
        self.pools.append({**self.own, **self.common, **late})
        if odd:
            self._odd_cases()
        for _ in range(repeats):
            for kind in ("not", "neg", "pos", *REDUCTIONS):
                self.unary(kind)
            for kind in (*ARITHMETIC, *BITWISE, *ORDER, *EQUALITY, *SHIFTS):
                self.binary(kind)
            self.mux(self.width(kind="mux"))
            self.pmux(self.width(kind="mux"), self.py_rng.randint(2, 5))
        for _ in range(repeats // 2 + 1):
            for kind in FLIP_FLOPS:
                self.register(kind)
            self.branch()
        self._memories()

    def text(self) -> str:
        return "\n".join([f"module \\{LANE}", *self.wires, *self.cells, "end", ""])

    def width(self, kind: str = "") -> int:
        if kind in ("not", "pos", "mux", *BITWISE, *EQUALITY, *REDUCTIONS) and self.py_rng.random() < 0.2:
            return self.py_rng.randint(65, 130)
        return self.py_rng.choice(EDGES) if self.py_rng.random() < 0.4 else self.py_rng.randint(1, 64)

    def value(self, width: int, pool: dict[str, int] | None = None) -> str:
        pool = pool or self.py_rng.choice(self.pools)
        parts, left = [], width
        while left:
            kind = self.py_rng.random()
            source, size = self.py_rng.choice(list(pool.items()))
            if kind < 0.1:
                length = min(left, self.py_rng.randint(1, 8))
                parts.append(constant(self.py_rng.getrandbits(length), length))
            elif kind < 0.2:
                length = min(left, self.py_rng.randint(2, 5))
                parts += [f"{source} [{self.py_rng.randrange(size)}]"] * length
            else:
                fitting = [(s, n) for s, n in pool.items() if n >= left]
                if fitting and self.py_rng.random() < 0.7:
                    source, size = self.py_rng.choice(fitting)
                length = min(left, size)
                first = self.py_rng.randint(0, size - length)
                parts.append(f"{source} [{first + length - 1}:{first}]")
            left -= length
        return parts[0] if len(parts) == 1 else "{ " + " ".join(parts) + " }"

    def wire(self, width: int) -> str:
        name = f"\\w{len(self.wires)}"
        self.wires.append(f"wire width {width} {name}")
        return name

    def add(self, kind: str, parameters: dict[str, object], connections: dict[str, str]) -> None:
        self.cells += cell_lines(f"${kind}", f"\\{kind}_{len(self.cells)}", parameters, connections)

    def cell(self, kind: str, width: int, **operands: tuple[str, int, bool]) -> str:
        result = self.wire(width)
        parameters: dict[str, object] = {"Y_WIDTH": width}
        for port, (_, size, signed) in operands.items():
            parameters |= {f"{port}_WIDTH": size, f"{port}_SIGNED": int(signed)}
        self.add(kind, parameters, {port: value for port, (value, *_) in operands.items()} | {"Y": result})
        return result

    def show(self, kind: str, value: str, width: int) -> None:
        name = f"o{len(self.outputs)}"
        shown = self.flip_flop("dff", width, value) if self.py_rng.random() < 0.5 else value
        self.cells.append(f"connect \\{name} {shown}")
        self.outputs[name] = width
        self.kinds[name] = kind
        self.wires.append(f"wire width {width} output {len(self.inputs) + len(self.outputs) + 1} \\{name}")
        if self.py_rng.random() < 0.2:
            self.own[value] = width

    def unary(self, kind: str, *, a: int | None = None, y: int | None = None, signed: bool | None = None) -> None:
        a = self.width(kind) if a is None else a
        if y is None:
            y = self.py_rng.choice((1, 1, 3)) if kind in REDUCTIONS else self.width(kind)
        signed = self.py_rng.random() < 0.5 if signed is None else signed
        self.show(kind, self.cell(kind, y, A=(self.value(a), a, signed)), y)

    def binary(self, kind: str, *, a=None, b=None, y=None, signed=None, shown=True) -> str:
        draw = self.py_rng.random
        both = draw() < 0.5
        a_signed, b_signed = signed or (both, both)
        a, b = (self.width(kind) if n is None else n for n in (a, b))
        if y is None:
            y = self.py_rng.choice((1, 1, 2)) if kind in (*ORDER, *EQUALITY) else self.width(kind)
        if kind in SHIFTS:
            if signed is None:
                b = self.py_rng.choice((1, 3, 5, 6, 7, 8, 33, 64)) if draw() < 0.7 else b
                a_signed, b_signed = draw() < 0.5, kind == "shift" and draw() < 0.5
            if kind == "shiftx":
                a_signed, b, y = False, min(b, 5), min(y, 32)
                a = y + (1 << b) - 1
                b_signed = False
        a_signed = a_signed and not (kind in ("shr", "shift") and y > a)
        result = self.cell(kind, y, A=(self.value(a), a, a_signed), B=(self.value(b), b, b_signed))
        if shown:
            self.show(kind, result, y)
        return result

    def multiplexer(self, width: int, a: str, b: str, s: str, count: int = 0) -> str:
        """Return the output of a multiplexer of two values, or with `count` of `a` and that many values in `b`."""
        result = self.wire(width)
        kind, size = ("pmux", {"S_WIDTH": count}) if count else ("mux", {})
        self.add(kind, {"WIDTH": width, **size}, {"A": a, "B": b, "S": s, "Y": result})
        return result

    def mux(self, width: int) -> None:
        self.show("mux", self.multiplexer(width, self.value(width), self.value(width), self.value(1)), width)

    def selects(self, count: int, pool: dict[str, int] | None = None) -> str:
        index = self.value(3, pool)
        cases = self.py_rng.sample(range(8), count)
        bits = [self.cell("eq", 1, A=(index, 3, False), B=(f"3'{case:03b}", 3, False)) for case in cases]
        return "{ " + " ".join(bits) + " }"

    def pmux(self, width: int, count: int) -> None:
        values = self.value(width), self.value(width * count)
        self.show("pmux", self.multiplexer(width, *values, self.selects(count), count), width)

    def cone(self, width: int, depth: int = 0) -> str:
        kinds, sizes = (*ARITHMETIC, *BITWISE), dict.fromkeys("aby", width)
        result, *others = [self.binary(self.py_rng.choice(kinds), **sizes, shown=False) for _ in range(4)]
        for value in others:
            result = self.cell(self.py_rng.choice(BITWISE), width, A=(result, width, False), B=(value, width, False))
        if depth:
            result = self.cell("add", width, A=(result, width, False), B=(self.choice(width, depth - 1), width, False))
        return result

    def choice(self, width: int, depth: int = 0) -> str:
        """Return the output of a multiplexer of two or more logic cones, with a select common to all instances."""
        if self.py_rng.random() < 0.5:
            cones = self.cone(width, depth), self.cone(width, depth)
            return self.multiplexer(width, *cones, self.value(1, self.common))
        cases = "{ " + " ".join(self.cone(width, depth) for _ in range(3)) + " }"
        return self.multiplexer(width, self.cone(width), cases, self.selects(3, self.common), 3)

    def branch(self) -> None:
        width = self.width()
        self.show("branch", self.choice(width, 1), width)

    def flip_flop(self, kind: str, width: int, d: str, pool: dict[str, int] | None = None) -> str:
        if self.py_rng.random() < 0.5:
            self.wires.append(f"attribute \\init {constant(self.py_rng.getrandbits(width), width)}")
        q = self.wire(width)
        parameters: dict[str, object] = {"WIDTH": width, "CLK_POLARITY": 1}
        connections = {"CLK": "\\clk", "D": d, "Q": q}
        if kind.startswith("s"):
            value = constant(self.py_rng.getrandbits(width), width)
            parameters |= {"SRST_POLARITY": self.py_rng.getrandbits(1), "SRST_VALUE": value}
            connections["SRST"] = self.value(1, pool)
        if kind != "sdff" and kind != "dff":
            parameters["EN_POLARITY"] = self.py_rng.getrandbits(1)
            connections["EN"] = self.value(1, pool)
        self.add(kind, parameters, connections)
        return q

    def register(self, kind: str) -> None:
        width = self.py_rng.choice((1, 7, 32, 33, 64, 65, 100))
        pool = self.common if self.py_rng.random() < 0.3 else None
        self.show(kind, self.flip_flop(kind, width, self.value(width, pool), pool), width)

    def memory(self, *, size: int, width: int, reads: int, writes: int, pool=None, wide: int = 0) -> None:
        """Add a memory with clocked read ports, write ports of disjoint words, and `wide` additional address bits."""
        address = max(1, (size - 1).bit_length()) + wide
        part = self.py_rng.choice((1, 8, width))
        enables, places = [], []
        for port in range(writes):
            parts = []
            for first in range(0, width, part):
                parts += [self.value(1, pool)] * min(part, width - first)
            enables.append(" ".join(reversed(parts)))
            own = [f"1'{port}"] if writes == 2 else []
            places.append(" ".join([self.value(address - len(own), pool), *own] if address > len(own) else own))
        data, whole = self.wire(width * reads), {"size": size, "width": width, "reads": reads, "writes": writes}
        words = {"INIT": size * width, "RD_INIT_VALUE": reads * width}
        random_words = {name: constant(self.py_rng.getrandbits(bits), bits) for name, bits in words.items()}
        connections = {
            "RD_EN": self.value(reads, pool),
            "RD_ADDR": self.value(address * reads, pool),
            "RD_DATA": data,
            "WR_EN": concatenation(enables),
            "WR_ADDR": concatenation(places),
            "WR_DATA": self.value(width * writes, pool) if writes else "{ }",
        }
        name = f"\\mem_v2_{len(self.cells)}"
        self.cells += memory_lines(name, connections, address=address, **whole, **random_words)
        for port in range(reads):
            self.show("mem_v2", f"{data} [{(port + 1) * width - 1}:{port * width}]", width)

    def _memories(self) -> None:
        for pool in (None, self.own, self.common):
            self.memory(size=16, width=8, reads=1, writes=1, pool=pool)
            self.memory(size=5, width=33, reads=2, writes=2, pool=pool)
            self.memory(size=11, width=72, reads=1, writes=1, pool=pool, wide=1)
        self.memory(size=13, width=16, reads=2, writes=0)

    def _odd_cases(self) -> None:
        for kind in ("shl", "sshl", "shr", "sshr", "shift"):
            b_signed = kind == "shift"
            self.binary(kind, a=1, b=5, y=24, signed=(True, False))  # an optimised constant -1
            self.binary(kind, a=1, b=6, y=64, signed=(True, b_signed))
            self.binary(kind, a=8, b=8, y=8, signed=(False, b_signed))
            self.binary(kind, a=8, b=8, y=8, signed=(True, b_signed))
            self.binary(kind, a=40, b=7, y=16, signed=(True, b_signed))
            self.binary(kind, a=16, b=3, y=40, signed=(True, b_signed))
            self.binary(kind, a=32, b=40, y=32, signed=(False, b_signed))
        for kind in (*ARITHMETIC, *BITWISE, *ORDER, *EQUALITY):
            y = 1 if kind in ORDER + EQUALITY else 40
            for both in (True, False):
                self.binary(kind, a=1, b=20, y=y, signed=(both, both))
                self.binary(kind, a=64, b=3, y=y, signed=(both, both))
            if kind in (*BITWISE, "eq", "ne"):
                for both in (True, False):
                    self.binary(kind, a=20, b=100, y=90 if kind in BITWISE else 1, signed=(both, both))
        for kind in REDUCTIONS:
            self.unary(kind, a=130, y=1)
        for kind in ("not", "neg", "pos"):
            for signed in (False, True):
                self.unary(kind, a=1, y=32, signed=signed)
                if kind != "neg":
                    self.unary(kind, a=20, y=90, signed=signed)
        self.pmux(32, 8)
        self.pmux(90, 6)
        self.mux(130)
