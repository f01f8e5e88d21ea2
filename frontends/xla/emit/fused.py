"""Emission of a pass: for each tile of its iteration space, loads, functions of elements, row reductions, stores."""

from collections.abc import Sequence
from math import prod

from neuroncore_rtl.frontends.xla.emit.emission import Emission
from neuroncore_rtl.frontends.xla.emit.nest import Nest, NestTile, nest_on_chip, nests_of
from neuroncore_rtl.frontends.xla.emit.pass_plan import PassPlan, PassTensors, along_space, operand_place
from neuroncore_rtl.frontends.xla.emit.residents import Axis, SbufCopy, copy_tile, row_runs
from neuroncore_rtl.frontends.xla.emit.selection import Waiting, append_selected, reads_once
from neuroncore_rtl.frontends.xla.fuse.passes import Pass, combining_function, neutral_number
from neuroncore_rtl.frontends.xla.fuse.placement import Placement, number_of, placed_root
from neuroncore_rtl.frontends.xla.graph.operations import Iota, Operation, Pointwise, Reduce, Value
from neuroncore_rtl.frontends.xla.graph.types import check_narrow
from neuroncore_rtl.frontends.xla.refusal import refusing_at
from neuroncore_rtl.kernels.library.functions.arithmetic import COMBINING
from neuroncore_rtl.kernels.library.functions.lanes import LaneOperand, Lanes, wrap
from neuroncore_rtl.kernels.program import HbmTensor, Tensor
from neuroncore_rtl.kernels.program import instructions as isa
from neuroncore_rtl.kernels.source import override_source
from neuroncore_rtl.kernels.tiling.blocks import length
from neuroncore_rtl.kernels.tiling.views import elements_at
from neuroncore_rtl.spec.formats import INT32, UINT32, Format, IntFormat
from neuroncore_rtl.spec.isa import Index, Storage

__all__ = ["emit_pass"]

_LIVE = 4
"""Tiles of SBUF per value of a pass: two in use and two that are loaded or stored."""
_IN_PSUM = range(256, 1025)
"""Elements of a tile whose results are in PSUM if an instruction combines them with a tile in SBUF."""
_LONGEST = 2048
"""Maximum elements of a row of a tile; longer ones gain nothing."""


