"""Checker of the vector and scalar engines' instructions; derives a job from each legal one.

Rules, tables and constants are those of `spec.isa.elementwise`. The condition of each rule may assume that the lower
ones hold. An instruction takes four cycles: one per access, because an extent needs four multipliers, and one for the
verdict.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value, signed

from neuroncore_rtl.hdl.arith.pipeline import delayed
from neuroncore_rtl.hdl.elementwise.instruction import ElementwiseInstruction
from neuroncore_rtl.hdl.elementwise.job import ElementwiseJobLayout, derive_job, opcode_in, pointer, uses_operand
from neuroncore_rtl.hdl.memory.port import OnChipStorage
from neuroncore_rtl.hdl.primitives import checker
from neuroncore_rtl.hdl.primitives.checker import lowest_rule
from neuroncore_rtl.spec import isa, timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FORMATS, FP32, INT32, UINT32
from neuroncore_rtl.spec.functions import FUNCTIONS, TRIGONOMETRIC
from neuroncore_rtl.spec.isa import elementwise
from neuroncore_rtl.spec.isa.access import DIMENSIONS, POINTER_FIELDS, storage_bytes, storage_partitions
from neuroncore_rtl.spec.isa.alu import BITWISE, FLOAT_ONLY, AluOp, Arithmetic
from neuroncore_rtl.spec.isa.fields import pack
from neuroncore_rtl.spec.isa.rule import Rule

__all__ = ["ElementwiseChecker"]

_ACCESSES = ("dst", "a", "b")

_FLOATS = tuple(f.code for f in FORMATS.values() if f.is_float)

_KNOWN = tuple(f.code for f in FORMATS.values())


@dataclass
class _Operand:
    """Access or pointer of the instruction: whether the instruction uses it, and the fields that describe it."""

    name: str
    used: Value
    address: Value
    quadrant: Value
    storage: Value
    code: Value
    size: Value


class ElementwiseChecker(checker.Checker):
    """Checker of element-wise instructions. Throughput: one per `INTERVAL` cycles.

    With `config.port_latency` the check takes two more cycles, for registers in the range check, and an instruction is
    accepted only after the previous one has been forwarded.

    Arguments:
        config: the machine's parameters.
        opcodes: opcodes of the engine.
        slow, interval: see `hdl.elementwise.job.derive_job`.

    Ports: see `hdl.primitives.checker.Checker`.
    """

    LATENCY = timing.ELEMENTWISE_CHECKER_LATENCY
    """Cycles from acceptance at i to the job at o, or to the error, without `port_latency`."""

    INTERVAL = timing.ELEMENTWISE_CHECKER_INTERVAL
    """Cycles from one instruction to the next, without `port_latency`."""

    def __init__(self, config: Config, opcodes: Iterable[isa.Opcode], slow: Callable, interval: Callable):
        self.config = config
        absent = elementwise.UNIT_OPCODES.keys() - config.vector_units
        self.opcodes = frozenset(opcodes).difference(*(elementwise.UNIT_OPCODES[unit] for unit in absent))
        self.slow = slow
        self.interval = interval
        super().__init__(ElementwiseInstruction, ElementwiseJobLayout)

    @property
    def latency(self) -> int:
        """Cycles from an instruction accepted at `i` to its job at `o`, or to `error`."""
        return self.LATENCY + timing.ELEMENTWISE_CHECKER_REGISTERS[self.config.port_latency]

    def elaborate(self, platform):
        m = Module()
        instruction = Signal(ElementwiseInstruction, reset_less=True)
        held = Signal()  # an instruction is being checked
        # With registers, acceptance is independent of forwarding in the same cycle.
        back_to_back = not self.config.port_latency
        last_turn = self.INTERVAL - 1 + timing.ELEMENTWISE_CHECKER_REGISTERS[self.config.port_latency]
        turn = Signal(range(last_turn + 1))
        judged = Signal(ElementwiseJobLayout, reset_less=True)
        verdict, legal, taken = Signal(), Signal(), Signal()
        job = derive_job(m, self.config, instruction, self.slow, self.interval)
        broken = self._judge(m, instruction, job, turn)
        cause = lowest_rule(m, broken)
        m.d.comb += [
            verdict.eq(held & (turn == last_turn) & (~self.o.valid | (self.o.ready & back_to_back))),
            legal.eq(~_any(broken.values())),
            self.i.ready.eq(~self.error.valid & (~held | (verdict & legal & back_to_back))),
            taken.eq(self.i.valid & self.i.ready),
            self.busy.eq(held | self.o.valid),
            self.o.payload.eq(judged),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(held & (turn != last_turn)):
            m.d.sync += turn.eq(turn + 1)
        with m.If(verdict):
            m.d.sync += [held.eq(0), judged.eq(job), self.o.valid.eq(legal)]
        with m.If(taken):
            m.d.sync += [held.eq(1), turn.eq(0), instruction.eq(self.i.payload)]
        self.refuse(m, verdict & ~legal, cause)
        return m

    def _judge(self, m: Module, instruction, job, turn: Signal) -> dict[Rule, Value]:
        """Return for each rule whether the instruction breaks it, valid in the last cycle of the check."""
        operands = self._operands(m, instruction, job)
        broken = {
            Rule.OPCODE: ~opcode_in(instruction, self.opcodes),
            Rule.FORMAT: _any(place.used & ~place.code.matches(*_KNOWN) for place in operands),
            Rule.OPERATION: self._operation(m, instruction),
            Rule.ARITHMETIC: self._arithmetic(m, instruction, job),
            Rule.DESTINATION: (opcode_in(instruction, {isa.Opcode.FIND_INDEX8}) & operands[0].code.matches(*_FLOATS))
            | (opcode_in(instruction, {isa.Opcode.TRANSPOSE}) & (operands[0].code != operands[1].code)),
            Rule.ROUNDING: instruction.stochastic & (~opcode_in(instruction, self._stochastic()) | job.integer),
            Rule.SHAPE: self._shape(m, instruction),
            Rule.PARTITIONS: self._partitions(m, instruction, operands),
            Rule.PORTS: uses_operand(instruction, "b")
            & (instruction.a_storage == OnChipStorage.PSUM)
            & (instruction.b_storage == OnChipStorage.PSUM),
            Rule.ALIGNMENT: _any(place.used & _misaligned(place) for place in operands),
            Rule.RANGE: self._range(m, instruction, job, operands, turn),
        }
        m.d.comb += [
            job.integer.eq(self._integer(instruction, operands)),
            job.uint32.eq(job.integer & self._unsigned(instruction, operands)),
        ]
        for rule in broken.keys() - {Rule.RANGE}:
            late = Signal(name=f"breaks_{rule.name.lower()}")
            m.d.sync += late.eq(broken[rule])
            broken[rule] = late
        return broken

    @staticmethod
    def _operands(m: Module, instruction, job) -> list[_Operand]:
        uses = {"dst": 1, "a": job.reads_a, "b": uses_operand(instruction, "b") | job.at_b}
        return [
            _Operand(
                name,
                Value.cast(uses[name]),
                instruction[f"{name}_address"],
                instruction[f"{name}_quadrant"],
                instruction[f"{name}_storage"].as_value(),
                instruction[f"{name}_dtype"].as_value(),
                job[f"size_{name}"],
            )
            for name in _ACCESSES
        ] + [
            _Operand(
                f"s{number}",
                job[f"loads{number}"],
                pointer(instruction, number).address,
                pointer(instruction, number).quadrant,
                Value.cast(OnChipStorage.SBUF),
                pointer(instruction, number).dtype.as_value(),
                job[f"size_s{number}"],
            )
            for number in (0, 1)
        ]

    @staticmethod
    def _integer(instruction, operands: list[_Operand]) -> Value:
        """Return whether the instruction computes with integers.

        The logic is a table made by `spec.isa.elementwise.is_integer`.
        """
        pointed = {"pointer0": 1, "pointer1": 1}
        integers = elementwise.Elementwise.unpack(0) | pointed | _formats(INT32.code, *(one.name for one in operands))
        able = {o for o in isa.Opcode if elementwise.is_integer(integers | {"opcode": o})}
        floats = []
        for place in operands:
            values = integers | _formats(FP32.code, place.name)
            matters = {o for o in able if not elementwise.is_integer(values | {"opcode": o})}
            floats.append(place.used & opcode_in(instruction, matters) & place.code.matches(*_FLOATS))
        return opcode_in(instruction, able) & ~_any(floats)

    @staticmethod
    def _unsigned(instruction, operands: list[_Operand]) -> Value:
        """Return whether the instruction's integers are UINT32.

        The logic is a table made by `spec.isa.elementwise.arithmetic_of`.
        """
        pointed = {"pointer0": 1, "pointer1": 1}
        signed = elementwise.Elementwise.unpack(0) | pointed | _formats(INT32.code, *(one.name for one in operands))
        found = []
        for place in operands:
            values = signed | _formats(UINT32.code, place.name)
            decided = {o for o in isa.Opcode if elementwise.arithmetic_of(values | {"opcode": o}) == Arithmetic.UINT32}
            found.append(place.used & opcode_in(instruction, decided) & (place.code == UINT32.code))
        return _any(found)

    def _stochastic(self) -> frozenset[isa.Opcode]:
        """Return the opcodes that support stochastic rounding with this machine's units."""
        able = elementwise.STOCHASTIC
        for opcodes, units in ((isa.VECTOR_OPCODES, "vector_units"), (isa.SCALAR_OPCODES, "scalar_units")):
            if "random" not in getattr(self.config, units):
                able -= opcodes
        return able

    def _operation(self, m: Module, instruction) -> Value:
        absent = elementwise.UNIT_OPERATIONS.keys() - self.config.vector_units
        missing = sorted(op for unit in absent for op in elementwise.UNIT_OPERATIONS[unit])
        wrong = []
        for name in ("op0", "op1"):
            code = instruction[name].as_value()
            allowed = Signal(name=f"{name}_allowed")
            m.d.comb += allowed.eq(code.matches(*(int(op) for op in AluOp)))
            for (opcode, operand), operations in elementwise.OPERATIONS.items():
                if operand == name:
                    with m.If(opcode_in(instruction, {opcode})):
                        m.d.comb += allowed.eq(code.matches(*(int(op) for op in sorted(operations))))
            wrong.append(uses_operand(instruction, name) & (~allowed | code.matches(*map(int, missing))))
        unknown = instruction.function >= elementwise.FUNCTION_COUNT
        if "trigonometry" not in self.config.scalar_units:
            unknown |= instruction.function.matches(*(FUNCTIONS[name].code for name in TRIGONOMETRIC))
        return _any(wrong) | (opcode_in(instruction, {isa.Opcode.ACTIVATE}) & unknown)

    @staticmethod
    def _arithmetic(m: Module, instruction, job) -> Value:
        wrong = []
        for name in ("op0", "op1"):
            code = instruction[name].as_value()
            float_only, bitwise = (code.matches(*(int(op) for op in sorted(ops))) for ops in (FLOAT_ONLY, BITWISE))
            wrong.append(uses_operand(instruction, name) & Mux(job.integer, float_only, bitwise))
        return _any(wrong)

    def _shape(self, m: Module, instruction) -> Value:
        """Return whether the counts of elements are illegal.

        The number of elements takes two cycles: the products of two counts each, then the product of both, saturated.
        It is compared with its limits in the next cycle.
        """
        counts = [instruction[f"count{d}"] for d in range(DIMENSIONS)]
        low, high = elementwise.SEARCH_ELEMENTS
        most = max(high, elementwise.STATS_ELEMENTS)
        factors = []
        for number, (first, second) in enumerate(zip(counts[::2], counts[1::2], strict=True)):
            product = Signal(32, name=f"product{number}", reset_less=True)
            factor = Signal(range(most + 2), name=f"factor{number}")
            m.d.sync += product.eq(first * second)
            m.d.comb += factor.eq(Mux(product > most, most + 1, product))
            factors.append(factor)
        volume = Signal(2 * len(factors[0]), reset_less=True)
        m.d.sync += volume.eq(factors[0] * factors[1])
        block = elementwise.transpose_block(self.config)
        searches = {isa.Opcode.MAX8, isa.Opcode.FIND_INDEX8, isa.Opcode.MATCH_REPLACE8}
        return _any(
            [
                _any(count == 0 for count in counts),
                opcode_in(instruction, {isa.Opcode.TENSOR_REDUCE})
                & ((instruction.axes < 1) | (instruction.axes > DIMENSIONS)),
                opcode_in(instruction, {isa.Opcode.TRANSPOSE}) & (counts[0] != block),
                opcode_in(instruction, {isa.Opcode.BN_STATS}) & (volume > elementwise.STATS_ELEMENTS),
                opcode_in(instruction, {isa.Opcode.BN_AGGR}) & ~_is_multiple_of_3(m, counts[0]),
                opcode_in(instruction, searches) & ((volume < low) | (volume > high)),
            ]
        )

    def _partitions(self, m: Module, instruction, operands: list[_Operand]) -> Value:
        config, lanes = self.config, instruction.partitions
        block = elementwise.transpose_block(config)
        wrong = [
            lanes < 1,
            opcode_in(instruction, {isa.Opcode.TRANSPOSE})
            & ~lanes.matches(*range(block, config.partitions + 1, block)),
        ]
        sbuf, psum = (storage_partitions(storage, config) for storage in (isa.Storage.SBUF, isa.Storage.PSUM))
        for place in operands:
            end = Signal(14, name=f"{place.name}_end")
            m.d.comb += end.eq(place.quadrant * config.quadrant + lanes)
            beyond = end > Mux(place.storage, psum, sbuf)
            crosses_half = (lanes > 2 * config.quadrant) & (place.quadrant != 0)
            crosses_quarter = (lanes > config.quadrant) & place.quadrant[0]
            wrong.append(place.used & (beyond | crosses_half | crosses_quarter))
        return _any(wrong)

    def _range(self, m: Module, instruction, job, operands: list[_Operand], turn: Signal) -> Value:
        """Return whether an access or pointer is out of range.

        In each cycle the extent of one access is multiplied, and compared in the next cycle; with `port_latency` both
        are one cycle later.
        """
        spans = []
        selected = {name: Signal(place.shape(), name=f"turn_{name}") for name, place in _turn_fields(operands[0])}
        late = {name: Signal.like(field, name=f"judged_{name}", reset_less=True) for name, field in selected.items()}
        steps = [Signal(signed(16), name=f"turn_step{d}") for d in range(DIMENSIONS)]
        counts = [Signal(16, name=f"turn_count{d}") for d in range(DIMENSIONS)]
        with m.Switch(turn):
            for number, place in enumerate(operands[: len(_ACCESSES)]):
                with m.Case(number):
                    m.d.comb += [selected[name].eq(field) for name, field in _turn_fields(place)]
                    for d in range(DIMENSIONS):
                        m.d.comb += [
                            steps[d].eq(instruction[f"{place.name}_step{d}"]),
                            counts[d].eq(self._count(instruction, job, place.name, d)),
                        ]
            with m.Default():
                pass
        cycles = self.config.port_latency
        selected = {name: delayed(m, field, cycles, field.name) for name, field in selected.items()}
        for d in range(DIMENSIONS):
            step, count = (delayed(m, value, cycles, value.name) for value in (steps[d], counts[d]))
            span = Signal(signed(33), name=f"span{d}", reset_less=True)
            m.d.sync += span.eq((count - 1)[:16] * step)
            spans.append(span)
        m.d.sync += [late[name].eq(field) for name, field in selected.items()]

        low, high, first, end = (Signal(signed(40), name=name) for name in ("low", "high", "first", "end"))
        outside, seen = Signal(), Signal()
        m.d.comb += [
            low.eq(sum(Mux(span < 0, span, 0) for span in spans)),
            high.eq(sum(Mux(span < 0, 0, span) for span in spans) + 1),
            first.eq(late["address"] + (low << late["size"])),
            end.eq(late["address"] + (high << late["size"])),
        ]
        sbuf, psum = (storage_bytes(storage, self.config) for storage in (isa.Storage.SBUF, isa.Storage.PSUM))
        first, end = delayed(m, first, cycles, "first"), delayed(m, end, cycles, "end")
        late = {name: delayed(m, late[name], cycles, name) for name in ("used", "storage")}
        m.d.comb += [
            outside.eq(late["used"] & ((first < 0) | (end > Mux(late["storage"], psum, sbuf)))),
        ]
        with m.If(turn <= 2 * cycles):
            m.d.sync += seen.eq(0)
        with m.Else():
            m.d.sync += seen.eq(seen | outside)
        pointers = [
            place.used & (place.address + (Value.cast(1) << place.size) > sbuf) for place in operands[len(_ACCESSES) :]
        ]
        return seen | outside | _any(pointers)

    @staticmethod
    def _count(instruction, job, name: str, d: int) -> Value:
        """Return the number of elements of the access `name` in dimension `d`; see `spec.isa.elementwise.counts_of`."""
        count = instruction[f"count{d}"]
        if name == "dst":
            outputs = {o: n if d == 0 else 1 for o, n in elementwise.OUTPUTS.items()}
            for opcode, number in outputs.items():
                count = Mux(opcode_in(instruction, {opcode}), number, count)
            count = Mux(job.reduces & (d < instruction.axes), 1, count)
        if name == "b":
            count = Mux(job.values, elementwise.VALUES8 if d == 0 else 1, count)
            count = Mux(job.at_b, 1, count)
        return count


