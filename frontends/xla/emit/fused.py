"""Emission of a pass: for each tile of its iteration space, loads, functions of elements, row reductions, stores."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from neuroncore_rtl.frontends.xla.emit.emission import Emission, dense_steps
from neuroncore_rtl.frontends.xla.emit.lanes import LaneOperand, Lanes, wrap
from neuroncore_rtl.frontends.xla.emit.nest import Nest, NestTile, nests_of
from neuroncore_rtl.frontends.xla.emit.selection import Selection, Waiting, append_selected
from neuroncore_rtl.frontends.xla.fuse.passes import Pass, combining_function, neutral_number
from neuroncore_rtl.frontends.xla.fuse.placement import Placement, placed_root
from neuroncore_rtl.frontends.xla.graph.operations import Constant, Iota, Operation, Pointwise, Reduce, Value
from neuroncore_rtl.frontends.xla.graph.types import check_narrow
from neuroncore_rtl.kernels.program import HbmTensor, Program, Tensor, dma_copy
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.kernels.program.source import override_source
from neuroncore_rtl.kernels.tiling.transfer import SHARE
from neuroncore_rtl.spec.formats import INT32, UINT32
from neuroncore_rtl.spec.isa import AluOp, Engine, Index

__all__ = ["emit_pass"]

_REDUCTIONS = {
    "add": AluOp.ADD, "multiply": AluOp.MULTIPLY, "maximum": AluOp.MAX, "minimum": AluOp.MIN,
    "and": AluOp.BITWISE_AND, "or": AluOp.BITWISE_OR,
}  # fmt: skip
_LIVE = 4
"""Tiles of SBUF per value of a pass: two in use and two that are loaded or stored."""
_LONGEST = 2048
"""Maximum elements of a row of a tile; longer ones gain nothing."""


def emit_pass(emission: Emission, one: Pass, outputs: Sequence[Value]) -> None:
    """Append a pass; `outputs` are its results that are used elsewhere, which are stored in HBM."""
    steps = {value: _along_space(emission.new(value).steps, one.places[value], len(one.space)) for value in outputs}
    emitter = _PassEmitter(emission, one, steps)
    accesses = [*steps.values(), *emitter.inputs.values(), *map(emitter.presence, one.places.values())]
    config = emission.program.config
    most = min(_LONGEST, config.sbuf_bytes // (4 * _LIVE * max(2, len(accesses))))
    for nest in nests_of(one.space, one.reduced, accesses, config.partitions, max(1, most)):
        _NestEmitter(emitter, nest).append()


def _along_space(steps: Sequence[int], place: Placement, rank: int) -> tuple[int, ...]:
    """Return the steps of a tensor along the dimensions of the space; 0 where it repeats."""
    found = [0] * rank
    for step, at in zip(steps, place, strict=True):
        if at is not None:
            found[at] = step
    return tuple(found)


@dataclass
class _PassEmitter:
    """A pass with its tensors: `stored` results, and inputs, each with its steps along the space."""

    emission: Emission
    one: Pass
    stored: dict[Value, tuple[int, ...]]
    inputs: dict[tuple[Value, Placement], tuple[int, ...]] = field(default_factory=dict)
    selection: Selection = field(init=False)
    busy: Counter[Engine] = field(default_factory=Counter)

    def __post_init__(self):
        self.selection = Selection.of(self.one, self.stored, self.emission.makers)
        for operation in self.one.operations:
            for operand in operation.operands:
                root, place = placed_root(operand, self.operand_place(operation, operand), self.emission.makers)
                if root not in self.one.places and not self._is_number(root):
                    maker, rank = self.emission.makers.get(root), len(self.one.space)
                    if isinstance(maker, Iota):
                        self.inputs[root, place] = tuple(int(at == place[maker.axis]) for at in range(rank))
                    else:
                        self.inputs[root, place] = _along_space(self.emission.tensor(root).steps, place, rank)

    def _is_number(self, root: Value) -> bool:
        maker = self.emission.makers.get(root)
        return isinstance(maker, Constant) and maker.splat is not None

    def operand_place(self, operation: Operation, operand: Value) -> Placement:
        """Return the placement of an operand; a reduced array has the reduced dimensions too."""
        if isinstance(operation, Pointwise):
            return self.one.places[operation.result]
        return self.one.reads[operation] if operand is operation.operands[0] else (None,) * operand.rank

    def presence(self, place: Placement) -> tuple[int, ...]:
        """Return steps of a value in row-major order of the space's dimensions that it has."""
        there = {at for at in place if at is not None}
        dense = dense_steps(tuple(n if d in there else 1 for d, n in enumerate(self.one.space)))
        return tuple(step if d in there else 0 for d, step in enumerate(dense))


