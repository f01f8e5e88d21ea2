"""Published cycles of each instruction against this machine's, at several lengths."""

from collections.abc import Callable

from neuroncore_rtl.frontends.nki.costs import published_cost
from neuroncore_rtl.kernels.library.matmul import passes
from neuroncore_rtl.spec import costs
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import BF16, FP32
from neuroncore_rtl.spec.isa import Access, AluOp, Elementwise, Instruction, MultiplyMoving, Opcode, Storage
from neuroncore_rtl.spec.pacing import own_clock

__all__ = ["FORMULA_BAR", "LENGTHS", "REASONS", "SHORT", "formula_rows"]

LENGTHS = (16, 64, 512)
"""Lengths of an instruction: elements per partition, or moving columns of a multiplication."""

FORMULA_BAR = 0.1
"""Largest relative error of the cycles of an instruction that needs no stated reason."""

SHORT = "no instruction here has a minimum of 64 cycles: the engines overlap consecutive instructions"
_SOFTWARE = "here the vector engine executes it; GpSimd, with a software overhead of 150 cycles, is not modelled"
_TWO_READS = "here an instruction reads SBUF once per cycle, in any format: two operands there take two cycles"
REASONS = {
    "TENSOR_TENSOR bf16": _TWO_READS,
    "SCALAR_TENSOR_TENSOR bf16": _TWO_READS,
    "TENSOR_REDUCE bf16": "a lane reads one element per cycle, in any format",
    "MEMSET bf16 zero": "a lane writes one element per cycle, in any format",
    "TENSOR_SCALAR_REDUCE": "here the result is one more step of the lanes, not a read of 64 cycles",
    "ACTIVATE with sum": "here the sum is one more step of the lanes, not a read of 64 cycles",
    "IOTA": _SOFTWARE,
    "AFFINE_SELECT": _SOFTWARE,
    "BN_AGGR": "the lanes drain before and after its divisions; a word takes 4 cycles",
    "RECIPROCAL": "NKIBench's SiLU takes 2.4 N, see docs/rates.md; here the divider takes 3.2 N",
    "TRANSPOSE": "a block of 32 x 32 is written after it has been read: 32 steps after the elements",
    "MAX8": "the eight results are eight more steps",
    "FIND_INDEX8": "eight values are loaded first, and eight positions written last: sixteen more steps",
}
"""Reasons, other than `SHORT`, of rows that are off by more than `FORMULA_BAR` at some length, in either preset."""


def _access(fmt, storage: Storage = Storage.SBUF) -> Access:
    return Access(format=fmt, address=0, steps=(1,), storage=storage)


def _elementwise(opcode: Opcode, fmt=FP32, b: Storage = Storage.SBUF, **fields) -> Callable[[int], Instruction]:
    """Return a function from a length to an instruction; `fmt` is the format of dst, a and b, `b` its memory."""
    return lambda n: Elementwise(
        opcode=opcode, partitions=128, shape=(n,), dst=_access(fmt), a=_access(fmt), b=_access(fmt, b), **fields
    )


def _product(n: int) -> Instruction:
    return MultiplyMoving(format=BF16, k=128, m=128, n=n, address=0, stride=2, psum=0)


_O, _ADD = Opcode, {"op0": AluOp.ADD}
_ROWS: dict[str, Callable[[int], Instruction]] = {
    "MULTIPLY_MOVING bf16": _product,
    "TENSOR_COPY": _elementwise(_O.TENSOR_COPY),
    "TENSOR_SCALAR": _elementwise(_O.TENSOR_SCALAR, op0=AluOp.MULTIPLY, op1=AluOp.ADD),
    "TENSOR_SCALAR_REDUCE": _elementwise(_O.TENSOR_SCALAR_REDUCE, op0=AluOp.MULTIPLY, op1=AluOp.ADD),
    "TENSOR_TENSOR fp32": _elementwise(_O.TENSOR_TENSOR, **_ADD),
    "TENSOR_TENSOR bf16": _elementwise(_O.TENSOR_TENSOR, BF16, **_ADD),
    "TENSOR_TENSOR psum": _elementwise(_O.TENSOR_TENSOR, b=Storage.PSUM, **_ADD),
    "SCALAR_TENSOR_TENSOR bf16": _elementwise(_O.SCALAR_TENSOR_TENSOR, BF16, op0=AluOp.SUBTRACT, op1=AluOp.MULTIPLY),
    "SCALAR_TENSOR_TENSOR": _elementwise(_O.SCALAR_TENSOR_TENSOR, op0=AluOp.MULTIPLY, op1=AluOp.ADD),
    "TENSOR_TENSOR_SCAN": _elementwise(_O.TENSOR_TENSOR_SCAN, op0=AluOp.MULTIPLY, op1=AluOp.ADD),
    "TENSOR_REDUCE fp32": _elementwise(_O.TENSOR_REDUCE, **_ADD),
    "TENSOR_REDUCE bf16": _elementwise(_O.TENSOR_REDUCE, BF16, **_ADD),
    "SELECT": _elementwise(_O.SELECT),
    "SELECT psum": _elementwise(_O.SELECT, b=Storage.PSUM),
    "MEMSET": _elementwise(_O.MEMSET, s0=1.0),
    "MEMSET bf16 zero": _elementwise(_O.MEMSET, BF16, s0=0.0),
    "RECIPROCAL": _elementwise(_O.RECIPROCAL),
    "BN_STATS": _elementwise(_O.BN_STATS),
    "BN_AGGR": _elementwise(_O.BN_AGGR),
    "TRANSPOSE": _elementwise(_O.TRANSPOSE),
    "DROPOUT": _elementwise(_O.DROPOUT),
    "MAX8": _elementwise(_O.MAX8),
    "FIND_INDEX8": _elementwise(_O.FIND_INDEX8),
    "IOTA": _elementwise(_O.IOTA),
    "AFFINE_SELECT": _elementwise(_O.AFFINE_SELECT),
    "ACTIVATE": _elementwise(_O.ACTIVATE),
    "ACTIVATE with sum": _elementwise(_O.ACTIVATE, sum_store=True),
}


def formula_rows(config: Config) -> list[dict[str, object]]:
    """Return name, published formula, our and the published cycles by length, and `whole`, for each instruction.

    The formulas lack the static overhead, so our cycles do too; `whole` are our cycles at the last length with it.
    """
    rows, without = [], config.with_overrides(access_cycles=0)

    def own(instruction: Instruction, machine: Config) -> float:
        return costs.period(instruction, machine) * own_clock(instruction, config) / 100

    for name, make in _ROWS.items():
        costs_ = [published_cost(make(n)) for n in LENGTHS]
        pairs = [[own(make(n), without), cost.cycles] for n, cost in zip(LENGTHS, costs_, strict=True)]
        whole = own(make(LENGTHS[-1]), config)
        rows.append({"name": name, "formula": costs_[0].formula, "cycles": pairs, "whole": whole})
    # AWS publishes no formula for an FP32 product; there as here it is four BF16 products.
    halves, product = len(passes(FP32)), rows[0]
    pairs = [[halves * ours, 4 * theirs] for ours, theirs in product["cycles"]]
    formula, whole = f"4 {product['formula']}", halves * product["whole"]
    rows.insert(1, {"name": "MULTIPLY_MOVING fp32", "formula": formula, "cycles": pairs, "whole": whole})
    return rows
