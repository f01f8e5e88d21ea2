"""Selection of instructions: pairs of FP32 operations of a pass become one instruction with the same results.

An operation with a number, or with one element per partition, waits for the use of its result if there is only one:

- an arithmetic operation follows it in TENSOR_SCALAR or SCALAR_TENSOR_TENSOR, which round both results;
- a function of the scalar engine takes it as scale or bias, which round the argument once.

A function of the scalar engine also sums its results for a reduction over the whole row. A square is one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.frontends.xla.emit.functions import append_function
from neuroncore_rtl.frontends.xla.fuse.passes import Pass, combining_function
from neuroncore_rtl.frontends.xla.fuse.placement import Placement, placed_root, root_of
from neuroncore_rtl.frontends.xla.graph.operations import Constant, Operation, Pointwise, Reduce, Value
from neuroncore_rtl.frontends.xla.graph.types import FLOAT32
from neuroncore_rtl.kernels.library.functions.arithmetic import COMBINING
from neuroncore_rtl.kernels.library.functions.lanes import LaneOperand, Lanes
from neuroncore_rtl.kernels.library.functions.transcendental import ENGINE_FUNCTIONS
from neuroncore_rtl.kernels.program import Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.spec.isa import AluOp

__all__ = ["Selection", "Waiting", "append_selected", "reads_once"]

_ARITHMETIC = {name: COMBINING[name] for name in ("add", "subtract", "multiply", "maximum", "minimum")}
_ARITHMETIC["divide"] = AluOp.DIVIDE


@dataclass(frozen=True)
class Waiting:
    """An operation that has not been appended: op(a, b), or op(b, a) if `reverse`.

    Arguments:
        a: a tile.
        b: a number, or one element per partition.
    """

    lanes: Lanes
    a: Tensor
    op: AluOp
    b: LaneOperand
    reverse: bool

    def tile(self) -> Tensor:
        """Append the operation, on the engine that has less to do; return its result."""
        if self.op in (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY) and self.lanes.scalar_is_free:
            return _activate(self.lanes, "identity", self, None)
        dst = self.lanes.result(FLOAT32.format, self.op.name.lower())
        self.lanes.append(isa.tensor_scalar(dst, self.a, self.b, self.op, reverse0=self.reverse))
        return dst


@dataclass(frozen=True)
class Selection:
    """Facts about a pass that hold for all tiles.

    Arguments:
        waits: values that have one use, by an operation that may take them with its own.
        sums: reductions of results of the scalar engine over the whole row, by these results.
        read: values that operations of the pass read.
        paired: values that an operation combines with another tile, which is in SBUF.
    """

    waits: frozenset[Value]
    sums: Mapping[Value, Reduce]
    read: frozenset[Value] = frozenset()
    paired: frozenset[Value] = frozenset()

    @classmethod
    def of(
        cls, one: Pass, stored: Mapping[Value, object], makers: Mapping[Value, Operation], free: Sequence[int] = ()
    ) -> "Selection":
        """Return the selection of a pass; `stored` are its results that other passes use.

        `free` are the dimensions of a tile on chip.
        """
        uses: Counter[Value] = Counter()
        takers: dict[Value, Operation] = {}
        sums: dict[Value, Reduce] = {}
        for operation in one.operations:
            for operand in operation.operands:
                root = root_of(operand, makers)
                uses[root] += 1
                takers[root] = operation
            if isinstance(operation, Reduce) and combining_function(operation) == "add":
                root = root_of(operation.operands[0], makers)
                maker = makers.get(root)
                whole = root in one.places and {*one.places[root]} >= one.reduced
                rows = all(at not in one.reduced for at in one.places[operation.result])
                if whole and rows and _is_plain(maker) and _is_scalar(maker) and operation.result.type is FLOAT32:
                    sums.setdefault(root, operation)
        waits = frozenset(
            value
            for value in one.places
            if uses[value] == 1 and value not in stored and _is_plain(makers[value]) and _takes(takers[value])
        )
        return cls(waits, sums, frozenset(uses), frozenset(_paired(one, {*free}, waits, stored, makers)))


def _paired(
    one: Pass,
    free: set[int],
    waits: frozenset[Value],
    stored: Mapping[Value, object],
    makers: Mapping[Value, Operation],
) -> set[Value]:
    """Return values that are in PSUM, such that no operation reads two of them."""
    found: set[Value] = set()
    apart: set[Value] = set()
    for operation in one.operations:
        if not (free and _is_plain(operation) and getattr(operation, "function", "") in _ARITHMETIC):
            continue
        roots = []
        for operand in operation.operands:
            root, at = placed_root(operand, one.places[operation.result], makers)
            while root in waits and len(inner := _wide(makers[root].operands, one.places[root], free, makers)) == 1:
                ((root, at),) = inner
            roots += [root] if free <= {*at} and not isinstance(makers.get(root), Constant) else []
        if len({*roots}) == 2 and not found.intersection(roots):
            possible = [root for root in roots if root in one.places and root not in {*stored, *apart}]
            possible = [root for root in possible if _is_plain(makers[root])][:1]
            found.update(possible)
            apart.update(root for root in roots if root not in possible)
    return found


def _wide(
    operands: Sequence[Value], place: Placement, free: set[int], makers: Mapping[Value, Operation]
) -> list[tuple[Value, Placement]]:
    """Return the roots of operands that have all elements of a tile."""
    roots = [placed_root(value, place, makers) for value in operands]
    return [(root, at) for root, at in roots if free <= {*at} and not isinstance(makers.get(root), Constant)]


def _is_plain(operation: Operation | None) -> bool:
    """Return whether an operation is a function of FP32 values with an FP32 result."""
    if not isinstance(operation, Pointwise):
        return False
    return all(value.type is FLOAT32 for value in (*operation.operands, *operation.results))


def _is_scalar(operation: Operation | None) -> bool:
    """Return whether the scalar engine computes an operation."""
    return isinstance(operation, Pointwise) and (reads_once(operation) or operation.function in ENGINE_FUNCTIONS)


def reads_once(operation: Pointwise) -> bool:
    """Return whether the scalar engine multiplies an FP32 value by itself, for which it reads it once."""
    same = operation.function == "multiply" and operation.operands[0] is operation.operands[1]
    return same and _is_plain(operation)


def _takes(operation: Operation) -> bool:
    return _is_plain(operation) and getattr(operation, "function", "") in {*_ARITHMETIC, *ENGINE_FUNCTIONS}


def append_selected(
    lanes: Lanes, operation: Pointwise, operands: list[LaneOperand | Waiting], *, waits: bool, total: Tensor | None
) -> Tensor | Waiting:
    """Append an operation, or return it waiting; `total` is where the sum of a row goes.

    Arguments:
        lanes: of the result.
        operation: the operation.
        operands: its operands.
        waits: whether its result may wait.
        total: destination of the sum of each row's results, if the scalar engine computes it.
    """
    name, result = operation.function, operation.result
    # What repeats in this result is needed as a tile, or as one element per partition.
    operands = [_appended(one) if _shape(one) != lanes.shape else one for one in operands]
    if _is_plain(operation):
        if _is_scalar(operation) and any(isinstance(one, Tensor | Waiting) for one in operands):
            function = "square" if name == "multiply" else ENGINE_FUNCTIONS[name]
            return _activate(lanes, function, operands[0], total)
        if name in _ARITHMETIC and (found := _arithmetic(lanes, _ARITHMETIC[name], *operands, waits=waits)):
            return found
    tiles = [_appended(one) for one in operands]
    plain = _is_plain(operation) and name in _ARITHMETIC
    dst = lanes.result(result.type.format, name) if plain else lanes.new(result.type.format, name)
    append_function(lanes, operation, dst, *tiles)
    return dst


def _shape(operand: LaneOperand | Waiting) -> tuple[int, ...] | None:
    return operand.lanes.shape if isinstance(operand, Waiting) else None


def _appended(operand: LaneOperand | Waiting) -> LaneOperand:
    return operand.tile() if isinstance(operand, Waiting) else operand


def _activate(lanes: Lanes, function: str, operand: LaneOperand | Waiting, total: Tensor | None) -> Tensor:
    scale, bias = 1.0, isa.NEUTRAL_BIAS
    dst = lanes.result(FLOAT32.format, function)
    if isinstance(operand, Waiting):
        a, b = operand.a, operand.b
        if operand.op == AluOp.MULTIPLY:
            scale = b
        elif operand.op == AluOp.ADD:
            bias = b
        elif operand.op == AluOp.SUBTRACT and operand.reverse:
            scale, bias = -1.0, b
        elif operand.op == AluOp.SUBTRACT:
            bias = _negated(lanes, b)
        else:
            a = operand.tile()
    else:
        a = lanes.tile(_appended(operand), FLOAT32.format)
    lanes.append(isa.activation(dst, a, function, scale=scale, bias=bias, sum_into=total))
    return dst


def _negated(lanes: Lanes, b: LaneOperand) -> LaneOperand:
    if not isinstance(b, Tensor):
        return -b
    negative = lanes.program.space.sbuf("negative", FLOAT32.format, b.shape, b.partitions)
    lanes.append(isa.tensor_scalar(negative, b, -1.0, AluOp.MULTIPLY))
    return negative


def _inverse(lanes: Lanes, b: LaneOperand) -> LaneOperand:
    """Return 1 / b. XLA multiplies by it, too, where many elements are divided by one."""
    if not isinstance(b, Tensor):
        with np.errstate(divide="ignore"):
            return float(np.float32(1) / np.float32(b))
    inverse = lanes.program.space.sbuf("inverse", FLOAT32.format, b.shape, b.partitions)
    lanes.append(isa.tensor_scalar(inverse, b, 1.0, AluOp.DIVIDE, reverse0=True))
    return inverse


def _arithmetic(
    lanes: Lanes, op: AluOp, a: LaneOperand | Waiting, b: LaneOperand | Waiting, *, waits: bool
) -> Tensor | Waiting | None:
    """Return op(a, b) with an operand that is a number or a scalar per partition, or that waits; None if neither."""
    for first, second, reverse in ((a, b, False), (b, a, True)):
        scalar = _scalar(lanes, second)
        if scalar is None or not isinstance(first, Tensor | Waiting) or _scalar(lanes, first) is not None:
            continue
        if op == AluOp.DIVIDE and not reverse:
            op, scalar = AluOp.MULTIPLY, _inverse(lanes, scalar)
        if isinstance(first, Waiting):
            dst = lanes.result(FLOAT32.format, op.name.lower())
            options: isa.Options = {"reverse0": first.reverse, "reverse1": reverse}
            lanes.append(isa.tensor_scalar(dst, first.a, first.b, first.op, scalar, op, **options))
            return dst
        tile = lanes.tile(_appended(first), FLOAT32.format)
        waiting = Waiting(lanes, tile, op, scalar, reverse)
        return waiting if waits else waiting.tile()
    for first, second, reverse in ((a, b, False), (b, a, True)):
        if isinstance(first, Waiting) and isinstance(second, Tensor | Waiting):
            other = lanes.tile(_appended(second), FLOAT32.format)
            dst = lanes.result(FLOAT32.format, op.name.lower())
            reversals: isa.Options = {"reverse0": first.reverse, "reverse1": reverse}
            lanes.append(isa.scalar_tensor_tensor(dst, first.a, first.b, first.op, other, op, **reversals))
            return dst
    return None


def _scalar(lanes: Lanes, operand: LaneOperand | Waiting) -> LaneOperand | None:
    """Return an operand as a scalar of an instruction; None if it is a tile with several elements in a partition."""
    if isinstance(operand, Waiting):
        return None
    if not isinstance(operand, Tensor):
        return operand
    if operand.size == 1 and lanes.shape != (1,) * len(lanes.shape):
        return operand.reshape(1)
    return None