def emit_pass(emission: Emission, one: Pass, plan: PassPlan) -> None:
    """Append a pass."""
    rank, config = len(one.space), emission.program.config
    used = {
        value: along_space(emission.tensors[value].steps, one.places[value], rank)
        for value in one.places
        if value in plan.stored or value in plan.kept
    }
    emitter = PassTensors(emission, one, plan, used)
    accesses = [*used.values(), *emitter.inputs.values(), *map(emitter.presence, one.places.values())]
    if plan.on_chip and plan.row is not None:
        lanes, unit = emission.program.lanes, plan.unit
        parts = row_runs(config, lanes, one.space[plan.row], unit)
        unit = 0 if unit == one.space[plan.row] or len({*map(length, parts)}) == 1 else unit
        nest = nest_on_chip(one.space, plan.row, plan.free, accesses, lanes, unit)
        _NestEmitter(emitter, nest).append()
        return
    most = min(_LONGEST, config.sbuf_bytes // (4 * _LIVE * max(2, len(accesses))))
    for nest in nests_of(one.space, one.reduced, accesses, config.partitions, max(1, most)):
        _NestEmitter(emitter, nest).append()


class _NestEmitter:
    def __init__(self, emitter: PassTensors, nest: Nest):
        self.emitter, self.nest, self.one = emitter, nest, emitter.one
        self.emission, self.program = emitter.emission, emitter.emission.program
        self.loaded: dict[tuple, Tensor] = {}
        self.residents: dict[Value, SbufCopy] = {}
        self.rows: dict[Value, list[int]] = {}
        for value, fmt in emitter.plan.kept.items():
            self._start(value, fmt)

    def append(self) -> None:
        """Append the instructions of all tiles."""
        for value in self.emitter.used:
            self.emission.home(self.emission.tensors[value]).is_stored = value in self.emitter.plan.stored
        for tile in self.nest.tiles():
            _TileEmitter(self, tile).append()
        for value, resident in self.residents.items():
            self.emission.home(self.emission.tensors[value]).residents.append(resident)

    def _start(self, value: Value, fmt: Format) -> None:
        """Start the resident of a result: rows are the loops and then the dimension along the partitions."""
        nest, row, free, axes = self.nest, 1, 1, []
        steps = nest.steps(self.emitter.used[value])
        rows = self.rows[value] = [0] * len(steps)
        order = [d for d in range(len(steps)) if d not in nest.free and d != nest.row]
        for d in [one for one in (nest.row, *reversed(order)) if one is not None]:
            if steps[d] and nest.extents[d] > 1:
                axes.append(Axis(nest.extents[d], steps[d], row=row))
                rows[d] = row
                row *= nest.extents[d]
        for d in reversed(nest.free):
            if steps[d] and nest.extents[d] > 1:
                axes.append(Axis(nest.extents[d], steps[d], free=free))
                free *= nest.extents[d]
        self.residents[value] = SbufCopy(fmt, tuple(sorted(axes, key=lambda axis: -axis.step)))


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
            with refusing_at(operation.source), override_source(operation.source):
                if isinstance(operation, Pointwise):
                    self._append_elementwise(operation)
                else:
                    assert isinstance(operation, Reduce)
                    self._append_reduction(operation)
        for value, steps in self.emitter.used.items():
            with override_source(self.emission.makers[value].source):
                self._place(value, steps)

    def _shape(self, steps: Sequence[int]) -> tuple[int, ...]:
        """Return the shape in a partition of a value with these steps along the nest's dimensions."""
        return tuple(self.tile.counts[d] if steps[d] else 1 for d in self.nest.free) or (1,)

    def _own_shape(self, value: Value) -> tuple[int, ...]:
        return self._shape(self.nest.steps(self.emitter.presence(self.outer.one.places[value])))

    def _append_elementwise(self, operation: Pointwise) -> None:
        result = operation.result
        check_narrow(result.type)
        lanes = Lanes(self.program, self._own_shape(result), self.partitions, self.emission.chip.busy)
        lanes.alone = self.nest.extents == self.tile.counts
        place = self.outer.one.places[result]
        operands = [self._find(operand, place) for operand in operation.operands]
        operands = operands if reads_once(operation) else self._apart(operands)
        selection, total = self.emitter.selection, None
        whole = all(self.nest.origin[d][0] in self.outer.one.reduced for d in self.nest.free)
        if whole and (reduce := selection.sums.get(result)) is not None:
            total = self.sums[reduce] = self.program.space.sbuf("sum", result.type.format, (1,), self.partitions)
        waits = result in selection.waits
        kept = self.emitter.plan.kept.get(result)
        if kept is not None and result not in self.emitter.plan.stored and result not in selection.read:
            lanes.out = kept
        size = prod(lanes.shape)
        lanes.in_psum = result in selection.paired and size in _IN_PSUM
        self.values[result] = append_selected(lanes, operation, operands, waits=waits, total=total)

    def _apart(self, operands: list[LaneOperand | Waiting]) -> list[LaneOperand | Waiting]:
        """Return operands with at most one in PSUM, as an instruction requires; the others are moved."""
        found, is_read = [], False
        for one in operands:
            tile = one.a if isinstance(one, Waiting) else one
            if isinstance(tile, Tensor) and tile.storage == Storage.PSUM:
                if is_read:
                    one = one.tile() if isinstance(one, Waiting) else self.emission.chip.copied(tile)
                is_read = True
            found.append(one)
        return found

    def _append_reduction(self, operation: Reduce) -> None:
        operand, start = operation.operands
        result, function = operation.result, combining_function(operation)
        assert function is not None
        check_narrow(result.type)
        lanes = Lanes(self.program, self._own_shape(result), self.partitions, self.emission.chip.busy)
        place = operand_place(self.outer.one, operation, operand)
        source = self._operand(operand, place)
        there = {at for at in place if at is not None}
        kept = {at for at in self.outer.one.places[result] if at is not None}
        # Dimensions of the nest that are reduced here.
        axes = [n for n, d in enumerate(self.nest.free) if self.nest.origin[d][0] in there - kept]
        full = tuple(
            self.tile.counts[d] if self.nest.origin[d][0] in there else 1 for d in self.nest.free
        ) or (1,)  # fmt: skip
        wide = Lanes(self.program, full, self.partitions, self.emission.chip.busy)
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
                isa.tensor_reduce(total.permute(*rest, *axes).reshape(*shape), turned, COMBINING[function], len(axes))
            )
        else:
            lanes.append(isa.tensor_copy(total, source))
        first = self._operand(start, (None,) * start.rank)
        if isinstance(first, Tensor) or first != neutral_number(function, result.type):
            summed = lanes.new(total.format)
            lanes.apply(summed, total, COMBINING[function], first)
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
        if (number := number_of(root, self.emission.makers)) is not None:
            return number
        return self._input(root, at, self.emission.makers.get(root))

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
                if (found := self._on_chip(root, place, starts, shape)) is not None:
                    self.outer.loaded[key] = found
                    return found
                tensor = self.emission.tensor(root)
                rows = rows if row else min(rows, self.nest.counts[self.nest.row] if self.nest.row is not None else 1)
                tile = self.program.space.sbuf(tensor.name, tensor.format, shape, rows)
                part = self._part(tensor, self.emitter.inputs[root, place], starts, shape, rows)
                on_chip = self.emitter.plan.row is not None
                copy_tile(self.program, tile, part, self.emission.ports if on_chip else self.program.loads)
            if len(self.outer.loaded) > 64:
                self.outer.loaded.clear()
            self.outer.loaded[key] = tile
        return self.outer.loaded[key][: self.partitions]

    def _on_chip(self, root: Value, place: Placement, starts: Sequence[int], shape: tuple[int, ...]) -> Tensor | None:
        """Return an input that is in SBUF, or the sums of a product; None if no view of them is the tile."""
        along = self.emitter.inputs[root, place]
        steps, view, nest = self.nest.steps(along), self.emission.view(root), self.nest
        if view is None or self.emitter.plan.row is None or nest.row is None or not steps[nest.row]:
            return None
        home = self.emission.home(view)
        offset = home.offset(view) + sum(start * step for start, step in zip(starts, steps, strict=True))
        row, free = (self.partitions, steps[nest.row]), [*zip(shape, [steps[d] for d in nest.free] or [0], strict=True)]
        if home.pending is not None:
            found = home.pending.tile(offset, row, free) if home.pending.start() else None
            if found is not None:
                # A scalar of an instruction is in SBUF.
                return self.emission.chip.copied(found) if found.size == 1 else found
            home.pending.finish()
        for one in home.residents:
            if one.format is view.format and (tile := one.legal(offset, [row], free, self.program.config)) is not None:
                return tile
        return None

    def _indices(self, maker: Iota, along: Sequence[int], starts, shape, rows) -> Tensor:
        of = maker.result.type
        integers = of.format if of.format in (INT32, UINT32) else INT32
        tile = self.program.space.sbuf("indices", integers, shape, rows)
        base, (row, *free) = self._elements(along, starts)
        self.program.append(isa.iota(tile, Index(base=base, partition=row, steps=tuple(free))))
        if of.format is integers:
            return tile
        cast = self.program.space.sbuf("indices", of.format, shape, rows)
        if isinstance(of.format, IntFormat) and maker.result.shape[maker.axis] > of.format.max:
            wrap(Lanes(self.program, shape, rows, self.emission.chip.busy), cast, tile)
        else:
            self.program.append(isa.tensor_copy(cast, tile))
        return cast

    def _part(self, tensor: HbmTensor, along: Sequence[int], starts, shape, rows) -> HbmTensor:
        """Return the view of a tensor in HBM that a tile is loaded from or stored to."""
        first, steps = self._elements(along, starts)
        return elements_at(tensor, first, (rows, *shape), steps)

    def _elements(self, along: Sequence[int], starts: Sequence[int]) -> tuple[int, tuple[int, ...]]:
        """Return a tile's first element, and the elements from one row to the next and along its free dimensions."""
        steps = self.nest.steps(along)
        first = self.nest.offset(along) + sum(start * step for start, step in zip(starts, steps, strict=True))
        row = steps[self.nest.row] if self.nest.row is not None else 0
        return first, (row, *([steps[d] for d in self.nest.free] or [0]))

    def _place(self, value: Value, along: Sequence[int]) -> None:
        """Store a result in HBM, or keep its tile."""
        steps = self.nest.steps(along)
        # A value without a dimension of the nest is stored by the first tile of it.
        if any(start and not step for start, step in zip(self.tile.starts, steps, strict=True)):
            return
        row = self.nest.row is not None and steps[self.nest.row] != 0
        rows = self.partitions if row else 1
        tile = self.values[value]
        assert isinstance(tile, Tensor)
        tile = tile[:rows]
        if (resident := self.outer.residents.get(value)) is not None:
            pairs = zip(self.tile.starts, self.outer.rows[value], strict=True)
            first = sum(start * row for start, row in pairs)
            same = tile.format is resident.format
            resident.tiles[first] = tile if same else self.emission.chip.copied(tile, resident.format)
        if value in self.emitter.plan.stored:
            to = self._part(self.emission.tensors[value], along, self.tile.starts, tile.shape, rows)
            copy_tile(self.program, to, tile, self.program.stores)
