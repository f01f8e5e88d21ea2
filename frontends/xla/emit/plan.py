"""Plan of a block: which passes work on chip, which dimension lies along the partitions, and where values go.

Products and the passes around them exchange values in SBUF. A value's readers choose its layout: a product contracts
along the partitions, and a pass reduces within a partition. From the last pass to the first, each takes the layout
with the least cost, counted in elements.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

from neuroncore_rtl.frontends.xla.emit.emission import VIEWS, Emission, is_view
from neuroncore_rtl.frontends.xla.emit.pass_plan import PassPlan, along_space, operand_place, operand_roots
from neuroncore_rtl.frontends.xla.emit.products import contraction_rows
from neuroncore_rtl.frontends.xla.emit.streamed_products import format_of_dot
from neuroncore_rtl.frontends.xla.fuse.passes import Pass
from neuroncore_rtl.frontends.xla.fuse.placement import Placement, placed_root
from neuroncore_rtl.frontends.xla.graph import operations as graph
from neuroncore_rtl.frontends.xla.graph.operations import Dot, Value
from neuroncore_rtl.spec.formats import INT8

__all__ = ["planned"]

_SHARE = 4
"""Fraction of SBUF that a value may occupy: 1 / 4."""
_FREE = 3
"""Maximum dimensions within a tile."""
_LIVE = 12
"""Tiles of a pass for which SBUF must have room."""
_TURN, _FETCH = 4, 8
"""Costs of an element that changes its layout through HBM, and of one that DMA moves alone; the array's is 1."""
_INSTRUCTION = 32
"""Cost of an instruction, in elements of a partition."""


def planned(emission: Emission, passes: Sequence[Pass], results: Sequence[Value]) -> dict[Pass, PassPlan]:
    """Return the plans of a block's passes."""
    return _Planner(emission, passes, results).plans


@dataclass(frozen=True)
class _Read:
    """A pass's read of a value: steps along its space, or the rows that a product contracts."""

    one: Pass
    dot: Dot | None
    steps: tuple[int, ...]
    unit: int = 1


