"""Random programs of the vector and scalar engines. Unused bits of an instruction are random."""

from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from neuroncore_rtl.golden.arith import decode
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.run.elementwise import ElementwiseProgram, record_of
from neuroncore_rtl.run.harness.engines.elementwise import EngineRecord
from neuroncore_rtl.spec.config import VECTOR_UNITS, Config
from neuroncore_rtl.spec.formats import FORMATS, FP32, INT32, Format
from neuroncore_rtl.spec.functions import FUNCTIONS, TRIGONOMETRIC
from neuroncore_rtl.spec.isa import DIMENSIONS, Access, AluOp, Elementwise, Index, Opcode, Pointer, Storage, elementwise
from neuroncore_rtl.spec.isa.alu import BITWISE, FLOAT_ONLY, SLOW
from neuroncore_rtl.spec.isa.fields import Layout
from neuroncore_rtl.tb.stimulus import operands as stimulus
from neuroncore_rtl.tb.stimulus.elementwise_places import EIGHTS, Places, shape_of

__all__ = ["Choices", "Writer", "garbled", "random_elementwise_program", "random_records"]

Append = Callable[[Elementwise], object]
Memories = dict[Storage, np.ndarray]
INTEGERS = tuple(fmt for fmt in FORMATS.values() if not fmt.is_float)
_REMAINDERS = 8  # more would dominate a program's cycles


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Candidates of a random program: opcodes, formats, functions, and ALU operations.

    An instruction may have operands of different formats. `elements` is the number of elements per lane; None: a random
    number, mostly small. `related` is the share of tensors that overlap others instead of having separate addresses.
    `slow` allows the operations of the iterative units. The results of opcodes in `stochastic` are sometimes rounded
    stochastically.
    """

    opcodes: tuple[Opcode, ...] = tuple(Opcode)
    formats: tuple[Format, ...] = tuple(FORMATS.values())
    elements: int | None = None
    functions: tuple[int, ...] = tuple(function.code for function in FUNCTIONS.values())
    related: float = 0.3
    slow: bool = True
    operations: frozenset[AluOp] = frozenset(AluOp)
    stochastic: frozenset[Opcode] = elementwise.STOCHASTIC

    def on(self, config: Config) -> "Choices":
        without = set(VECTOR_UNITS) - config.vector_units
        opcodes = set().union(*(elementwise.UNIT_OPCODES.get(unit, ()) for unit in without))
        operations = set().union(*(elementwise.UNIT_OPERATIONS.get(unit, ()) for unit in without))
        functions = set() if "trigonometry" in config.scalar_units else {FUNCTIONS[name].code for name in TRIGONOMETRIC}
        units = {elementwise.VECTOR_OPCODES: config.vector_units, elementwise.SCALAR_OPCODES: config.scalar_units}
        rounding = set().union(*(of for of, has in units.items() if "random" in has))
        return replace(
            self,
            opcodes=tuple(opcode for opcode in self.opcodes if opcode not in opcodes),
            functions=tuple(code for code in self.functions if code not in functions),
            operations=self.operations - operations,
            stochastic=self.stochastic & rounding,
        )


def random_elementwise_program(
    rng: np.random.Generator, config: Config, count: int, choices: Choices, *, bytes_per_partition: int | None = None
) -> ElementwiseProgram:
    """Return a program of `count` instructions; `bytes_per_partition` of SBUF are used, a multiple of 4; None: all."""
    size = config.sbuf_bytes if bytes_per_partition is None else bytes_per_partition
    memories = {
        Storage.SBUF: rng.integers(0, 256, (config.partitions, size), np.uint8),
        Storage.PSUM: rng.integers(0, 256, (config.columns, config.psum_bytes), np.uint8),
    }
    program = Program(config)
    writer = Writer(rng, config, choices, memories, program.append)
    for _ in range(count):
        writer.add()
    records = random_records(rng, program)
    instructions = [entry.instruction for entry in program.entries]
    sbuf, psum = memories.values()
    return ElementwiseProgram(instructions=instructions, records=records, sbuf=sbuf, psum=psum)


def random_records(rng: np.random.Generator, program: Program) -> list[EngineRecord]:
    """Return the records of a program; unused bits and `overlap` of some are random."""
    return [_record(rng, entry, program.config) for entry in program.entries]


def _record(rng: np.random.Generator, entry: Entry, config: Config) -> EngineRecord:
    values = entry.instruction.fields(config)
    values["overlap"] &= int(rng.random() < 0.7)
    if rng.random() < 0.33:
        values = garbled(rng, Elementwise.layout, values, Elementwise.unused(values), Elementwise.signed)
    return replace(record_of(entry, config), word=Elementwise.pack(values))


def garbled(
    rng: np.random.Generator, layout: Layout, values: dict[str, int], unused: Set[str], signed: Set[str] = frozenset()
) -> dict[str, int]:
    """Return the values of a layout's fields, random for the unused ones."""
    changed = dict(values)
    for name, width in layout:
        if name in unused:
            bits = int.from_bytes(rng.bytes(8), "little") & ((1 << width) - 1)
            changed[name] = bits - (bits >> (width - 1) << width) if name in signed else bits
    return changed


