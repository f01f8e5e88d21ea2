"""Cycles of each instruction: as published for NeuronCore-v2, by our formula, and the reason for a difference."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from neuroncore_rtl.spec import timing
from neuroncore_rtl.spec.config import PRESETS, Config
from neuroncore_rtl.spec.costs import checker_period, is_slow, period
from neuroncore_rtl.spec.formats import FP32, INT32, Format
from neuroncore_rtl.spec.functions import function_named
from neuroncore_rtl.spec.isa import Access, AluOp, Elementwise, Index, Opcode, Pointer, Storage
from neuroncore_rtl.spec.isa.elementwise import VALUES8, transpose_block, uses

__all__ = ["CASES", "ELEMENTS", "CostCase", "cost_table", "formula"]

ELEMENTS = (1, 8, 64, 512)
"""Numbers of elements per lane to measure; an instruction that does not support a number uses its nearest legal one."""

_II = 64  # published cost of the shortest instruction, in cycles


@dataclass(frozen=True, kw_only=True)
class CostCase:
    """An instruction, or a variant of an instruction, with its published cost.

    Arguments:
        name: name in tables.
        build: makes the instruction for a number of elements per lane.
        published: published cost as text, for N elements per lane; "" if not published.
        cost: published cost in cycles as a function of N; None if not published.
        because: reason for a different cost here.
        multiple: the number of elements must be a multiple of this; None: a multiple of TRANSPOSE's block size.
        least: smallest number of elements.
    """

    name: str
    build: Callable[[int, Config], Elementwise]
    published: str
    cost: Callable[[int], float] | None
    because: str
    multiple: int | None = 1
    least: int = 1

    def elements(self, wanted: int, config: Config) -> int:
        multiple = transpose_block(config) if self.multiple is None else self.multiple
        return max(self.least, multiple, wanted // multiple * multiple)


def _tensor(address: int, *, psum: bool = False, fmt: Format = FP32) -> Access:
    return Access(format=fmt, address=address, storage=Storage.PSUM if psum else Storage.SBUF)


_A, _B, _DST, _RESULT, _SCALARS = 0x0000, 0x1000, 0x2000, 0x3000, 0x3100
"""Addresses of the tensors; each has room for 512 words."""

_ONE = 0x3F80_0000
_POINTER = Pointer(format=FP32, address=_SCALARS)


def _case(name: str, opcode: Opcode, published: tuple, because: str, **options) -> CostCase:
    """Return a case; `published`: cost as text and function; `options`: fields of `CostCase` or instruction."""
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

    return CostCase(name=name, build=build, published=published[0], cost=published[1], because=because, **own)


_NONE = ("", None)
_PLAIN = (f"max({_II}, N)", lambda n: max(_II, n))
_DOUBLE = (f"max({_II}, 2N)", lambda n: max(_II, 2 * n))
_SUMMED = (f"max({_II}, N) + {_II}", lambda n: max(_II, n) + _II)
_BARE, _BARE_DOUBLE = ("N", lambda n: n), ("2N", lambda n: 2 * n)
_SOFTWARE = ("150 + N", lambda n: 150 + n)
_MINIMUM = f"the checker accepts an instruction every {timing.ELEMENTWISE_CHECKER_INTERVAL} cycles"
_NO_MINIMUM = f"no minimum of {_II}: {_MINIMUM}"
_TWO_READS = "two words from one SBUF port; " + _NO_MINIMUM
_UNIT = f"one division per {timing.DIVIDE_INTERVAL} cycles and lane, and the lanes drain before and after"
_POWER = f"one power per {timing.POWER_INTERVAL} cycles and lane, and the lanes drain before and after"
_REMAINDER = f"one remainder per {timing.REMAINDER_INTERVAL} cycles and lane, and the lanes drain before and after"
_RESULTS = "one cycle per result; " + _NO_MINIMUM
_VALUES = "the 8 values are read first, one cycle each"
_GPSIMD = "the vector engine executes it, not GpSimd software with an overhead of 150 cycles"
_O = Opcode
_PSUM_B, _MADD = _tensor(_B, psum=True), {"op0": AluOp.MULTIPLY, "op1": AluOp.ADD}
_EXP = {"s0": _ONE, "function": function_named("exp").code}

CASES: tuple[CostCase, ...] = (
    _case("tensor_copy", _O.TENSOR_COPY, _PLAIN, _NO_MINIMUM),
    _case("tensor_copy from PSUM", _O.TENSOR_COPY, _PLAIN, _NO_MINIMUM, a=_tensor(_A, psum=True)),
    _case("memset", _O.MEMSET, _PLAIN, _NO_MINIMUM, s0=_ONE),
    _case("tensor_tensor", _O.TENSOR_TENSOR, _DOUBLE, _TWO_READS, op0=AluOp.ADD),
    _case("tensor_tensor, one from PSUM", _O.TENSOR_TENSOR, _PLAIN, _NO_MINIMUM, op0=AluOp.ADD, b=_PSUM_B),
    _case("tensor_tensor, divide", _O.TENSOR_TENSOR, _NONE, _UNIT, op0=AluOp.DIVIDE),
    _case("tensor_tensor, power", _O.TENSOR_TENSOR, _NONE, _POWER, op0=AluOp.POWER),
    _case("tensor_tensor, mod", _O.TENSOR_TENSOR, _NONE, _REMAINDER, op0=AluOp.MOD),
    _case("tensor_scalar", _O.TENSOR_SCALAR, _PLAIN, _NO_MINIMUM, **_MADD),
    _case(
        "tensor_scalar, scalars in SBUF", _O.TENSOR_SCALAR, _PLAIN,
        "each scalar is read first, one cycle each; " + _NO_MINIMUM, **_MADD, s0=_POINTER, s1=_POINTER,
    ),
    _case("scalar_tensor_tensor", _O.SCALAR_TENSOR_TENSOR, _BARE_DOUBLE, _MINIMUM, **_MADD),
    _case(
        "scalar_tensor_tensor, one from PSUM", _O.SCALAR_TENSOR_TENSOR, _NONE, "one port per source", **_MADD,
        b=_PSUM_B,
    ),
    _case("tensor_scalar_reduce", _O.TENSOR_SCALAR_REDUCE, _SUMMED, "the result takes one cycle", **_MADD),
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
    _case("transpose", _O.TRANSPOSE, _PLAIN, "the last block is written after it has been read", multiple=None),
    _case("max8", _O.MAX8, _BARE, "one cycle per result for 8 results", least=VALUES8),
    _case(
        "find_index8", _O.FIND_INDEX8, _BARE,
        "the 8 values are read first and the 8 results written last, one cycle each", least=VALUES8,
        dst=_tensor(_DST, fmt=INT32),
    ),
    _case("match_replace8", _O.MATCH_REPLACE8, _NONE, _VALUES, least=VALUES8),
    _case("dropout", _O.DROPOUT, _PLAIN, _NO_MINIMUM, s0=_ONE),
    _case("activation", _O.ACTIVATE, _PLAIN, _NO_MINIMUM, **_EXP),
    _case("activation with sum", _O.ACTIVATE, _SUMMED, "the sum takes one cycle", **_EXP, sum_store=True),
)  # fmt: skip


def formula(case: CostCase, config: Config) -> str:
    """Return our cost as a function of N in text, derived from `period`."""
    low, high = (case.elements(wanted, config) for wanted in ELEMENTS[-2:])
    costs = [period(case.build(elements, config), config) for elements in (low, high)]
    slope = Fraction(costs[1] - costs[0], high - low)
    constant = costs[1] - slope * high
    factor = "" if slope.numerator == 1 else str(slope.numerator)
    line = f"{factor}N" + ("" if slope.denominator == 1 else f" / {slope.denominator}")
    line += f" + {constant}" if constant > 0 else f" - {-constant}" if constant else ""
    return line if is_slow(case.build(low, config)) else f"max({checker_period(config)}, {line})"


def cost_table() -> str:
    """Return the Markdown table of docs/vector_engine.md."""
    config = PRESETS["full"]
    lines = ["| instruction | NeuronCore-v2 | here | why |", "|---|---|---|---|"]
    for case in CASES:
        lines.append(f"| {case.name} | {case.published or '-'} | {formula(case, config)} | {case.because} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(cost_table(), end="")