class _Planner:
    def __init__(self, emission: Emission, passes: Sequence[Pass], results: Sequence[Value]):
        self.emission, self.config = emission, emission.program.config
        self.lanes = emission.program.lanes
        self.passes = [one for one in passes if not isinstance(one.operations[0], (*VIEWS, graph.Constant, graph.Iota))]
        self.plans = {one: PassPlan() for one in passes}
        self.producers = {value: one for one in self.passes for op in one.operations for value in op.results}
        self.segments: dict[Pass, int] = {}
        for one in self.passes:
            number = max(self.segments.values(), default=0)
            self.segments[one] = number + 1 if one.operations[0].blocks and not one.is_fused else number
            # A loop has its own segment.
            if self.segments[one] > number:
                self.segments[one] += 1
        self.reads: dict[Value, list[_Read]] = {}
        self.in_hbm = {self._origin(value) for value in results}
        for one in self.passes:
            for value in {self._origin(value) for op in one.operations for value in op.reads()}:
                if value in self.producers and self.producers[value] is not one:
                    self.reads.setdefault(value, [])
        for one in self.passes:
            if one.is_fused or isinstance(one.operations[0], Dot):
                for value in dict.fromkeys((*one.places, *one.operations[0].results)):
                    if value.size and (value in self.reads or value in self.in_hbm):
                        emission.new(value)
        self._choose()

    def _origin(self, value: Value) -> Value:
        """Return the value that this is a view into."""
        maker = self.emission.makers.get(value)
        while is_view(maker):
            (value,) = maker.operands
            maker = self.emission.makers.get(value)
        return value

    def _choose(self) -> None:
        dots = {one for one in self.passes if isinstance(one.operations[0], Dot) and self._fits(one.operations[0])}
        for one in self.passes:
            plan = self.plans[one]
            feeds = any(self.producers.get(value) in dots for value in self._inputs(one))
            plan.on_chip = one in dots or (one.is_fused and feeds)
        for one in self.passes:
            if one in dots:
                for value in self._inputs(one):
                    if (maker := self.producers.get(value)) is not None and maker.is_fused:
                        self.plans[maker].on_chip = True
        for one in self.passes:
            if one.is_fused and any(self._is_on_chip(value, one) for value in self._inputs(one)):
                self.plans[one].on_chip = True
        for one in self.passes:
            self._note_reads(one)
        for one in reversed(self.passes):
            plan = self.plans[one]
            if plan.on_chip:
                (self._lay_out_pass if one.is_fused else self._lay_out_product)(one, plan)
            self._place(one, plan)
        for one in self.passes:
            if self.plans[one].on_chip and isinstance(one.operations[0], Dot):
                self._defer(one, self.plans[one])

    def _inputs(self, one: Pass) -> set[Value]:
        return {self._origin(value) for op in one.operations for value in op.operands} - {*one.places}

    def _is_on_chip(self, value: Value, reader: Pass) -> bool:
        maker = self.producers.get(value)
        return maker is not None and self.plans[maker].on_chip and self.segments[maker] == self.segments[reader]

    def _fits(self, dot: Dot) -> bool:
        """Return whether operands and result of a product have room in SBUF."""
        fmt, most = format_of_dot(self.emission.options, dot), self.config.sbuf_bytes * self.lanes // _SHARE
        if not dot.result.size or fmt is INT8 or not dot.result.type.is_float:
            return False
        sizes = [(value.size, fmt.bits) for value in dot.operands] + [(dot.result.size, dot.result.type.bits)]
        return all(size * bits // 8 <= most for size, bits in sizes)

    def _note_reads(self, one: Pass) -> None:
        """Note the reads of a pass; values that it does not read on chip must be in HBM."""
        first = one.operations[0]
        for op in one.operations:
            for value in op.reads():
                origin = self._origin(value)
                if origin not in self.producers or self.producers[origin] is one:
                    continue
                on_chip = self.plans[one].on_chip and self._is_on_chip(origin, one) and value in op.operands
                if not on_chip:
                    self.in_hbm.add(origin)
                elif one.is_fused:
                    root, place = placed_root(value, operand_place(one, op, value), self.emission.makers)
                    view = self.emission.view(root)
                    if view is None:
                        self.in_hbm.add(origin)
                    else:
                        self.reads[origin].append(_Read(one, None, along_space(view.steps, place, len(one.space))))
        if isinstance(first, Dot) and self.plans[one].on_chip:
            for value, batch, contract, _ in first.sides:
                origin = self._origin(value)
                if origin in self.reads and self._is_on_chip(origin, one):
                    if (view := self.emission.view(value)) is None:
                        self.in_hbm.add(origin)
                    else:
                        extent, step = (contraction_rows(view, batch, contract) or [(1, 0)])[-1]
                        self.reads[origin].append(_Read(one, first, (step,), extent))

    def _layouts(self, value: Value) -> Iterator[tuple[int, int, int]]:
        """Yield the step along the partitions that each reader of a value wants, the cost of another, and a unit."""
        for read in self.reads.get(value, ()):
            if read.dot is not None:
                yield read.steps[0], value.size, read.unit
            elif (row := self.plans[read.one].row) is not None:
                yield read.steps[row], _TURN * value.size, 1

    def _lay_out_pass(self, one: Pass, plan: PassPlan) -> None:
        costs = [
            (self._cost(one, row, free), row, free)
            for row, extent in enumerate(one.space)
            if row not in one.reduced and extent > 1 and (free := self._free(one, row)) is not None
        ]
        # Tiles of one element per partition take as many instructions as long ones: a vector is one tile by way of HBM.
        if not costs or (len(one.space) == 1 and one.space[0] > self.lanes):
            plan.on_chip = False
            self.in_hbm |= self._inputs(one)
            return
        _, row, plan.free = min(costs)
        units = [
            unit
            for value in one.places
            for step, _, unit in self._layouts(value)
            if unit > 1 and self._steps(one, value)[row] == step and one.space[row] % unit == 0
        ]
        plan.row, plan.unit = row, min(units, default=one.space[row])

    def _free(self, one: Pass, row: int) -> tuple[int, ...] | None:
        """Return the dimensions within a tile: those reduced, or as many others as fit; None if they do not fit."""
        most = self.config.sbuf_bytes // (4 * _LIVE)
        free = sorted(one.reduced)
        if not free:
            size = 1
            for d in reversed([d for d in range(len(one.space)) if d != row]):
                # A value with one element of a tile for each index of a loop is a scalar of instructions.
                partial = any(d in place and not {*free} <= {*place} for place in self._places(one))
                is_apart = free and (d + 1 not in free or self._is_batch(one, d))
                if size * one.space[d] > most or len(free) == _FREE or partial or is_apart:
                    break
                size *= one.space[d]
                free.insert(0, d)
        return tuple(free) if prod(one.space[d] for d in free) <= most else None

    def _is_batch(self, one: Pass, d: int) -> bool:
        """Return whether a product that the pass reads has a tile for each index of a dimension."""
        for value in self._inputs(one):
            dot = self.producers[value].operations[0] if self._is_on_chip(value, one) else None
            if isinstance(dot, Dot) and dot.batch[0]:
                inner = prod(value.shape[len(dot.batch[0]) :])
                reads = [read for read in self.reads[value] if read.one is one]
                if any(read.steps[d] >= inner for read in reads):
                    return True
        return False

    def _places(self, one: Pass) -> Iterator[Placement]:
        """Yield the placements of a pass's results and operands."""
        yield from one.places.values()
        yield from (place for _, place in operand_roots(one, self.emission.makers))

    def _steps(self, one: Pass, value: Value) -> tuple[int, ...]:
        if value not in self.emission.tensors:
            return (0,) * len(one.space)
        return along_space(self.emission.tensors[value].steps, one.places[value], len(one.space))

    def _cost(self, one: Pass, row: int, free: tuple[int, ...]) -> float:
        extent, total = one.space[row], prod(one.space)
        tiles = total / (extent * prod(one.space[d] for d in free)) * ceil(extent / self.lanes)
        cost = tiles * (prod(one.space[d] for d in free) + _INSTRUCTION) * self.lanes * len(one.operations)
        for root, place in operand_roots(one, self.emission.makers):
            if root in one.places or isinstance(self.emission.makers.get(root), graph.Constant | graph.Iota):
                continue
            view = self.emission.view(root)
            if view is None:
                continue
            steps = along_space(view.steps, place, len(one.space))
            origin = self._origin(root)
            if not self._is_on_chip(origin, one):
                cost += _FETCH * root.size if steps[row] == 1 and root.size > extent else 0
                # DMA copies a row of parameters to each partition.
                beat = self.config.hbm_bytes * self.config.hbm_ports
                cost += 0 if steps[row] else self.lanes**2 * root.size * root.type.bits // 8 // beat
            elif (maker := self.producers[origin]).is_fused:
                own = self._steps(maker, origin)
                cost += _TURN * root.size if steps[row] in {own[d] for d in maker.reduced} - {0} else 0
        for value in one.places:
            own = self._steps(one, value)[row]
            if value in self.in_hbm and own == 1 and value.size > extent:
                cost += _FETCH * value.size
            cost += sum(price for step, price, _ in self._layouts(value) if step != own)
        return cost

    def _lay_out_product(self, one: Pass, plan: PassPlan) -> None:
        dot = one.operations[0]
        assert isinstance(dot, Dot)
        (a, batch, contract, free), (b, *_, others) = dot.sides
        left, right = prod(a.shape[d] for d in free), prod(b.shape[d] for d in others)
        batches = prod(a.shape[d] for d in batch)
        depth = ceil(prod(a.shape[d] for d in contract) / self.lanes)
        costs = []
        for turned, (m, n) in enumerate(((left, right), (right, left))):
            cost = batches * depth * ceil(m / self.lanes) * max(n, self.lanes) * self.lanes
            cost += _FETCH * dot.result.size if turned and dot.result in self.in_hbm and left > 1 else 0
            for step, price, _ in self._layouts(dot.result):
                cost += price if step and (step < right) != turned else 0
            costs.append(cost)
        plan.turned = costs[1] < costs[0]
        rows = right if plan.turned else left
        units = [
            unit
            for step, _, unit in self._layouts(dot.result)
            if unit > 1 and (step < right) == plan.turned and rows % unit == 0
        ]
        plan.unit = min(units, default=rows)

    def _place(self, one: Pass, plan: PassPlan) -> None:
        for value in dict.fromkeys((*one.places, *one.operations[0].results)):
            if value in self.in_hbm or (value in self.reads and not plan.on_chip):
                plan.stored.add(value)
            reads = [read for read in self.reads.get(value, ()) if self.plans[read.one].on_chip]
            if not plan.on_chip or not reads:
                continue
            formats = {
                value.type.format if read.dot is None else format_of_dot(self.emission.options, read.dot)
                for read in reads
            }
            plan.kept[value] = formats.pop() if len(formats) == 1 else value.type.format

    def _defer(self, one: Pass, plan: PassPlan) -> None:
        """Let the only pass that reads a product ask for its sums."""
        result = one.operations[0].result
        reads = self.reads.get(result, [])
        readers = {read.one for read in reads}
        if len(readers) == 1 and result not in self.in_hbm and reads[0].dot is None:
            (reader,) = readers
            everywhere = all(step or n == 1 for step, n in zip(reads[0].steps, reader.space, strict=True))
            plan.deferred = everywhere and self.plans[reader].on_chip
