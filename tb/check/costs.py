"""What every instruction costs in cycles: as published for NeuronCore-v2, by our formula, and why they differ.

The one place of these figures: TEST=timing measures them, tests assert the formulas, and docs/vector_engine.md has the
table that :func:`table` makes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from neuroncore_rtl.hdl.arith.divide import Fp32Divider
from neuroncore_rtl.hdl.arith.power import Fp32Power
from neuroncore_rtl.hdl.elementwise.checker import Checker
from neuroncore_rtl.hdl.elementwise.fetch import Fetch
from neuroncore_rtl.hdl.elementwise.frontend import Frontend
from neuroncore_rtl.hdl.elementwise.store import Store
from neuroncore_rtl.hdl.scalar.engine import ScalarEngine
from neuroncore_rtl.hdl.vector.engine import SCAN_INTERVAL, VectorEngine
from neuroncore_rtl.hdl.vector.stats import Statistics
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.formats import FP32, INT32, Format
from neuroncore_rtl.spec.functions import function_named
from neuroncore_rtl.spec.isa import Access, AluOp, Elementwise, Index, Opcode, Pointer, Storage
from neuroncore_rtl.spec.isa.elementwise import OUTPUTS, VALUES8, transpose_block, uses

__all__ = [
    "CASES", "ELEMENTS", "Case", "dependent_period", "formula", "is_slow", "latency", "period", "step_cycles", "table",
]  # fmt: skip

ELEMENTS = (1, 8, 64, 512)
"""Elements a lane that are measured; the nearest that an instruction can take."""

_II = 64
"""The published cost of an instruction that does next to nothing."""

_UNITS = {AluOp.DIVIDE: Fp32Divider, AluOp.POWER: Fp32Power}


@dataclass(frozen=True, kw_only=True)
class Case:
    """An instruction whose cost is published, or that differs from one that is.

    Arguments:
        name: for people.
        build: makes it for a number of elements a lane.
        published: its published cost as people write it, N elements a lane; "" if there is none.
        cost: the same as a function of N; None if there is none.
        because: why ours is another.
        multiple: it takes multiples of so many elements; None: of a block of TRANSPOSE.
        least: it takes at least so many.
    """

    name: str
    build: Callable[[int, Config], Elementwise]
    published: str
    cost: Callable[[int], float] | None
    because: str
    multiple: int | None = 1
    least: int = 1

    def elements(self, wanted: int, config: Config) -> int:
        """Return the elements a lane that it can take, not more than `wanted` unless it must."""
        multiple = transpose_block(config) if self.multiple is None else self.multiple
        return max(self.least, multiple, wanted // multiple * multiple)


def step_interval(instruction: Elementwise) -> int:
    """Return the least cycles from a step of an instruction to the next, memories aside."""
    first, second = _slow_units(instruction)
    if first and second:
        return first.LATENCY + second.INTERVAL
    if first or second:
        return (first or second).INTERVAL
    if instruction.opcode == Opcode.BN_AGGR:
        return Statistics.SET_INTERVAL
    return SCAN_INTERVAL if instruction.opcode == Opcode.TENSOR_TENSOR_SCAN else 1


def is_slow(instruction: Elementwise) -> bool:
    """Return whether nothing else may be in the lanes."""
    return instruction.opcode == Opcode.BN_AGGR or any(_slow_units(instruction))


def step_cycles(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from the first step of an instruction to that of the next, if nothing else holds it up."""
    used = uses(instruction.fields(config))
    loads = sum(isinstance(getattr(instruction, name), Pointer) for name in ("s0", "s1") if name in used)
    if instruction.opcode in _SEARCHES:
        loads += VALUES8
    others = (loads + _results(instruction, config)) * step_interval(instruction)
    return others + prod(instruction.shape) * max(step_interval(instruction), _sbuf_reads(instruction, config))


