"""Soak case of a single core: images with instructions of all engines, executed one after another."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.job import ALIGNMENT, ImageJob
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.stimulus.core_programs import CoreChoices, CoreProgram, random_core_program
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices
from neuroncore_rtl.tb.tests.core.program import OPCODES
from neuroncore_rtl.tb.tests.soak.case import ConfigCase, Verdict, verdict_of
from neuroncore_rtl.tb.tests.soak.machines import drawn_hbm, hbm_labels, machine_labels
from neuroncore_rtl.tb.tests.soak.parts import Part, part_of

__all__ = ["CoreCase", "draw_garble", "drawn_choices"]

SEMAPHORES_EACH = 2  # a program for a core with few semaphores is short


@dataclass(frozen=True, kw_only=True)
class CoreCase(ConfigCase):
    """Images on a core, by ascending address."""

    machine: Config
    parts: tuple[Part, ...]
    behaviour: Hbm

    subject = "core"

    @classmethod
    def draw(cls, rng: np.random.Generator, machine: Config) -> Self:
        parts, base = [], 0
        for _ in range(int(rng.integers(1, 6))):
            most = min(100, SEMAPHORES_EACH * machine.semaphores // 2)
            made = _draw_program(rng, machine, int(rng.integers(5, most + 1)), base)
            parts.append(part_of(made, draw_garble(rng)))
            base += -(-len(parts[-1].image(machine).data) // ALIGNMENT) * ALIGNMENT
        return cls(machine=machine, parts=tuple(parts), behaviour=drawn_hbm(rng))

    @property
    def size(self) -> int:
        return sum(len(part.steps) for part in self.parts)

    def judge(self) -> Verdict:
        images = [part.image(self.machine) for part in self.parts]
        given = {"behaviour": self.behaviour, "limit": None, "dump": True, "may_fail": True}
        result = execute(ImageJob(machine=self.machine, images=images, **given), Rtl())
        runs = result.outcome.parts.values()
        ending = max((run.ending for run in runs if run.ending != Ending.ERROR), default=Ending.FINISHED)
        return verdict_of(result, ending, sum(run.cycles for run in runs))

    def without(self, numbers: Collection[int]) -> Self:
        parts, first = [], 0
        for part in self.parts:
            own = {number - first for number in numbers}
            first += len(part.steps)
            less = part.without(own)
            if less.steps or not part.steps:
                parts.append(less)
        return replace(self, parts=tuple(parts) or (self.parts[-1].without(range(first)),))

    def smaller(self, number: int) -> Iterator[Self]:
        for place, part in enumerate(self.parts):
            if number < len(part.steps):
                yield from (self.with_item("parts", place, less) for less in part.smaller(number))
                return
            number -= len(part.steps)

    def calmer(self) -> Iterator[Self]:
        yield replace(self, behaviour=Hbm())
        for place, part in enumerate(self.parts):
            yield from (self.with_item("parts", place, plain) for plain in part.calmer())

    def covers(self) -> Counter[str]:
        found = sum((part.covers() for part in self.parts), Counter())
        return found + machine_labels(self.machine) + hbm_labels(self.behaviour) + Counter({"engine:controller": 1})

    def lines(self) -> list[str]:
        headed = ((f"# image {n}, at {part.base:#x}", *part.lines()) for n, part in enumerate(self.parts))
        return [line for lines in headed for line in lines]


def draw_garble(rng: np.random.Generator) -> int | None:
    """Return a seed for the unused bits of records, or None."""
    return int(rng.integers(1 << 32)) if rng.integers(2) else None


def drawn_choices(rng: np.random.Generator, config: Config) -> CoreChoices:
    """Return the random composition of a program."""
    engines = rng.dirichlet((2, 2, 2))
    return CoreChoices(
        tensor=float(engines[0]),
        elementwise=float(engines[1]),
        copies=float(engines[2]),
        longest=int(rng.choice([32, 300])),
        nops=float(rng.choice([0, 0.2, 0.5])) if config.semaphores >= 128 else 0.0,
        sbuf_bytes=int(rng.choice([4096, 4096, 16384])),
        psum_bytes=int(rng.choice([4096, 4096, 8192])),
        elementwise_choices=Choices(opcodes=OPCODES),
    )


def _draw_program(rng: np.random.Generator, config: Config, count: int, base: int) -> CoreProgram:
    """Return a random program of `count` instructions, or of fewer if the core has too few semaphores."""
    choices, order = drawn_choices(rng, config), str(rng.choice(ORDERS))
    while True:
        made = random_core_program(rng, config, count, choices, base, order)
        try:
            made.image()
        except ValueError as refusal:
            if "semaphores must be more" not in str(refusal) or count < 2:
                raise
            count //= 2
        else:
            return made
