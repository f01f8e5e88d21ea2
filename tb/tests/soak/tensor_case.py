"""Soak case of the tensor engine: random programs with pauses in every stream."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from neuroncore_rtl.run.harness.engines.tensor import Drain, TensorDevice, TensorWork
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.stimulus.tensor_programs import random_tensor_program, replayed
from neuroncore_rtl.tb.tests.soak.case import CaseKind, ConfigCase, ListedCase, Verdict, text_of
from neuroncore_rtl.tb.tests.soak.machines import machine_labels
from neuroncore_rtl.tb.tests.soak.parts import instruction_labels, smaller_instructions

__all__ = ["TensorCase"]

STALLS = (0, 0, 40, 100, 200)
Item = isa.Instruction | tuple[int, int]  # an instruction, or a read of PSUM: first word and number of words


@dataclass(frozen=True, kw_only=True)
class TensorCase(ConfigCase, ListedCase):
    """Instructions and reads of PSUM, on operand memories, uint8 [rows, bytes]."""

    machine: Config
    items: tuple[Item, ...]
    stationary: np.ndarray
    moving: np.ndarray
    stall: int
    seed: int

    subject = "tensor"

    @classmethod
    def draw(cls, rng: np.random.Generator, machine: Config) -> Self:
        longest = int(rng.choice([16, 64, 512]))
        program, _ = random_tensor_program(rng, machine, int(rng.integers(20, 150)), longest)
        items, drains, moves = [], list(program.drains), 0
        for step in program.steps:
            items.append(step.instruction)
            moves += not step.instruction.lane
            while drains and drains[0].moves == moves and not step.instruction.lane:
                items.append((drains[0].psum, drains[0].words))
                drains.pop(0)
        items += [(drain.psum, drain.words) for drain in drains]
        operands = {"stationary": program.stationary, "moving": program.moving}
        disturbed = {"stall": int(rng.choice(STALLS)), "seed": int(rng.integers(1, 1 << 31))}
        return cls(machine=machine, items=tuple(items), **operands, **disturbed)

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
        smaller = _halves(*item) if isinstance(item, tuple) else smaller_instructions(item)
        return (self.with_item("items", number, less) for less in smaller)

    def calmer(self) -> Iterator[Self]:
        return self.variants(stall=0)

    def covers(self) -> Counter[str]:
        instructions = (item for item in self.items if not isinstance(item, tuple))
        found = Counter(label for item in instructions for label in instruction_labels(item))
        return found + machine_labels(self.machine) + Counter([f"stall:streams {'some' if self.stall else 'none'}"])

    def lines(self) -> list[str]:
        return [
            f"# read {item[1]} words of PSUM from {item[0]}" if isinstance(item, tuple) else text_of(item)
            for item in self.items
        ]


def _halves(psum: int, words: int) -> list[tuple[int, int]]:
    halves = (psum, words // 2), (psum + words // 2, words - words // 2)
    return [half for half in halves if 0 < half[1] < words]


def _difference(drains: list[Drain], word: int, column: int, found: np.ndarray, expected: np.ndarray) -> str:
    psum = drains[word].psum + sum(drain is drains[word] for drain in drains[:word])
    return f"PSUM partition {column}, word {psum}: {found[word, column]:08x}, golden {expected[word, column]:08x}"
