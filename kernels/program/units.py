"""Dependence graph of the list scheduler: units of instructions that stay together, and the edges between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from neuroncore_rtl.kernels.program.entries import ProgramStep
from neuroncore_rtl.kernels.program.liveness import LiveRegions, reaches
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.estimate import Estimate
from neuroncore_rtl.spec.isa import Engine, Storage

__all__ = ["SchedulingUnit", "units_of"]


@dataclass(slots=True, eq=False)
class SchedulingUnit:
    """Instructions of a queue that must stay together: each uses the engine state of the one before.

    `queue` is None for any DMA queue. `steps` are indices among the section's steps, `cycles` those for which the unit
    occupies its engine, and `delay` further cycles until its results are available. `before` counts the units on which
    this unit depends and that have not completed; the units `after` depend on it.
    """

    number: int
    queue: int | None
    copies: bool
    stores: bool
    steps: list[int] = field(default_factory=list)
    cycles: int = 0
    delay: int = 0
    before: int = 0
    after: list["SchedulingUnit"] = field(default_factory=list)

    @property
    def loads(self) -> bool:
        """Whether the unit copies to on-chip memory."""
        return self.copies and not self.stores


def units_of(steps: Sequence[ProgramStep], config: Config) -> list[SchedulingUnit]:
    """Group the steps of a section into scheduling units; return the units, ordered by their first steps."""
    units: list[SchedulingUnit] = []
    places: list[SchedulingUnit] = []  # unit of each step
    last: dict[int | None, SchedulingUnit] = {}
    estimate, queues_of = Estimate(config), {engine: isa.queues_of(engine, config) for engine in Engine}
    copying, collective = queues_of[Engine.DMA], isa.collective_queue(config)
    for number, (instruction, _, queue, *_) in enumerate(steps):
        queues = queues_of[instruction.engine]
        if queue is None and len(queues) == 1:
            queue = queues[0]
        if not (instruction.continues and queue in last):
            stores = any(region.storage == Storage.HBM for region in instruction.writes)
            last[queue] = SchedulingUnit(len(units), queue, queues == copying, stores)
            units.append(last[queue])
        unit = last[queue]
        unit.steps.append(number)
        cycles, unit.delay = estimate.cycles(instruction)
        unit.cycles += cycles
        places.append(unit)
    live = LiveRegions(ordered=False)
    in_order: dict[int, SchedulingUnit] = {}
    for number, step in enumerate(steps):
        unit, instruction = places[number], step.instruction
        # Each step is a separate lane, since steps may complete in any order.
        reads, writes = reaches(instruction.reads), reaches(instruction.writes)
        touching = (*live.last(reads, written=True), *live.last(writes, written=False))
        live.add(number, number, reads, writes)
        before = {places[one] for one in touching}
        # Collectives keep the order that other cores expect.
        if unit.queue is not None and (step.in_order or unit.queue == collective):
            before.add(in_order.get(unit.queue, unit))
            in_order[unit.queue] = unit
        before.discard(unit)
        for one in before:
            one.after.append(unit)
        unit.before += len(before)
    return units