class Writer:
    """A program under construction. `append` raises ValueError if the instruction is illegal."""

    def __init__(self, rng: np.random.Generator, config: Config, choices: Choices, memories: Memories, append: Append):
        self.rng, self.config, self.choices, self.append = rng, config, choices.on(config), append
        self.places = Places(rng, config, memories, choices.related)
        self.instructions: list[Elementwise] = []
        self.drawn: Counter[AluOp] = Counter()  # uses of each operation, to prefer rare ones
        self.summed = 0  # lanes with defined running sums

    def add(self) -> None:
        instruction = self._append(self._instruction())
        if instruction.opcode == Opcode.ACTIVATE:
            self.summed = instruction.partitions
        self.instructions.append(instruction)
        self.places.note(instruction)

    def _append(self, unplaced: Elementwise) -> Elementwise:
        values = unplaced.fields(self.config)
        for _ in range(100):
            placed = replace(unplaced, dst=self._destination(unplaced))
            if "result" in elementwise.uses(values):
                nothing = np.zeros(len(unplaced.shape), int)
                placed = replace(placed, b=self.places.place(placed, "b", unplaced.b.format, self._either(), nothing))
            try:
                self.append(placed)
                return placed
            except ValueError as refusal:
                # Two rules may be broken here: a destination must not partly overlap a source; running sums must have
                # been started.
                if not any(rule in str(refusal) for rule in ("must be apart", "must be an earlier instruction")):
                    raise
        raise ValueError("the memories must have room for a destination beside the sources")

    def _instruction(self) -> Elementwise:
        rng, config = self.rng, self.config
        opcode = self.choices.opcodes[rng.integers(len(self.choices.opcodes))]
        used = elementwise.uses({"opcode": opcode, "sum_store": int(rng.random() < 0.5)})
        follows = self._producer(opcode)
        shape = follows.shape if follows else self._shape(opcode)
        lanes = follows.partitions if follows else self._lanes(opcode)
        axes = int(rng.integers(1, DIMENSIONS + 1)) if opcode == Opcode.TENSOR_REDUCE else 0
        partial = Elementwise(opcode=opcode, partitions=lanes, shape=shape, dst=self._nowhere(shape), axes=axes)
        partial = replace(partial, sum_store=opcode == Opcode.ACTIVATE and "result" in used)
        formats = self._formats(opcode, used)
        fields = {}
        if follows:
            fields["a"] = follows.dst
            formats["a"] = follows.dst.format
            formats["dst"] = formats["a"] if opcode == Opcode.TRANSPOSE else formats["dst"]
        psum = None if "b" not in used else rng.choice(["a", "b", "none"], p=(0.25, 0.25, 0.5))
        if follows and "b" in used:
            psum = "none" if follows.dst.storage == Storage.PSUM else rng.choice(["b", "none"])
        for name in sorted(used & {"a", "b"} - fields.keys()):
            storage = Storage.PSUM if psum == name or (psum is None and rng.random() < 0.3) else Storage.SBUF
            fields[name] = self._source(partial, name, formats[name], storage, fields.get("a"))
        for name in sorted(used & {"s0", "s1"}):
            if rng.random() < 0.4:
                fields[name] = self._pointer(partial, formats[name], fields.get("a"))
        partial = replace(partial, **fields, dst=replace(partial.dst, format=formats["dst"]))
        if "result" in used:
            partial = replace(partial, b=replace(partial.dst, format=formats["b"]))
        integer = elementwise.is_integer(partial.fields(config))
        partial = self._operations(partial, used, integer)
        for name in sorted(used & {"s0", "s1"}):
            if name not in fields:
                partial = replace(partial, **{name: self._immediate(partial, name, integer)})
        return self._numbered(partial)

    def _producer(self, opcode: Opcode) -> Elementwise | None:
        """Return one of the last instructions, to use its result as the first source; None: use no earlier result."""
        rng = self.rng
        if not self.instructions or rng.random() > self.choices.related:
            return None
        last = self.instructions[-1 - int(rng.integers(min(3, len(self.instructions))))]
        fits = (
            last.opcode not in elementwise.OUTPUTS
            and last.opcode != Opcode.TENSOR_REDUCE
            and opcode not in (Opcode.TRANSPOSE, Opcode.BN_AGGR, *EIGHTS)
            and "a" in elementwise.uses({"opcode": opcode, "sum_store": 0})
        )
        return last if fits else None

    def _shape(self, opcode: Opcode) -> tuple[int, ...]:
        rng = self.rng
        most = self.choices.elements or int(rng.choice([1, 6, 24, 80], p=(0.1, 0.3, 0.5, 0.1)))
        dimensions = int(rng.integers(1, DIMENSIONS + 1))
        if opcode in EIGHTS:
            most = max(most, elementwise.VALUES8)
        if self.choices.elements is not None:
            counts = self._factors(most, dimensions)
        else:
            counts = [1] * dimensions
            for d in rng.permutation(dimensions):
                counts[d] = int(rng.integers(1, max(1, most // prod(counts)) + 1))
            if opcode in EIGHTS and prod(counts) < elementwise.VALUES8:
                counts[-1] = elementwise.VALUES8
        if opcode == Opcode.TRANSPOSE:
            block = elementwise.transpose_block(self.config)
            counts = [*self._factors(max(1, min(prod(counts), 3 * block) // block), dimensions)[1:], block]
        if opcode == Opcode.BN_AGGR:
            counts[-1] = 3 * -(-counts[-1] // 3)
        if opcode == Opcode.BN_STATS and prod(counts) > 512:
            counts = [512]
        return tuple(counts)

    def _factors(self, volume: int, dimensions: int) -> list[int]:
        counts = [1] * dimensions
        rest = volume
        for d in range(dimensions - 1, 0, -1):
            counts[d] = int(self.rng.choice([n for n in range(1, min(rest, 64) + 1) if rest % n == 0]))
            rest //= counts[d]
        counts[0] = rest
        return counts

    def _lanes(self, opcode: Opcode) -> int:
        partitions = min(self.config.partitions, self.config.columns)
        if opcode == Opcode.TRANSPOSE:
            block = elementwise.transpose_block(self.config)
            return block * int(self.rng.integers(1, self.config.partitions // block + 1))
        return partitions if self.rng.random() < 0.5 else int(self.rng.integers(1, self.config.partitions + 1))

    def _formats(self, opcode: Opcode, used: frozenset[str]) -> dict[str, Format]:
        rng = self.rng
        names = ["dst", *sorted(used & {"a", "b", "s0", "s1"}), *(["b"] if "result" in used else [])]
        available = self.choices.formats
        integers = [fmt for fmt in available if not fmt.is_float]
        if integers and rng.random() < 0.3:
            available = integers
        elif rng.random() < 0.4:
            available = [available[rng.integers(len(available))]]
        formats = {name: available[rng.integers(len(available))] for name in names}
        if opcode == Opcode.FIND_INDEX8:
            formats["dst"] = INTEGERS[rng.integers(len(INTEGERS))]
        if opcode == Opcode.TRANSPOSE:
            formats["dst"] = formats["a"]
        if opcode == Opcode.DROPOUT and rng.random() < 0.7:
            formats["s0"] = FP32
        return formats

    def _operations(self, partial: Elementwise, used: frozenset[str], integer: bool) -> Elementwise:
        rng, opcode = self.rng, partial.opcode
        legal = (
            self.choices.operations
            - (FLOAT_ONLY if integer else BITWISE)
            - (frozenset() if self.choices.slow else SLOW)
        )
        if prod(partial.shape) > _REMAINDERS:
            legal -= {AluOp.MOD, AluOp.FMOD}
        for name in sorted(used & {"op0", "op1"}):
            choice = sorted(elementwise.OPERATIONS.get((opcode, name), legal) & legal)
            if rng.random() < 0.7:
                fewest = min(self.drawn[operation] for operation in choice)
                choice = [operation for operation in choice if self.drawn[operation] == fewest]
            operation = choice[rng.integers(len(choice))]
            self.drawn[operation] += 1
            partial = replace(partial, **{name: operation})
        coin = [bool(rng.integers(2)) for _ in range(4)]
        return replace(
            partial,
            reverse0=coin[0] and "op0" in used,
            reverse1=coin[1] and "op1" in used,
            negate=coin[2] and opcode == Opcode.TENSOR_REDUCE,
            keep=coin[3] and opcode == Opcode.SELECT,
            stochastic=opcode in self.choices.stochastic and not integer and rng.random() < 0.3,
        )

    def _immediate(self, partial: Elementwise, name: str, integer: bool) -> int:
        rng, opcode = self.rng, partial.opcode
        goes_with = partial.a is not None and partial.a.format.is_float != integer and rng.random() < 0.4
        related = self._related(partial.a, integer) if goes_with else None
        if opcode == Opcode.DROPOUT:
            probability = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0, 2.0, -1.0, np.nan, 2.0**-32, 1 - 2.0**-24, rng.random()])
            return int(np.float32(probability).view(np.uint32))
        if related is not None:
            return related
        if integer:
            small = int(rng.integers(-3, 40)) & 0xFFFF_FFFF
            return small if rng.random() < 0.7 else int(rng.integers(1 << 32))
        if rng.random() < 0.6:
            if opcode == Opcode.ACTIVATE and name == "s0":
                return int(np.float32(rng.choice([1.0, -1.0, 0.5, 3.0])).view(np.uint32))
            return int(stimulus.ordinary_codes(rng, FP32, 1)[0])
        return int(stimulus.random_fp32(rng, 1)[0])

    def _related(self, access: Access, integer: bool) -> int:
        lane = self.rng.integers(0, 4, 1)
        code, fmt = self.places.elements(access, lane, (1,)).ravel(), access.format
        if integer:
            number = code.astype(np.int64)
            number -= (number >> fmt.bits - 1 & fmt.signed) << fmt.bits
            return int(stimulus.partners(self.rng, INT32, (number & 0xFFFF_FFFF).astype(np.uint32))[0])
        with np.errstate(all="ignore"):
            bits = stimulus.fp32_bits(decode(code, fmt))
        return int(stimulus.partners(self.rng, FP32, bits)[0])

    def _numbered(self, instruction: Elementwise) -> Elementwise:
        rng, opcode = self.rng, instruction.opcode
        changes = {}
        if opcode in (Opcode.IOTA, Opcode.AFFINE_SELECT) or instruction.stochastic or opcode == Opcode.DROPOUT:
            dimensions = len(instruction.shape)
            near = rng.random() < 0.5
            reach = 6 if near else 1 << 31
            base = int(rng.integers(-20, 20)) if near else int(rng.integers(-(1 << 63), (1 << 63) - 1))
            steps = tuple(int(step) for step in rng.integers(-reach, reach, dimensions))
            changes["index"] = Index(base=base, partition=int(rng.integers(-reach, reach)), steps=steps)
        if instruction.stochastic or opcode == Opcode.DROPOUT:
            changes |= {"seed": int(rng.integers(1 << 32)), "stream": int(rng.integers(1 << 32))}
        if opcode == Opcode.ACTIVATE:
            functions = self.choices.functions
            known = instruction.partitions <= self.summed
            changes["function"] = int(functions[rng.integers(len(functions))])
            changes["alpha"] = int(stimulus.ordinary_codes(rng, FP32, 1)[0])
            changes["sum_continue"] = bool(known and rng.random() < 0.4)
        return replace(instruction, **changes)

    def _either(self) -> Storage:
        return Storage.PSUM if self.rng.random() < 0.3 else Storage.SBUF

    @staticmethod
    def _nowhere(shape: tuple[int, ...]) -> Access:
        return Access(format=FP32, address=0, steps=(0,) * len(shape))

    def _source(self, partial: Elementwise, name: str, fmt: Format, storage: Storage, partner: Access | None) -> Access:
        access = self.places.place(partial, name, fmt, storage, self.places.steps(partial.shape, source=True))
        shape = shape_of(partial.fields(self.config), name, len(partial.shape))
        self.places.fill(access, shape, partial.opcode, name, partner)
        return access

    def _pointer(self, partial: Elementwise, fmt: Format, partner: Access | None) -> Pointer:
        single = replace(partial, opcode=Opcode.TENSOR_COPY, shape=(1,), dst=self._nowhere((1,)), axes=0)
        access = self.places.place(single, "a", fmt, Storage.SBUF, np.zeros(1, int))
        self.places.fill(access, (1,), partner=partner)
        return Pointer(format=fmt, address=access.address, partition=access.partition)

    def _destination(self, instruction: Elementwise) -> Access:
        """Return a destination: at free addresses, at random addresses, or at the addresses of a source."""
        rng, fmt = self.rng, instruction.dst.format
        whole = {"a"} if instruction.opcode == Opcode.MATCH_REPLACE8 else {"a", "b"}
        sources = [
            getattr(instruction, name) for name in sorted(whole & elementwise.uses(instruction.fields(self.config)))
        ]
        fitting = [access for access in sources if access.format.bits == fmt.bits]
        if fitting and instruction.opcode not in elementwise.OUTPUTS and rng.random() < self.choices.related:
            return replace(fitting[rng.integers(len(fitting))], format=fmt)
        return self.places.place(
            instruction, "dst", fmt, self._either(), self.places.steps(instruction.shape, source=False)
        )
