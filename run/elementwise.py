"""A program of the vector and the scalar engine, as the harness takes it, and what golden leaves in memory."""

from dataclasses import dataclass

import numpy as np

from neuroncore_rtl.golden.scalar import ScalarEngine
from neuroncore_rtl.golden.vector import VectorEngine
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.program.footprint import addresses_of
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseWork, EngineRecord
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Elementwise, Engine, Storage, queue_name

__all__ = ["ElementwiseProgram", "expected_memories", "record_of", "work_of"]


@dataclass(frozen=True, kw_only=True)
class ElementwiseProgram:
    """Instructions, what they wait for, and the memories in which they start.

    Arguments:
        instructions: of both engines, in an order in which they could run one after the other.
        records: the same for the harness, with random bits where an instruction uses none.
        sbuf, psum: uint8 [partitions, bytes].
    """

    instructions: list[Elementwise]
    records: list[EngineRecord]
    sbuf: np.ndarray
    psum: np.ndarray

    def last_writer(self, storage: Storage, partition: int, byte: int) -> int | None:
        """Return the number of the last instruction that writes a byte; None if none does."""
        for number in reversed(range(len(self.instructions))):
            for region in self.instructions[number].writes:
                if region.storage == storage and partition in region.rows and byte in addresses_of(region):
                    return number
        return None


def record_of(entry: Entry, config: Config) -> EngineRecord:
    """Return an entry of a program that has none but these engines' instructions as the harness takes it."""
    # The lane of one of their queues is the one behind its number, as the tensor queue has two.
    waits = {queue_name(lane - 1, config): count for lane, count in entry.waits}
    return EngineRecord(engine=queue_name(entry.queue, config), word=entry.instruction.encode(config), **waits)


def work_of(program: ElementwiseProgram, **disturbed: int | bool) -> ElementwiseWork:
    """Return a program as work of the engines; disturbed: what else is said of that."""
    return ElementwiseWork(program=program.records, sbuf=program.sbuf, psum=program.psum, **disturbed)


def expected_memories(
    instructions: list[Elementwise], sbuf: np.ndarray, psum: np.ndarray, config: Config
) -> tuple[np.ndarray, np.ndarray]:
    """Return SBUF and PSUM after golden has executed `instructions`, the first ones unchanged."""
    sbuf, psum = sbuf.copy(), psum.copy()
    engines = {Engine.VECTOR: VectorEngine(config), Engine.SCALAR: ScalarEngine(config)}
    for instruction in instructions:
        engines[instruction.engine].execute(instruction, sbuf, psum)
    return sbuf, psum
