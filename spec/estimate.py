"""Estimated cycles of instructions, from which a program's order is chosen.

Estimates of copies are high rather than low: an overestimated load only has more work planned before it, but an
underestimated load delays all work planned after it.
"""

from math import prod

from neuroncore_rtl.spec import costs, timing
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import DmaCopy, Elementwise, Instruction, LoadStationary, MultiplyMoving, Storage
from neuroncore_rtl.spec.isa.engine import RECORDS_AHEAD, records_ahead

__all__ = ["Estimate"]

HBM_LATENCY = 64
"""Assumed cycles from an address at the HBM port to its data."""

FETCH = HBM_LATENCY + 10
"""Cycles to fetch a record from HBM."""

HANDOVER = 8
"""Cycles from an instruction's end, through a semaphore, to the issue of the instruction that waits for it."""

COPY = 30
"""Cycles of a copy from its issue to its end, without its beats and the latency of HBM."""

CONFLICTS = 2
"""Assumed cycles per beat of a copy; more than 1, because the engines have priority at the on-chip memories."""

COLLECTIVE = 2000
"""Assumed cycles of a collective, whatever its size."""


class Estimate:
    """Estimate of instruction cycles on one machine."""

    OVERLAP = (HBM_LATENCY + COPY) // 2
    """Minimum cycles from one copy of an engine to the next; two copies are in flight."""

    def __init__(self, config: Config):
        self._config = config
        self._products = costs.array_latency(config) + config.result_latency + HANDOVER
        self._least = {engine: -(-FETCH // records_ahead(engine, config)) for engine in RECORDS_AHEAD}
        self._known: dict[tuple, tuple[int, int]] = {}

    def cycles(self, instruction: Instruction) -> tuple[int, int]:
        """Return the cycles for which an instruction occupies its engine, and further cycles until its results."""
        if isinstance(instruction, MultiplyMoving):
            cycles, delay = instruction.n, self._products
        elif isinstance(instruction, LoadStationary):
            cycles, delay = 0, self._products
        elif isinstance(instruction, Elementwise):
            cycles, delay = self._elementwise(instruction)
        elif isinstance(instruction, DmaCopy):
            beats = max(self._beats(instruction, side) for side in ("src", "dst"))
            casts = instruction.src.format is not instruction.dst.format
            cycles = max(CONFLICTS * beats, prod(instruction.shape) // self._config.cast_lanes if casts else 0)
            delay = HBM_LATENCY + COPY + self._config.dma_start + HANDOVER
        else:
            cycles, delay = COLLECTIVE, HANDOVER
        return max(cycles, self._least[instruction.engine]), delay

    def _elementwise(self, instruction: Elementwise) -> tuple[int, int]:
        one = instruction
        storages = (access and access.storage for access in (one.a, one.b))
        key = one.opcode, one.shape, one.op0, one.op1, one.sum_store, type(one.s0), type(one.s1), *storages
        if key not in self._known:
            delay = timing.ELEMENTWISE_CHECKER_LATENCY + costs.drain(one, self._config) + HANDOVER
            delay += self._config.result_latency
            self._known[key] = costs.step_cycles(one, self._config), delay
        return self._known[key]

    def _beats(self, copy: DmaCopy, name: str) -> int:
        side = getattr(copy, name)
        rows = copy.gather is not None or copy.scatter is not None
        key = side.steps, side.axis, copy.shape, side.storage, side.format.bits, rows
        if key not in self._known:
            length, jumps = costs.adjacent(side, copy.shape, rows)
            beat = timing.PSUM_WORD_BYTES if side.storage == Storage.PSUM else self._config.hbm_bytes
            self._known[key] = prod(count for count, _ in jumps) * -(-length // beat), 0
        return self._known[key][0]
