"""Soak case of the vector and scalar engines: random programs with pauses in every stream and memory port."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.run.elementwise import Differences, ElementwiseProgram, expected_memories, record_of, work_of
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseDevice
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program, random_records
from neuroncore_rtl.tb.tests.core.program import OPCODES
from neuroncore_rtl.tb.tests.soak.case import ConfigCase, ListedCase, Verdict, kind_of, text_of
from neuroncore_rtl.tb.tests.soak.machines import machine_labels
from neuroncore_rtl.tb.tests.soak.parts import instruction_labels, smaller_instructions

__all__ = ["ElementwiseCase"]

STALLS = (0, 0, 40, 100, 200)
BYTES = (2048, 4096, 4096, 16384)  # SBUF in use, in bytes per partition


@dataclass(frozen=True, kw_only=True)
class ElementwiseCase(ConfigCase, ListedCase):
    """Program of both engines in sequential order, on memories uint8 [partitions, bytes]."""

    machine: Config
    items: tuple[isa.Elementwise, ...]
    sbuf: np.ndarray
    psum: np.ndarray
    garble: int | None
    stall: int
    seed: int

    subject = "elementwise"

    @classmethod
    def draw(cls, rng: np.random.Generator, machine: Config) -> Self:
        size = min(int(rng.choice(BYTES)), machine.sbuf_bytes)
        count = int(rng.integers(20, 200))
        program = random_elementwise_program(rng, machine, count, Choices(opcodes=OPCODES), bytes_per_partition=size)
        disturbed = {"stall": int(rng.choice(STALLS)), "seed": int(rng.integers(1, 1 << 31))}
        memories = {"sbuf": program.sbuf, "psum": program.psum}
        garble = int(rng.integers(1 << 32))
        return cls(machine=machine, items=tuple(program.instructions), **memories, garble=garble, **disturbed)

    def _program(self) -> ElementwiseProgram:
        program = Program(self.machine)
        for instruction in self.items:
            program.append(instruction)
        if self.garble is None:
            records = [record_of(entry, self.machine) for entry in program.entries]
        else:
            records = random_records(np.random.default_rng(self.garble), program)
        instructions = [entry.instruction for entry in program.entries]
        return ElementwiseProgram(instructions=instructions, records=records, sbuf=self.sbuf, psum=self.psum)

    def judge(self) -> Verdict:
        program = self._program()
        expected = expected_memories(program.instructions, self.sbuf, self.psum, self.machine)
        work = work_of(program, stall=self.stall, seed=self.seed)
        outcome = run_device(ElementwiseDevice(config=self.machine), work, doing=f"running {self.size} instructions")
        found = Differences(program, outcome.memories, expected)
        refused = [f"the {name} engine reports an error: {one}" for name, one in outcome.faults.items()]
        kind = kind_of(outcome.ending, refused, found.compared, len(found.places))
        messages = (*refused, *found.lines())
        return Verdict(kind=kind, compared=found.compared, cycles=outcome.cycles, failures=messages)

    def smaller(self, number: int) -> Iterator[Self]:
        return (self.with_item("items", number, less) for less in smaller_instructions(self.items[number]))

    def calmer(self) -> Iterator[Self]:
        return self.variants(stall=0, garble=None)

    def covers(self) -> Counter[str]:
        found = Counter(label for item in self.items for label in instruction_labels(item))
        return found + machine_labels(self.machine) + Counter([f"stall:streams {'some' if self.stall else 'none'}"])

    def lines(self) -> list[str]:
        return [text_of(item) for item in self.items]
