"""Programs of the tensor engine alone, every stream of which may pause: words of PSUM that are read while others are
written, and all that were written in the end."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.run.harness.engines.tensor import Drain, TensorDevice, TensorWork
from neuroncore_rtl.run.harness.run import run
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.stimulus.tensor_programs import random_tensor_program, replayed
from neuroncore_rtl.tb.tests.soak.case import CaseKind, ListedCase, Verdict, array_from, array_json, config_from, usual
from neuroncore_rtl.tb.tests.soak.core_case import machine_labels
from neuroncore_rtl.tb.tests.soak.machines import drawn_config
from neuroncore_rtl.tb.tests.soak.parts import covered, instruction_of, smaller_instructions, text_of

__all__ = ["TensorCase"]

STALLS = (0, 0, 40, 100, 200)

Item = isa.Instruction | tuple[int, int]
"""An instruction; or the first of the words of PSUM that are read, and how many."""


@dataclass(frozen=True, kw_only=True)
class TensorCase(ListedCase):
    """A program of the tensor engine.

    Arguments:
        machine: the core's parameters.
        items: instructions and readings of PSUM, in order.
        stationary, moving: operand memory, uint8 [rows, bytes].
        stall: every stream pauses in so many of 256 cycles. seed: of the pauses.
    """

    machine: Config
    items: tuple[Item, ...]
    stationary: np.ndarray
    moving: np.ndarray
    stall: int
    seed: int

    subject = "tensor"

    @classmethod
    def drawn(cls, rng: np.random.Generator, machine: Config) -> Self:
        """Return a random case on a machine."""
        longest = int(rng.choice([16, 64, 512]))
        program, _ = random_tensor_program(rng, machine, int(rng.integers(20, 150)), longest)
        items, drains = [], list(program.drains)
        moves = 0
        for step in program.steps:
            items.append(step.instruction)
            moves += not step.instruction.lane
            while drains and drains[0].moves == moves and not step.instruction.lane:
                items.append((drains[0].psum, drains[0].words))
                drains.pop(0)
        items += [(drain.psum, drain.words) for drain in drains]
        operands = {"stationary": program.stationary, "moving": program.moving}
        return cls(machine=machine, items=tuple(items), **operands, stall=int(rng.choice(STALLS)), seed=_seed(rng))

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Config:
        """Return a random machine."""
        return drawn_config(rng)

    def run(self) -> Verdict:
        program, expected = replayed(self.machine, self.items, self.stationary, self.moving)
        work = TensorWork(program=program, stall=self.stall, seed=self.seed)
        outcome = run(TensorDevice(config=self.machine), work, doing=f"running {len(program.steps)} instructions")
        found = outcome.memories["psum"]
        wrong = np.argwhere(found != expected)
        words = [drain for drain in program.drains for _ in range(drain.words)]
        failures = [_difference(words, int(word), int(column), found, expected) for word, column in wrong[:5]]
        kind = CaseKind.BYTES if len(wrong) else CaseKind.NONE if found.size else CaseKind.NOTHING
        return Verdict(kind=kind, compared=4 * found.size, cycles=outcome.cycles, failures=tuple(failures))

    def smaller(self, number: int) -> Iterator[Self]:
        item = self.items[number]
        if isinstance(item, tuple):
            psum, words = item
            found = [(first, count) for first, count in ((psum, words // 2), (psum + words // 2, words - words // 2))]
            smaller = [one for one in found if 0 < one[1] < words]
        else:
            smaller = smaller_instructions(item)
        for less in smaller:
            yield replace(self, items=(*self.items[:number], less, *self.items[number + 1 :]))

    def calmer(self) -> Iterator[Self]:
        if self.stall:
            yield replace(self, stall=0)

    def plainer(self) -> Iterator[Self]:
        return (replace(self, machine=config) for config in usual(self.machine))

    def covers(self) -> Counter[str]:
        found = Counter(label for item in self.items if not isinstance(item, tuple) for label in covered(item))
        return found + machine_labels(self.machine) + Counter([f"stall:streams {'some' if self.stall else 'none'}"])

    def lines(self) -> list[str]:
        return [
            f"# read {item[1]} words of PSUM from {item[0]}" if isinstance(item, tuple) else text_of(item)
            for item in self.items
        ]

    def as_json(self) -> dict[str, object]:
        items = [list(item) if isinstance(item, tuple) else text_of(item) for item in self.items]
        operands = {name: array_json(getattr(self, name)) for name in ("stationary", "moving")}
        return {"machine": asdict(self.machine), "items": items, **operands, "stall": self.stall, "seed": self.seed}

    @classmethod
    def from_json(cls, found: Mapping) -> Self:
        items = tuple(instruction_of(one) if isinstance(one, str) else tuple(one) for one in found["items"])
        operands = {name: array_from(found[name]) for name in ("stationary", "moving")}
        disturbed = {name: found[name] for name in ("stall", "seed")}
        return cls(machine=config_from(found["machine"]), items=items, **operands, **disturbed)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(1, 1 << 31))


def _difference(drains: list[Drain], word: int, column: int, found: np.ndarray, expected: np.ndarray) -> str:
    psum = drains[word].psum + sum(drain is drains[word] for drain in drains[:word])
    return f"PSUM partition {column}, word {psum}: {found[word, column]:08x}, golden {expected[word, column]:08x}"
