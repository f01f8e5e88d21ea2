"""Programs of all engines on a core that is alone, one after the other, as images; what is on chip stays from one to
the next, and all of it is compared in the end."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.program import ORDERS
from neuroncore_rtl.run.harness.hbm import Hbm
from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.job import ALIGNMENT, ImageJob
from neuroncore_rtl.run.targets import Rtl, execute
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.isa import Opcode
from neuroncore_rtl.tb.stimulus.core_programs import CoreChoices, CoreProgram, random_core_program
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices
from neuroncore_rtl.tb.tests.soak.case import Case, Verdict, config_from, hbm_from, usual, verdict_of
from neuroncore_rtl.tb.tests.soak.machines import drawn_config, drawn_hbm
from neuroncore_rtl.tb.tests.soak.parts import Part, part_of

__all__ = ["CoreCase", "drawn_choices", "drawn_part", "hbm_labels", "machine_labels"]

OPCODES = (*Opcode, *[Opcode.ACTIVATE] * 5)
"""Those of the vector engine, and that of the scalar engine often enough to keep it busy."""

SEMAPHORES_EACH = 2
"""Instructions for each semaphore: of a core that has few, programs are short."""


@dataclass(frozen=True, kw_only=True)
class CoreCase(Case):
    """Images on a core.

    Arguments:
        machine: the core's parameters.
        parts: the images, in ascending order of their places.
        behaviour: of HBM.
    """

    machine: Config
    parts: tuple[Part, ...]
    behaviour: Hbm

    subject = "core"

    @classmethod
    def drawn(cls, rng: np.random.Generator, machine: Config) -> Self:
        """Return a random case on a machine."""
        parts, base = [], 0
        for _ in range(int(rng.integers(1, 6))):
            part, size = drawn_part(rng, machine, base)
            parts.append(part)
            base += -(-size // ALIGNMENT) * ALIGNMENT
        return cls(machine=machine, parts=tuple(parts), behaviour=drawn_hbm(rng))

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Config:
        """Return a random machine."""
        return drawn_config(rng)

    @property
    def size(self) -> int:
        return sum(len(part.steps) for part in self.parts)

    def run(self) -> Verdict:
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
                for less in part.smaller(number):
                    yield replace(self, parts=(*self.parts[:place], less, *self.parts[place + 1 :]))
                return
            number -= len(part.steps)

    def calmer(self) -> Iterator[Self]:
        yield replace(self, behaviour=Hbm())
        for place, part in enumerate(self.parts):
            for plain in part.calmer():
                yield replace(self, parts=(*self.parts[:place], plain, *self.parts[place + 1 :]))

    def plainer(self) -> Iterator[Self]:
        return (replace(self, machine=config) for config in usual(self.machine))

    def covers(self) -> Counter[str]:
        found = sum((part.covers() for part in self.parts), Counter())
        return found + machine_labels(self.machine) + hbm_labels(self.behaviour) + Counter({"engine:controller": 1})

    def lines(self) -> list[str]:
        found = []
        for number, part in enumerate(self.parts):
            found += [f"# image {number}, at {part.base:#x}", *part.lines()]
        return found

    def as_json(self) -> dict[str, object]:
        parts = [part.as_json() for part in self.parts]
        return {"machine": asdict(self.machine), "parts": parts, "behaviour": asdict(self.behaviour)}

    @classmethod
    def from_json(cls, found: Mapping) -> Self:
        parts = tuple(map(Part.from_json, found["parts"]))
        return cls(machine=config_from(found["machine"]), parts=parts, behaviour=hbm_from(found["behaviour"]))


def drawn_choices(rng: np.random.Generator, config: Config) -> CoreChoices:
    """Return what a random program on a machine consists of."""
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


def drawn_part(rng: np.random.Generator, config: Config, base: int) -> tuple[Part, int]:
    """Return a random part, and the bytes of its image."""
    most = min(100, SEMAPHORES_EACH * config.semaphores // 2)
    made = _made(rng, config, int(rng.integers(5, most + 1)), base)
    part = part_of(made, int(rng.integers(1 << 32)) if rng.integers(2) else None)
    return part, len(part.image(config).data)


def _made(rng: np.random.Generator, config: Config, count: int, base: int) -> CoreProgram:
    """Return a random program; where there are too few semaphores for it, a shorter one."""
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


def machine_labels(config: Config) -> Counter[str]:
    """Return the parameters of a core, `parameter:value`."""
    return Counter({f"{name}:{value}": 1 for name, value in asdict(config).items()})


def hbm_labels(behaviour: Hbm) -> Counter[str]:
    """Return what of an HBM's behaviour is not as usual."""
    disturbed = ("gap", "port_rate", "rate", "stall", "reorder", "interleave")
    found = [f"stall:HBM {name.replace('_', ' ')}" for name in disturbed if getattr(behaviour, name)]
    return Counter([*(found or ["stall:HBM none"]), f"latency of HBM:{behaviour.latency}"])
