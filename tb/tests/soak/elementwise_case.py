"""Programs of the vector and the scalar engine, whose every stream and port may pause, on memories of the harness."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.program import Program
from neuroncore_rtl.run.elementwise import Differences, ElementwiseProgram, expected_memories, record_of, work_of
from neuroncore_rtl.run.harness.engines.elementwise import ElementwiseDevice
from neuroncore_rtl.run.harness.run import run
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.tb.stimulus.elementwise_programs import Choices, random_elementwise_program, random_records
from neuroncore_rtl.tb.tests.soak.case import ListedCase, Verdict, array_from, array_json, config_from, kind_of
from neuroncore_rtl.tb.tests.soak.case import usual as usual_configs
from neuroncore_rtl.tb.tests.soak.core_case import OPCODES, machine_labels
from neuroncore_rtl.tb.tests.soak.machines import drawn_config
from neuroncore_rtl.tb.tests.soak.parts import covered, instruction_of, smaller_instructions, text_of

__all__ = ["ElementwiseCase"]

STALLS = (0, 0, 40, 100, 200)

BYTES = (2048, 4096, 4096, 16384)
"""Of a partition of SBUF, what is used."""


@dataclass(frozen=True, kw_only=True)
class ElementwiseCase(ListedCase):
    """A program of both engines.

    Arguments:
        machine: the core's parameters.
        items: instructions, in an order in which they could run one after the other.
        sbuf, psum: uint8 [partitions, bytes].
        garble: seed of what is random where bits mean nothing; None: they are as they are.
        stall: every stream and port pauses in so many of 256 cycles. seed: of the pauses.
    """

    machine: Config
    items: tuple[isa.Elementwise, ...]
    sbuf: np.ndarray
    psum: np.ndarray
    garble: int | None
    stall: int
    seed: int

    subject = "elementwise"

    @classmethod
    def drawn(cls, rng: np.random.Generator, machine: Config) -> Self:
        """Return a random case on a machine."""
        size = min(int(rng.choice(BYTES)), machine.sbuf_bytes)
        count = int(rng.integers(20, 200))
        program = random_elementwise_program(rng, machine, count, Choices(opcodes=OPCODES), bytes_per_partition=size)
        memories = {"sbuf": program.sbuf, "psum": program.psum}
        disturbed = {"stall": int(rng.choice(STALLS)), "seed": int(rng.integers(1, 1 << 31))}
        garble = int(rng.integers(1 << 32))
        return cls(machine=machine, items=tuple(program.instructions), **memories, garble=garble, **disturbed)

    @classmethod
    def drawn_machine(cls, rng: np.random.Generator) -> Config:
        """Return a random machine."""
        return drawn_config(rng)

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

    def run(self) -> Verdict:
        program = self._program()
        expected = expected_memories(program.instructions, self.sbuf, self.psum, self.machine)
        work = work_of(program, stall=self.stall, seed=self.seed)
        outcome = run(ElementwiseDevice(config=self.machine), work, doing=f"running {self.size} instructions")
        found = Differences(program, outcome.memories, expected)
        refused = [f"the {name} engine reports an error: {one}" for name, one in outcome.faults.items()]
        kind = kind_of(outcome.ending, refused, found.compared, len(found.places))
        said = (*refused, *found.lines())
        return Verdict(kind=kind, compared=found.compared, cycles=outcome.cycles, failures=said)

    def smaller(self, number: int) -> Iterator[Self]:
        for less in smaller_instructions(self.items[number]):
            yield replace(self, items=(*self.items[:number], less, *self.items[number + 1 :]))

    def calmer(self) -> Iterator[Self]:
        for plain in ({"stall": 0}, {"garble": None}):
            if any(getattr(self, name) != value for name, value in plain.items()):
                yield replace(self, **plain)

    def plainer(self) -> Iterator[Self]:
        return (replace(self, machine=config) for config in usual_configs(self.machine))

    def covers(self) -> Counter[str]:
        found = Counter(label for item in self.items for label in covered(item))
        return found + machine_labels(self.machine) + Counter([f"stall:streams {'some' if self.stall else 'none'}"])

    def lines(self) -> list[str]:
        return [text_of(item) for item in self.items]

    def as_json(self) -> dict[str, object]:
        memories = {name: array_json(getattr(self, name)) for name in ("sbuf", "psum")}
        disturbed = {name: getattr(self, name) for name in ("garble", "stall", "seed")}
        return {"machine": asdict(self.machine), "items": self.lines(), **memories, **disturbed}

    @classmethod
    def from_json(cls, found: Mapping) -> Self:
        items = tuple(map(instruction_of, found["items"]))
        memories = {name: array_from(found[name]) for name in ("sbuf", "psum")}
        disturbed = {name: found[name] for name in ("garble", "stall", "seed")}
        return cls(machine=config_from(found["machine"]), items=items, **memories, **disturbed)
