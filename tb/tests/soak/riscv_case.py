"""Programs of the controller's processor alone, whose buses may pause and which is interrupted at any time; every
instruction that retires is compared with the golden hart's, and memory in the end."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.harness.riscv import MEMORY_BYTES, CpuDevice, CpuWork, Executable
from neuroncore_rtl.run.harness.run import run
from neuroncore_rtl.tb.stimulus.riscv_programs import TOHOST, random_riscv_program
from neuroncore_rtl.tb.tests.core.riscv import followed, verdict
from neuroncore_rtl.tb.tests.soak.case import Case, CaseKind, Verdict, array_from, array_json

__all__ = ["RiscvCase"]

NOTHING = (0x13).to_bytes(4, "little")
"""ADDI x0, x0, 0."""

LIMIT = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RiscvCase(Case):
    """A program of the controller.

    Arguments:
        image: uint8 [bytes], memory before the start.
        body: the first byte of what may be left out, and the one behind the last; what is left out is a NOP.
        stall: both buses pause in so many of 256 cycles. seed: of the pauses.
        external: interrupts come in so many of 65,536 cycles.
    """

    image: np.ndarray
    body: tuple[int, int]
    stall: int
    seed: int
    external: int

    subject = "riscv"
    machine = None

    @classmethod
    def drawn(cls, rng: np.random.Generator, machine: None) -> Self:
        """Return a random case."""
        program = random_riscv_program(rng, int(rng.integers(50, 1500)), memory_bytes=MEMORY_BYTES)
        image = np.frombuffer(program.image, np.uint8)
        disturbed = {"stall": int(rng.choice([0, 0, 40, 120, 192])), "seed": int(rng.integers(1, 1 << 31))}
        return cls(image=image, body=program.body, external=int(rng.choice([0, 64, 512])), **disturbed)

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> None:
        """Return what is built: the processor, which has no parameters."""

    @property
    def _places(self) -> list[int]:
        """Where in the image the instructions are that can be left out."""
        first, end = self.body
        words = self.image[first:end].view("<u4")
        return (first + 4 * np.flatnonzero(words != int.from_bytes(NOTHING, "little"))).tolist()

    @property
    def size(self) -> int:
        return len(self._places)

    def run(self) -> Verdict:
        program = Executable(self.image.tobytes(), TOHOST)
        disturbed = {"stall": self.stall, "seed": self.seed, "external": self.external}
        work = CpuWork(program=program, limit=LIMIT, trace=True, memory=True, **disturbed)
        outcome = run(CpuDevice(), work, doing=f"running {self.size:,} instructions")
        failures = verdict(outcome, LIMIT)
        comparison, problems = followed(program, outcome, memory=True)
        said = [*([comparison.mismatch] if comparison.mismatch else []), *problems, *failures]
        kind = CaseKind.BYTES if comparison.mismatch or problems else CaseKind.NONE
        if not kind and failures:
            kind = CaseKind.HANG if outcome.ending != Ending.FINISHED else CaseKind.OTHER
        if not comparison.compared:
            kind = kind or CaseKind.NOTHING
        return Verdict(kind=kind, compared=comparison.compared, cycles=outcome.cycles, failures=tuple(said))

    def without(self, numbers: Collection[int]) -> Self:
        image, places = self.image.copy(), self._places
        for number in numbers:
            image[places[number] : places[number] + 4] = np.frombuffer(NOTHING, np.uint8)
        return replace(self, image=image)

    def calmer(self) -> Iterator[Self]:
        for name in ("stall", "external"):
            if getattr(self, name):
                yield replace(self, **{name: 0})

    def covers(self) -> Counter[str]:
        stalled = f"stall:buses {'some' if self.stall else 'none'}"
        interrupts = f"interrupts:{'host and timer' if self.external else 'timer'}"
        return Counter({"engine:controller": self.size, stalled: 1, interrupts: 1})

    def lines(self) -> list[str]:
        return [f"{place:#07x}: {int(self.image[place : place + 4].view('<u4')[0]):08x}" for place in self._places]

    def as_json(self) -> dict[str, object]:
        disturbed = {name: getattr(self, name) for name in ("stall", "seed", "external")}
        return {"image": array_json(self.image), "body": list(self.body), **disturbed}

    @classmethod
    def from_json(cls, found: Mapping) -> Self:
        disturbed = {name: found[name] for name in ("stall", "seed", "external")}
        return cls(image=array_from(found["image"]), body=tuple(found["body"]), **disturbed)