class _NestEmitter:
    def __init__(self, emitter: _PassEmitter, nest: Nest):
        self.emitter, self.nest, self.one = emitter, nest, emitter.one
        self.emission, self.program = emitter.emission, emitter.emission.program
        self.loaded: dict[tuple, Tensor] = {}

    def append(self) -> None:
        """Append the instructions of all tiles."""
        for tile in self.nest.tiles():
            _TileEmitter(self, tile).append()


class _TileEmitter:
    """One tile: rows along the partitions, the free dimensions in a partition."""

    def __init__(self, nest: _NestEmitter, tile: NestTile):
        self.outer, self.nest, self.tile = nest, nest.nest, tile
        self.emitter, self.emission, self.program = nest.emitter, nest.emission, nest.program
        self.partitions = 1 if self.nest.row is None else tile.counts[self.nest.row]
        self.values: dict[Value, Tensor | Waiting] = {}
        self.sums: dict[Reduce, Tensor] = {}

    def append(self) -> None:
        for operation in self.outer.one.operations:
            with override_source(operation.source):
                if isinstance(operation, Pointwise):
                    self._append_elementwise(operation)
                else:
                    assert isinstance(operation, Reduce)
                    self._append_reduction(operation)
        for value, steps in self.emitter.stored.items():
            with override_source(self.emission.makers[value].source):
                self._store(value, steps)

    def _shape(self, steps: Sequence[int]) -> tuple[int, ...]:
        """Return the shape in a partition of a value with these steps along the nest's dimensions."""
        return tuple(self.tile.counts[d] if steps[d] else 1 for d in self.nest.free) or (1,)

    def _own_shape(self, value: Value) -> tuple[int, ...]:
        return self._shape(self.nest.steps(self.emitter.presence(self.outer.one.places[value])))

    def _append_elementwise(self, operation: Pointwise) -> None:
        result = operation.result
        check_narrow(result.type)
        lanes = Lanes(self.program, self._own_shape(result), self.partitions, self.emitter.busy)
        place = self.outer.one.places[result]
        operands = [self._find(operand, place) for operand in operation.operands]
        selection, total = self.emitter.selection, None
        whole = all(self.nest.origin[d][0] in self.outer.one.reduced for d in self.nest.free)
        if whole and (reduce := selection.sums.get(result)) is not None:
            total = self.sums[reduce] = self.program.space.sbuf("sum", result.type.format, (1,), self.partitions)
        waits = result in selection.waits
        self.values[result] = append_selected(lanes, operation, operands, waits=waits, total=total)

    def _append_reduction(self, operation: Reduce) -> None:
        operand, start = operation.operands
        result, function = operation.result, combining_function(operation)
        assert function is not None
        check_narrow(result.type)
        lanes = Lanes(self.program, self._own_shape(result), self.partitions, self.emitter.busy)
        place = self.emitter.operand_place(operation, operand)
        source = self._operand(operand, place)
        there = {at for at in place if at is not None}
        kept = {at for at in self.outer.one.places[result] if at is not None}
        # Dimensions of the nest that are reduced here.
        axes = [n for n, d in enumerate(self.nest.free) if self.nest.origin[d][0] in there - kept]
        full = tuple(
            self.tile.counts[d] if self.nest.origin[d][0] in there else 1 for d in self.nest.free
        ) or (1,)  # fmt: skip
        wide = Lanes(self.program, full, self.partitions, self.emitter.busy)
        source = wide.tile(source, operand.type.format).broadcast_to(*full)
        narrow = result.type.is_integer and result.type.bits < 32 and function in ("add", "multiply")
        total = lanes.new(INT32 if narrow else result.type.format)
        if operation in self.sums:
            total = self.sums[operation].reshape(*lanes.shape)
        elif axes:
            rest = [n for n in range(len(full)) if n not in axes]
            turned = source.permute(*rest, *axes)
            shape = tuple(full[n] for n in rest) + (1,) * len(axes)
            lanes.append(
                isa.tensor_reduce(total.permute(*rest, *axes).reshape(*shape), turned, _REDUCTIONS[function], len(axes))
            )
        else:
            lanes.append(isa.tensor_copy(total, source))
        first = self._operand(start, (None,) * start.rank)
        if isinstance(first, Tensor) or first != neutral_number(function, result.type):
            summed = lanes.new(total.format)
            lanes.apply(summed, total, _REDUCTIONS[function], first)
            total = summed
        if narrow:
            wrapped = lanes.new(result.type.format)
            wrap(lanes, wrapped, total)
            total = wrapped
        self.values[result] = total

    def _operand(self, operand: Value, place: Placement) -> LaneOperand:
        found = self._find(operand, place)
        return found.tile() if isinstance(found, Waiting) else found

    def _find(self, operand: Value, place: Placement) -> LaneOperand | Waiting:
        root, at = placed_root(operand, place, self.emission.makers)
        if root in self.values:
            return self.values[root]
        maker = self.emission.makers.get(root)
        if isinstance(maker, Constant) and maker.splat is not None:
            return _number(maker)
        return self._input(root, at, maker)

    def _input(self, root: Value, place: Placement, maker: Operation | None) -> Tensor:
        """Return the tile of an input; one that does not change from the last tile is kept."""
        steps = self.nest.steps(self.emitter.inputs[root, place])
        starts = tuple(start if step else 0 for start, step in zip(self.tile.starts, steps, strict=True))
        counts = tuple(self.tile.counts[d] if steps[d] else 1 for d in self.nest.free)
        row = self.nest.row is not None and steps[self.nest.row] != 0
        rows = self.partitions if row else self.program.config.partitions
        key = root, place, starts, counts, self.partitions if row else None
        if key not in self.outer.loaded:
            shape = self._shape(steps)
            if isinstance(maker, Iota):
                tile = self._indices(maker, self.emitter.inputs[root, place], starts, shape, rows)
            else:
                tensor = self.emission.tensor(root)
                rows = rows if row else min(rows, self.nest.counts[self.nest.row] if self.nest.row is not None else 1)
                tile = self.program.space.sbuf(tensor.name, tensor.format, shape, rows)
                part = self._part(tensor, self.emitter.inputs[root, place], starts, shape, rows)
                _copy(self.program, tile, part, self.program.loads)
            if len(self.outer.loaded) > 64:
                self.outer.loaded.clear()
            self.outer.loaded[key] = tile
        return self.outer.loaded[key][: self.partitions]

    def _indices(self, maker: Iota, along: Sequence[int], starts, shape, rows) -> Tensor:
        steps = self.nest.steps(along)
        of = maker.result.type
        integers = of.format if of.format in (INT32, UINT32) else INT32
        tile = self.program.space.sbuf("indices", integers, shape, rows)
        base = self.nest.offset(along) + sum(start * step for start, step in zip(starts, steps, strict=True))
        free = tuple(steps[d] for d in self.nest.free) or (0,)
        row = steps[self.nest.row] if self.nest.row is not None else 0
        self.program.append(isa.iota(tile, Index(base=base, partition=row, steps=free)))
        if of.format is integers:
            return tile
        cast = self.program.space.sbuf("indices", of.format, shape, rows)
        self.program.append(isa.tensor_copy(cast, tile))
        return cast

    def _part(self, tensor: HbmTensor, along: Sequence[int], starts, shape, rows) -> HbmTensor:
        """Return the view of a tensor in HBM that a tile is loaded from or stored to."""
        steps = self.nest.steps(along)
        first = self.nest.offset(along) + sum(start * step for start, step in zip(starts, steps, strict=True))
        free = tuple(steps[d] for d in self.nest.free) or (0,)
        row = steps[self.nest.row] if self.nest.row is not None else 0
        return HbmTensor(
            name=tensor.name,
            format=tensor.format,
            address=tensor.address + first * tensor.format.bits // 8,
            shape=(rows, *shape),
            steps=(row, *free),
        )

    def _store(self, value: Value, along: Sequence[int]) -> None:
        steps = self.nest.steps(along)
        # A value without a dimension of the nest is stored by the first tile of it.
        if any(start and not step for start, step in zip(self.tile.starts, steps, strict=True)):
            return
        row = self.nest.row is not None and steps[self.nest.row] != 0
        rows = self.partitions if row else 1
        tile = self.values[value]
        assert isinstance(tile, Tensor)
        tile = tile[:rows]
        to = self._part(self.emission.tensors[value], along, self.tile.starts, tile.shape, rows)
        _copy(self.program, to, tile, self.program.stores)


def _copy(program: Program, to: Tensor | HbmTensor, of: Tensor | HbmTensor, queues: Iterator[int]) -> None:
    """Append a copy of a tile, in parts of a row that several queues share."""
    width = to.shape[-1]
    step = max(1, SHARE * 8 // to.format.bits)
    step = -(-width // -(-width // step))
    for first in range(0, width, step):
        part = ..., slice(first, first + step)
        program.append(dma_copy(to[part], of[part]), next(queues))


def _number(maker: Constant) -> float | int:
    splat = maker.splat
    assert splat is not None
    return float(splat) if maker.result.type.is_float else int(splat)
