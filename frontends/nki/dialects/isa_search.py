"""Calls that find positions: of runs of equal elements, and of non-zero elements."""

from neuroncore_rtl.frontends.nki.dialects.isa_move import copy
from neuroncore_rtl.frontends.nki.indices.dtypes import DTYPES
from neuroncore_rtl.frontends.nki.indices.given import as_integer
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction
from neuroncore_rtl.frontends.nki.lowering.operands import common, one_source_in_psum
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.formats import FP32, INT32
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["CALLS"]

CALLS: dict[str, Call] = {}

FOUND = 8
"""Number of positions that one search instruction finds."""

APART = 16
"""`nonzero_with_count` uses only the first of this many partitions."""


def _bounds(given: dict) -> tuple:
    ids = given["segment_ids"]
    if ids.ndim != 2:
        raise ValueError(f"{ids.name}: segment_ids must have two dimensions, not {ids.shape}")
    return (ids.shape[0], 2, ids.shape[1]), ids.dtype, Memory.sbuf


@instruction(CALLS, "expanded", "comparisons and two scans", result=_bounds, like="segment_ids")
def sequence_bounds(r: Recording, dst: View, segment_ids: View) -> None:
    """Write begin and end of the run of equal numbers that contains each element to dst[0] and dst[1].

    For elements 0 of segment_ids, n and -1 are written.
    """
    if not dst.dtype.signed:
        raise ValueError(f"{dst.name}: dst must have a type that has -1, not {dst.dtype}")
    target, (ids,) = common(r, dst.shape, dst)[0], common(r, segment_ids.shape, segment_ids)
    lanes, n = ids.partitions, ids.size
    same, numbers, fresh = (r.program.space.sbuf("bounds", FP32, (n + 1,), lanes) for _ in range(3))
    whole = r.program.space.sbuf("bounds", INT32, (n + 1,), lanes)
    r.program.append(isa.memset(same, 0.0))
    if n > 1:
        pairs = one_source_in_psum(r, ids[:, 1:], ids[:, :-1])
        r.program.append(isa.tensor_tensor(same[:, 1:n], *pairs, AluOp.IS_EQUAL))
    r.program.append(isa.iota(whole, Index(steps=(1,))))
    r.program.append(isa.tensor_copy(numbers, whole))
    # At the first element of a run this is its position, else 0. The scan adds it to the previous result times `same`,
    # which is 0 at the start of a run and 1 within it, so the position is repeated through the run.
    others = isa.scalar_tensor_tensor(
        fresh, same, 1.0, AluOp.SUBTRACT, numbers, AluOp.MULTIPLY, reverse0=True
    )  # fmt: skip
    r.program.append(others)
    bounds = target.reshape(2, n)
    for row, part, otherwise in ((0, slice(0, n), float(n)), (1, slice(n, 0, -1), -1.0)):
        found = r.program.space.sbuf("bounds", FP32, (n,), lanes)
        keep, start = same[:, part], fresh[:, part]
        r.program.append(isa.tensor_tensor_scan(found, keep, start, 0.0, AluOp.MULTIPLY, AluOp.ADD))
        ordered = found if row == 0 else found[:, ::-1]
        r.program.append(isa.select(bounds[:, row], ids, ordered, otherwise))


def _with_count(given: dict) -> tuple:
    rows, columns = given["src"].shape
    return (rows, columns + 1), DTYPES["int32"], Memory.sbuf


@instruction(
    CALLS, "expanded", "a NeuronCore-v3 call: max8 and match_replace8 per 8 elements",
    result=_with_count, like="src",
)  # fmt: skip
def nonzero_with_count(r: Recording, dst: View, src: View, index_offset=0, padding_val=-1) -> None:
    """Write, in every 16th partition, positions of non-zero elements, then padding, and last the count of positions."""
    (source,) = common(r, src.shape, src)
    padding = as_integer("padding_val", padding_val)
    lanes, n, space = source.partitions, source.size, r.program.space
    width = max(FOUND, -(-n // FOUND) * FOUND)
    keys, places = (space.sbuf("places", FP32, (width,), lanes) for _ in range(2))
    whole, count = space.sbuf("places", INT32, (n,), lanes), space.sbuf("count", FP32, (1,), lanes)
    result = r.allocate((lanes, n + 1), DTYPES["int32"], Memory.sbuf, dst.name)
    (found,) = common(r, result.shape, result)
    # Keys descend from n to 1, so that the largest keys belong to the first positions.
    r.program.append(isa.memset(keys, 0.0))
    r.program.append(isa.tensor_scalar_reduce(keys[:, :n], source, 0.0, AluOp.NOT_EQUAL, count, AluOp.ADD))
    r.program.append(isa.iota(whole, Index(base=n, steps=(-1,))))
    r.program.append(isa.tensor_tensor(keys[:, :n], keys[:, :n], whole, AluOp.MULTIPLY))
    for first in range(0, width, FOUND):
        best = places[:, first : first + FOUND]
        r.program.append(isa.max8(best, keys))
        if first + FOUND < width:
            r.program.append(isa.match_replace8(keys, keys, best, 0.0))
    falling = places[:, :n]
    _numbered(r, found[:, :n], falling, float(n + as_integer("index_offset", index_offset)), float(padding))
    r.program.append(isa.tensor_copy(found[:, n:], count))
    for p in range(0, lanes, APART):
        copy(r, dst[p : p + 1], result[p : p + 1])


def _numbered(r: Recording, target: Tensor, keys: Tensor, base: float, padding: float) -> None:
    numbers = r.program.space.sbuf("places", FP32, keys.shape, keys.partitions)
    r.program.append(isa.tensor_scalar(numbers, keys, base, AluOp.SUBTRACT, reverse0=True))
    r.program.append(isa.select(target, keys, numbers, padding))
