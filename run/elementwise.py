"""Programs of the vector and scalar engine, and the job that runs one without the core."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore_rtl.golden.scalar import ScalarEngine
from neuroncore_rtl.golden.vector import VectorEngine
from neuroncore_rtl.kernels.program.entries import Entry
from neuroncore_rtl.kernels.program.footprint import addresses_of
from neuroncore_rtl.run.harness.engines.elementwise import ENGINES, ElementwiseDevice, ElementwiseWork, EngineRecord
from neuroncore_rtl.run.harness.outcome import Outcome
from neuroncore_rtl.run.job import Expected, Job
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Elementwise, Engine, Storage, queue_name

__all__ = ["Differences", "ElementwiseJob", "ElementwiseProgram", "expected_memories", "record_of", "work_of"]

SHOWN = 5
"""Maximum number of instructions with wrong results that are printed."""


@dataclass(frozen=True, kw_only=True)
class ElementwiseProgram:
    """Instructions of both engines, in an order that satisfies the dependences, and the initial memories.

    `records` are the same instructions for the harness, with random bits in unused fields.
    """

    instructions: list[Elementwise]
    records: list[EngineRecord]
    sbuf: np.ndarray
    psum: np.ndarray

    def last_writer(self, storage: Storage, partition: int, byte: int) -> int | None:
        for number in reversed(range(len(self.instructions))):
            for region in self.instructions[number].writes:
                if region.storage == storage and partition in region.rows and byte in addresses_of(region):
                    return number
        return None


def record_of(entry: Entry, config: Config) -> EngineRecord:
    """Return the harness's record of an entry; all entries must be of the vector and scalar engines."""
    # The tensor engine has two lanes, so the lane of these engines is their queue's number plus one.
    waits = {queue_name(lane - 1, config): count for lane, count in entry.waits}
    return EngineRecord(engine=queue_name(entry.queue, config), word=entry.instruction.encode(config), **waits)


def work_of(program: ElementwiseProgram, **disturbed: Any) -> ElementwiseWork:
    """Return a program as work of the harness; `disturbed` are further arguments of `ElementwiseWork`."""
    return ElementwiseWork(program=program.records, sbuf=program.sbuf, psum=program.psum, **disturbed)


def expected_memories(
    instructions: list[Elementwise], sbuf: np.ndarray, psum: np.ndarray, config: Config
) -> tuple[np.ndarray, np.ndarray]:
    """Return copies of SBUF and PSUM after golden's execution of `instructions`."""
    sbuf, psum = sbuf.copy(), psum.copy()
    engines = {Engine.VECTOR: VectorEngine(config), Engine.SCALAR: ScalarEngine(config)}
    for instruction in instructions:
        engines[instruction.engine].execute(instruction, sbuf, psum)
    return sbuf, psum


class Differences:
    """Bytes that differ from golden's, at `places` (storage, partition, byte), and the instructions that wrote them."""

    def __init__(
        self, program: ElementwiseProgram, found: Mapping[str, np.ndarray], expected: tuple[np.ndarray, np.ndarray]
    ):
        self._program = program
        self._memories = {
            Storage.SBUF: (found["sbuf"], expected[0], program.sbuf),
            Storage.PSUM: (found["psum"], expected[1], program.psum),
        }
        self.places = [
            (storage, int(partition), int(byte))
            for storage, (got, wanted, _) in self._memories.items()
            for partition, byte in np.argwhere(got != wanted)
        ]

    @property
    def compared(self) -> int:
        return sum(got.size for got, _, _ in self._memories.values())

    @property
    def changed(self) -> int:
        """Number of bytes of SBUF and PSUM that the program changes in golden."""
        return sum(int((wanted != before).sum()) for _, wanted, before in self._memories.values())

    def lines(self) -> list[str]:
        """Return the first wrong byte of each of the first instructions that wrote wrong bytes, a line each."""
        found = {}
        for storage, partition, byte in self.places:
            writer = self._program.last_writer(storage, partition, byte)
            found.setdefault(writer, (storage, partition, byte))
            if len(found) == SHOWN:
                break
        return [self._line(writer, *place) for writer, place in found.items()]

    def _line(self, writer: int | None, storage: Storage, partition: int, byte: int) -> str:
        got, wanted, _ = self._memories[storage]
        word = slice(byte & ~3, (byte & ~3) + 4)
        words = [memory[partition, word][::-1].tobytes().hex() for memory in (got, wanted)]
        by = "no instruction writes there" if writer is None else f"{writer}: {self._program.instructions[writer]}"
        return f"{storage.name} partition {partition} byte {byte}: word {words[0]}, golden {words[1]}; {by}"


@dataclass(frozen=True, kw_only=True)
class ElementwiseJob(Job):
    """Job that runs a program on the vector and scalar engine alone; for `stall` and `events` see `ElementwiseWork`."""

    config: Config
    program: ElementwiseProgram
    engines: tuple[str, ...] = ENGINES
    stall: int = 0
    events: bool = False

    @property
    def doing(self) -> str:
        return f"running {len(self.program.instructions):,} instructions"

    def device(self, *, waves: bool = False) -> ElementwiseDevice:
        return ElementwiseDevice(config=self.config, engines=self.engines)

    def work(self, seed: int, *, sampled: bool = False, profiled: bool = False) -> ElementwiseWork:
        return work_of(self.program, stall=self.stall, seed=seed, events=self.events)

    def golden(self) -> Expected:
        memories = expected_memories(self.program.instructions, self.program.sbuf, self.program.psum, self.config)
        return Expected(memories=dict(zip(("sbuf", "psum"), memories, strict=True)))

    def differences(self, found: Mapping[str, np.ndarray], expected: Expected) -> list[str]:
        return Differences(self.program, found, (expected.memories["sbuf"], expected.memories["psum"])).lines()

    def failures(self, outcome: Outcome, expected: Expected) -> Iterator[str]:
        for engine, error in outcome.faults.items():
            yield f"the {engine} engine refused instruction {error.number}, rule {error.cause}"