def period(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction to the next of its kind, if they overlap."""
    if is_slow(instruction):
        return dependent_period(instruction, config)
    return max(Checker.INTERVAL, step_cycles(instruction, config))


def dependent_period(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction to the next of its kind, if each waits for the one before to be written."""
    reads = 1 if _results(instruction, config) else max(1, _sbuf_reads(instruction, config))
    # The last step waits for its reads alone, and nothing for the interval after it.
    return step_cycles(instruction, config) - max(step_interval(instruction), reads) + reads + drain(instruction)


def latency(instruction: Elementwise, config: Config) -> int:
    """Return the cycles from an instruction that an idle engine takes to the pulse that retires it."""
    return Frontend.LATENCY + dependent_period(instruction, config)


def drain(instruction: Elementwise) -> int:
    """Return the cycles from the last step of an instruction to the first one that waits for all writes."""
    lanes = ScalarEngine.LATENCY if instruction.opcode == Opcode.ACTIVATE else VectorEngine.LATENCY
    units = [Fp32Divider] if instruction.opcode == Opcode.BN_AGGR else filter(None, _slow_units(instruction))
    return Fetch.LATENCY + lanes + sum(unit.LATENCY - 1 for unit in units) + Store.LATENCY


_SEARCHES = (Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)


def _results(instruction: Elementwise, config: Config) -> int:
    """Return the steps of an instruction after its elements."""
    if instruction.opcode == Opcode.TRANSPOSE:
        return transpose_block(config)
    return OUTPUTS.get(instruction.opcode, int("result" in uses(instruction.fields(config))))


def _sbuf_reads(instruction: Elementwise, config: Config) -> int:
    """Return how many words of SBUF an element takes."""
    tensors = {"a"} if instruction.opcode in _SEARCHES else {"a", "b"}
    used = tensors & uses(instruction.fields(config))
    return sum(getattr(instruction, name).storage == Storage.SBUF for name in used)


def _slow_units(instruction: Elementwise) -> list:
    """Return the iterative unit of op0 and of op1, None where there is none."""
    if instruction.opcode == Opcode.RECIPROCAL:
        return [Fp32Divider, None]
    used = uses({"opcode": instruction.opcode, "sum_store": 0})
    return [_UNITS.get(getattr(instruction, name)) if name in used else None for name in ("op0", "op1")]


def _tensor(address: int, *, psum: bool = False, fmt: Format = FP32) -> Access:
    return Access(format=fmt, address=address, storage=Storage.PSUM if psum else Storage.SBUF)


_A, _B, _DST, _RESULT, _SCALARS = 0x0000, 0x1000, 0x2000, 0x3000, 0x3100
"""Addresses that leave 512 words for each tensor."""

_ONE = 0x3F80_0000
_POINTER = Pointer(format=FP32, address=_SCALARS)


def _case(name: str, opcode: Opcode, published: tuple, because: str, **options) -> Case:
    """Return a case; published: the cost in both forms; `options` are those of :class:`Case`, and fields."""
    own = {key: options.pop(key) for key in ("multiple", "least") if key in options}
    used = uses({"opcode": opcode, "sum_store": options.get("sum_store", 0)})

    def build(elements: int, config: Config) -> Elementwise:
        tensors = {"dst": _tensor(_DST), "a": _tensor(_A), "b": _tensor(_B)} | {"index": Index(partition=1, steps=(1,))}
        if "result" in used:
            tensors["b"] = _tensor(_RESULT)
        shape = (elements,)
        if opcode == Opcode.TRANSPOSE:
            block = transpose_block(config)
            shape = elements // block, block
            tensors |= {name: replace(tensors[name], steps=(block, 1)) for name in ("dst", "a", "b")}
            tensors["index"] = Index()
        lanes = min(config.columns, config.partitions)
        return Elementwise(opcode=opcode, partitions=lanes, shape=shape, overlap=True, **(tensors | options))

    return Case(name=name, build=build, published=published[0], cost=published[1], because=because, **own)


_NONE = ("", None)
_PLAIN = (f"max({_II}, N)", lambda n: max(_II, n))
_DOUBLE = (f"max({_II}, 2N)", lambda n: max(_II, 2 * n))
_SUMMED = (f"max({_II}, N) + {_II}", lambda n: max(_II, n) + _II)
_BARE, _BARE_DOUBLE = ("N", lambda n: n), ("2N", lambda n: 2 * n)
_SOFTWARE = ("150 + N", lambda n: 150 + n)
"""Published costs, as people write them and as functions of N."""

_MINIMUM = f"the checker takes an instruction in {Checker.INTERVAL} cycles"
_NO_MINIMUM = f"no minimum of {_II}: {_MINIMUM}"
_TWO_READS = "two words from one SBUF port; " + _NO_MINIMUM
_UNIT = f"one division in {Fp32Divider.INTERVAL} cycles a lane, and the lanes are empty before and after"
_POWER = f"one power in {Fp32Power.INTERVAL} cycles a lane, and the lanes are empty before and after"
_RESULTS = "the results leave a cycle each; " + _NO_MINIMUM
_VALUES = "the 8 values are read first, a cycle each"
_GPSIMD = "the vector engine does it, not GpSimd behind 150 cycles of software"

_O = Opcode
_PSUM_B, _MADD = _tensor(_B, psum=True), {"op0": AluOp.MULTIPLY, "op1": AluOp.ADD}
_EXP = {"s0": _ONE, "function": function_named("exp").code}

CASES: tuple[Case, ...] = (
    _case("tensor_copy", _O.TENSOR_COPY, _PLAIN, _NO_MINIMUM),
    _case("tensor_copy from PSUM", _O.TENSOR_COPY, _PLAIN, _NO_MINIMUM, a=_tensor(_A, psum=True)),
    _case("memset", _O.MEMSET, _PLAIN, _NO_MINIMUM, s0=_ONE),
    _case("tensor_tensor", _O.TENSOR_TENSOR, _DOUBLE, _TWO_READS, op0=AluOp.ADD),
    _case("tensor_tensor, one from PSUM", _O.TENSOR_TENSOR, _PLAIN, _NO_MINIMUM, op0=AluOp.ADD, b=_PSUM_B),
    _case("tensor_tensor, divide", _O.TENSOR_TENSOR, _NONE, _UNIT, op0=AluOp.DIVIDE),
    _case("tensor_tensor, power", _O.TENSOR_TENSOR, _NONE, _POWER, op0=AluOp.POWER),
    _case("tensor_scalar", _O.TENSOR_SCALAR, _PLAIN, _NO_MINIMUM, **_MADD),
    _case(
        "tensor_scalar, scalars in SBUF", _O.TENSOR_SCALAR, _PLAIN,
        "each scalar is read first, a cycle; " + _NO_MINIMUM, **_MADD, s0=_POINTER, s1=_POINTER,
    ),
    _case("scalar_tensor_tensor", _O.SCALAR_TENSOR_TENSOR, _BARE_DOUBLE, _MINIMUM, **_MADD),
    _case(
        "scalar_tensor_tensor, one from PSUM", _O.SCALAR_TENSOR_TENSOR, _NONE, "a port for each source", **_MADD,
        b=_PSUM_B,
    ),
    _case("tensor_scalar_reduce", _O.TENSOR_SCALAR_REDUCE, _SUMMED, "the result leaves in one cycle", **_MADD),
    _case("tensor_reduce", _O.TENSOR_REDUCE, _BARE, _MINIMUM, op0=AluOp.ADD, axes=1),
    _case("tensor_tensor_scan", _O.TENSOR_TENSOR_SCAN, _DOUBLE, _TWO_READS, **_MADD),
    _case("bn_stats", _O.BN_STATS, _PLAIN, _RESULTS),
    _case(
        "bn_aggr", _O.BN_AGGR, (f"max({_II}, 13N / 3)", lambda n: max(_II, 13 * n / 3)),
        "a triple takes three steps of the divider", multiple=3,
    ),
    _case("reciprocal", _O.RECIPROCAL, (f"max({_II}, 8N)", lambda n: max(_II, 8 * n)), _UNIT),
    _case("select", _O.SELECT, _BARE_DOUBLE, _MINIMUM),
    _case("select, one from PSUM", _O.SELECT, _PLAIN, _NO_MINIMUM, b=_PSUM_B),
    _case("affine_select", _O.AFFINE_SELECT, _SOFTWARE, _GPSIMD, op0=AluOp.IS_GT),
    _case("iota", _O.IOTA, _SOFTWARE, _GPSIMD, dst=_tensor(_DST, fmt=INT32)),
    _case("transpose", _O.TRANSPOSE, _PLAIN, "the last block leaves when all of it has been read", multiple=None),
    _case("max8", _O.MAX8, _BARE, "the 8 results leave a cycle each", least=VALUES8),
    _case(
        "find_index8", _O.FIND_INDEX8, _BARE, _VALUES + ", and the 8 results leave so", least=VALUES8,
        dst=_tensor(_DST, fmt=INT32),
    ),
    _case("match_replace8", _O.MATCH_REPLACE8, _NONE, _VALUES, least=VALUES8),
    _case("dropout", _O.DROPOUT, _PLAIN, _NO_MINIMUM, s0=_ONE),
    _case("activation", _O.ACTIVATE, _PLAIN, _NO_MINIMUM, **_EXP),
    _case("activation with sum", _O.ACTIVATE, _SUMMED, "the sum leaves in one cycle", **_EXP, sum_store=True),
)  # fmt: skip
"""Every instruction, in the order of its opcodes."""


def formula(case: Case, config: Config) -> str:
    """Return our cost of a case, back to back, as a function of N in words; found from :func:`period` itself."""
    low, high = (case.elements(wanted, config) for wanted in ELEMENTS[-2:])
    costs = [period(case.build(elements, config), config) for elements in (low, high)]
    slope = Fraction(costs[1] - costs[0], high - low)
    constant = costs[1] - slope * high
    factor = "" if slope.numerator == 1 else str(slope.numerator)
    line = f"{factor}N" + ("" if slope.denominator == 1 else f" / {slope.denominator}")
    line += f" + {constant}" if constant > 0 else f" - {-constant}" if constant else ""
    return line if is_slow(case.build(low, config)) else f"max({Checker.INTERVAL}, {line})"


def table() -> str:
    """Return the table of docs/vector_engine.md, in Markdown, for the machine of preset `full`."""
    config = PRESETS["full"]
    lines = ["| instruction | NeuronCore-v2 | here | why |", "|---|---|---|---|"]
    for case in CASES:
        lines.append(f"| {case.name} | {case.published or '-'} | {formula(case, config)} | {case.because} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
