"""Soak case of the controller's processor: random programs with paused buses and interrupts at random times."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.run.harness.outcome import Ending
from neuroncore_rtl.run.harness.riscv import MEMORY_BYTES, CpuDevice, CpuWork, Executable
from neuroncore_rtl.run.harness.run import run_device
from neuroncore_rtl.tb.stimulus.riscv_programs import TOHOST, random_riscv_program
from neuroncore_rtl.tb.tests.core.riscv import follow, verdict
from neuroncore_rtl.tb.tests.soak.case import Case, CaseKind, Verdict

__all__ = ["RiscvCase"]

NOTHING = (0x13).to_bytes(4, "little")  # ADDI x0, x0, 0
LIMIT = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RiscvCase(Case):
    """Controller program with `external` interrupts per 65,536 cycles; `body`: instructions that may become NOPs."""

    image: np.ndarray
    body: tuple[int, int]
    stall: int
    seed: int
    external: int

    subject = "riscv"
    machine = None

    @classmethod
    def draw(cls, rng: np.random.Generator, machine: None) -> Self:
        program = random_riscv_program(rng, int(rng.integers(50, 1500)), memory_bytes=MEMORY_BYTES)
        image = np.frombuffer(program.image, np.uint8)
        disturbed = {"stall": int(rng.choice([0, 0, 40, 120, 192])), "seed": int(rng.integers(1, 1 << 31))}
        return cls(image=image, body=program.body, external=int(rng.choice([0, 64, 512])), **disturbed)

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> None:
        """Return None: the processor has no parameters."""

    @property
    def _places(self) -> list[int]:
        first, end = self.body
        words = self.image[first:end].view("<u4")
        return (first + 4 * np.flatnonzero(words != int.from_bytes(NOTHING, "little"))).tolist()

    @property
    def size(self) -> int:
        return len(self._places)

    def judge(self) -> Verdict:
        program = Executable(self.image.tobytes(), TOHOST)
        disturbed = {"stall": self.stall, "seed": self.seed, "external": self.external}
        work = CpuWork(program=program, limit=LIMIT, trace=True, memory=True, **disturbed)
        outcome = run_device(CpuDevice(), work, doing=f"running {self.size:,} instructions")
        failures = verdict(outcome, LIMIT)
        comparison, problems = follow(program, outcome, memory=True)
        messages = [*([comparison.mismatch] if comparison.mismatch else []), *problems, *failures]
        kind = CaseKind.BYTES if comparison.mismatch or problems else CaseKind.NONE
        if not kind and failures:
            kind = CaseKind.HANG if outcome.ending != Ending.FINISHED else CaseKind.OTHER
        if not comparison.compared:
            kind = kind or CaseKind.NOTHING
        return Verdict(kind=kind, compared=comparison.compared, cycles=outcome.cycles, failures=tuple(messages))

    def without(self, numbers: Collection[int]) -> Self:
        image, places = self.image.copy(), self._places
        for number in numbers:
            image[places[number] : places[number] + 4] = np.frombuffer(NOTHING, np.uint8)
        return replace(self, image=image)

    def calmer(self) -> Iterator[Self]:
        return self.variants(stall=0, external=0)

    def covers(self) -> Counter[str]:
        stalled = f"stall:buses {'some' if self.stall else 'none'}"
        interrupts = f"interrupts:{'host and timer' if self.external else 'timer'}"
        return Counter({"engine:controller": self.size, stalled: 1, interrupts: 1})

    def lines(self) -> list[str]:
        return [f"{place:#07x}: {int(self.image[place : place + 4].view('<u4')[0]):08x}" for place in self._places]
