"""Soak cases of the tensor, vector and scalar engines: random programs with pauses in every stream and memory port."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.run.elementwise import Differences, ElementwiseProgram, expected_memories, record_of, work_of
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseDevice
from neuroncore_rtl.run.harness.engines.tensor import Drain, TensorDevice, TensorProgram, TensorWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program, random_records
from neuroncore_rtl.tb.stimulus.tensor_programs import random_tensor_program, replayed
from neuroncore_rtl.tb.tests.core.program import OPCODES
from neuroncore_rtl.tb.tests.soak.case import CaseKind, ConfigCase, ListedCase, Verdict, kind_of, text_of
from neuroncore_rtl.tb.tests.soak.machines import machine_labels
from neuroncore_rtl.tb.tests.soak.parts import instruction_labels, smaller_instructions

__all__ = ["ElementwiseCase", "TensorCase", "items_of"]

STALLS = (0, 0, 40, 100, 200)
BYTES = (2048, 4096, 4096, 16384)  # SBUF in use, in bytes per partition
Read = tuple[int, int]  # of PSUM: first word and number of words


class EngineCase(ConfigCase, ListedCase):
    """Case of one or two engines."""

    stall: int

    def smaller(self, number: int) -> Iterator[Self]:
        return (self.with_item("items", number, less) for less in smaller_instructions(self.items[number]))

    def covers(self) -> Counter[str]:
        instructions = (item for item in self.items if not isinstance(item, tuple))
        found = Counter(label for item in instructions for label in instruction_labels(item))
        return found + machine_labels(self.machine) + Counter([f"stall:streams {'some' if self.stall else 'none'}"])

    def lines(self) -> list[str]:
        return [
            f"# read {item[1]} words of PSUM from {item[0]}" if isinstance(item, tuple) else text_of(item)
            for item in self.items
        ]


@dataclass(frozen=True, kw_only=True)
class TensorCase(EngineCase):
    """Instructions and reads of PSUM, on operand memories, uint8 [rows, bytes]."""

    machine: Config
    items: tuple[isa.Instruction | Read, ...]
    stationary: np.ndarray
    moving: np.ndarray
    stall: int
    seed: int

    subject = "tensor"

    @classmethod
    def draw(cls, rng: np.random.Generator, machine: Config) -> Self:
        longest = int(rng.choice([16, 64, 512]))
        program, _ = random_tensor_program(rng, machine, int(rng.integers(20, 150)), longest)
        operands = {"stationary": program.stationary, "moving": program.moving}
        disturbed = {"stall": int(rng.choice(STALLS)), "seed": int(rng.integers(1, 1 << 31))}
        return cls(machine=machine, items=tuple(items_of(program)), **operands, **disturbed)

    def judge(self) -> Verdict:
        program, expected = replayed(self.machine, self.items, self.stationary, self.moving)
        work = TensorWork(program=program, stall=self.stall, seed=self.seed)
        outcome = run_device(
            TensorDevice(config=self.machine), work, doing=f"running {len(program.steps)} instructions"
        )
        found = outcome.memories["psum"]
        wrong = np.argwhere(found != expected)
        words = [drain for drain in program.drains for _ in range(drain.words)]
        failures = [_difference(words, int(word), int(column), found, expected) for word, column in wrong[:5]]
        kind = CaseKind.BYTES if len(wrong) else CaseKind.NONE if found.size else CaseKind.NOTHING
        return Verdict(kind=kind, compared=4 * found.size, cycles=outcome.cycles, failures=tuple(failures))

    def smaller(self, number: int) -> Iterator[Self]:
        item = self.items[number]
        if not isinstance(item, tuple):
            return super().smaller(number)
        psum, words = item
        halves = (psum, words // 2), (psum + words // 2, words - words // 2)
        return (self.with_item("items", number, half) for half in halves if 0 < half[1] < words)

    def calmer(self) -> Iterator[Self]:
        return self.variants(stall=0)


def items_of(program: TensorProgram) -> Iterator[isa.Instruction | Read]:
    """Yield the instructions and reads of PSUM in their order."""
    drains, moves = list(program.drains), 0
    for step in program.steps:
        yield step.instruction
        moves += not step.instruction.lane
        while drains and drains[0].moves == moves and not step.instruction.lane:
            drain = drains.pop(0)
            yield drain.psum, drain.words
    yield from ((drain.psum, drain.words) for drain in drains)


def _difference(drains: list[Drain], word: int, column: int, found: np.ndarray, expected: np.ndarray) -> str:
    psum = drains[word].psum + sum(drain is drains[word] for drain in drains[:word])
    return f"PSUM partition {column}, word {psum}: {found[word, column]:08x}, golden {expected[word, column]:08x}"


@dataclass(frozen=True, kw_only=True)
class ElementwiseCase(EngineCase):
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

    def calmer(self) -> Iterator[Self]:
        return self.variants(stall=0, garble=None)
