"""Calls that generate numbers from an element's position, or select by it."""

from neuroncore_rtl.frontends.nki.dialects.isa_elementwise import CALLS as ELEMENTWISE
from neuroncore_rtl.frontends.nki.indices.affine import Affine, Condition, Mask, broadcast_shapes
from neuroncore_rtl.frontends.nki.indices.dtypes import dtype_of
from neuroncore_rtl.frontends.nki.indices.given import as_integer
from neuroncore_rtl.frontends.nki.indices.storage import Memory
from neuroncore_rtl.frontends.nki.indices.views import View
from neuroncore_rtl.frontends.nki.lowering.calls import Call, instruction, like, nothing
from neuroncore_rtl.frontends.nki.lowering.integers import of_one_sign
from neuroncore_rtl.frontends.nki.lowering.operands import common, scalar
from neuroncore_rtl.frontends.nki.lowering.operators import operation
from neuroncore_rtl.frontends.nki.trace.recording import Recording
from neuroncore_rtl.kernels.program import Draw, Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.isa import AluOp, Index

__all__ = ["CALLS", "OLDER", "predicate"]

CALLS: dict[str, Call] = {}

OLDER: dict[str, Call] = {}
"""Calls that have other arguments in the first dialect than in the second."""


def _numbered(pattern, offset: int, multiplier: int) -> Index:
    base, partition = as_integer("offset", offset), as_integer("channel_multiplier", multiplier)
    return Index(base=base, partition=partition, steps=tuple(as_integer("a step", step) for step, _ in pattern))


def _shaped(r: Recording, dst: View, pattern, *views: View) -> list:
    shape = (dst.shape[0], *(as_integer("a count", count) for _, count in pattern))
    return [_free(r, view.fitted(dst.shape), shape) for view in (dst, *views)]


def _free(r: Recording, view: View, shape: tuple[int, ...]):
    (tensor,) = common(r, view.shape, view)
    return tensor.reshape(*shape[1:])


@instruction(CALLS, "differs", "32-bit integers that wrap on overflow", result=nothing)
def iota(r: Recording, dst: View, pattern, offset=0, channel_multiplier=0) -> None:
    """Compute dst = offset + partition * channel_multiplier + the sum of index[d] * step[d]."""
    (target,) = _shaped(r, dst, pattern)
    r.program.append(isa.iota(target, _numbered(pattern, offset, channel_multiplier)))


@instruction(CALLS, result=like("on_true_tile"), like="on_true_tile")
def affine_select(
    r: Recording, dst: View, pattern, channel_multiplier, on_true_tile: View, on_false_value, cmp_op="equal", offset=0
) -> None:
    """Select on_true_tile where cmp_op(n, 0) holds, else on_false_value; n is the element's number as in `iota`."""
    target, source = _shaped(r, dst, pattern, on_true_tile)
    index = _numbered(pattern, offset, channel_multiplier)
    source, otherwise = of_one_sign(r, target, source, scalar(r, on_false_value, target.partitions))
    r.program.append(isa.affine_select(target, source, index, operation(cmp_op), otherwise))


@instruction(OLDER, result=like("on_true_tile"), like="on_true_tile", name="affine_select")
def _select_by_expression(r: Recording, dst: View, pred, on_true_tile: View, on_false_value) -> None:
    if not isinstance(pred, Mask) or len(pred.conditions) != 1:
        raise ValueError(f"pred must be one comparison of index expressions, not {pred!r}")
    (condition,) = pred.conditions
    index, op = _condition(condition, dst.shape)
    target, source = (_free(r, view.fitted(dst.shape), dst.shape) for view in (dst, on_true_tile))
    source, otherwise = of_one_sign(r, target, source, scalar(r, on_false_value, target.partitions))
    r.program.append(isa.affine_select(target, source, index, op, otherwise))


def _of_expression(given: dict) -> tuple:
    return given["expr"].shape, dtype_of(given.get("kind", "int32")), Memory.sbuf


@instruction(OLDER, "differs", "32-bit integers", result=_of_expression, like="expr", name="iota")
def _iota_of_expression(r: Recording, dst: View, expr: Affine, kind=None) -> None:
    target = _free(r, dst, dst.shape)
    steps = expr.over(dst.shape).steps
    r.program.append(isa.iota(target, Index(base=expr.start, partition=steps[0], steps=steps[1:])))


def _condition(condition: Condition, shape: tuple[int, ...]) -> tuple[Index, AluOp]:
    value = condition.value.over(shape)
    op = {"ge": AluOp.IS_GE, "gt": AluOp.IS_GT, "eq": AluOp.IS_EQUAL, "ne": AluOp.NOT_EQUAL}[condition.relation]
    return Index(base=value.start, partition=value.steps[0], steps=value.steps[1:]), op


@instruction(CALLS, "differs", "this machine's random numbers, the same in every run", result=like("data"), each=True)
def dropout(r: Recording, dst: View, data: View, prob) -> None:
    """Copy data to dst, replacing elements by 0 with a probability."""
    target, source = common(r, dst.shape, dst, data)
    share = scalar(r, prob, target.partitions)
    if not isinstance(share, Tensor) and not 0 <= share <= 1:
        raise ValueError(f"{dst.name}: a probability must be from 0 to 1, not {prob!r}")
    r.program.append(isa.dropout(target, source, share, Draw(seed=0, stream=next(r.streams))))


def predicate(r: Recording, mask: Mask, shape: tuple[int, ...]) -> View:
    """Return a new tile of a shape: 1 where a mask of index expressions holds, else 0."""
    tile = r.allocate(shape, dtype_of("uint8"), Memory.sbuf)
    r.inserted["predicate of index expressions"] += 1
    ELEMENTWISE["memset"].run(tile, {"value": 1}, None, None)
    for condition in mask.conditions:
        if broadcast_shapes(condition.value.shape, shape) != shape:
            raise ValueError(f"a mask must broadcast to the shape {shape}, not have the shape {condition.value.shape}")
        selection = {"pred": Mask((condition,)), "on_true_tile": tile, "on_false_value": 0}
        OLDER["affine_select"].run(tile, selection, None, None)
    return tile