def _turn_fields(place: _Operand) -> list[tuple[str, Value]]:
    """Return the fields of an access that its range check needs, besides counts and steps."""
    return [(name, getattr(place, name)) for name in ("used", "address", "storage", "size")]


def _formats(code: int, *names: str) -> dict[str, int]:
    """Return the instruction fields that give the named accesses and pointers the format `code`."""
    values = {}
    for name in names:
        if name in _ACCESSES:
            values[f"{name}_dtype"] = code
        else:
            values[f"scalar{name[1:]}"] = pack(POINTER_FIELDS, {"address": 0, "quadrant": 0, "dtype": code})
    return values


def _any(conditions: Iterable[Value]) -> Value:
    return Cat(*conditions).any()


def _misaligned(place: _Operand) -> Value:
    return Mux(place.size[1], place.address[:2].any(), place.size[0] & place.address[0])


def _is_multiple_of_3(m: Module, number: Value) -> Signal:
    """Return whether a 16-bit number is a multiple of 3, from the sum of its base-4 digits, since 4 mod 3 = 1."""
    digits, rest = Signal(5), Signal(3)
    m.d.comb += [
        digits.eq(sum(number.word_select(place, 2) for place in range(8))),
        rest.eq(digits[0:2] + digits[2:4] + digits[4]),
    ]
    return rest.matches(0, 3, 6)
