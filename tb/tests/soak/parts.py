"""A core's share of a case: instructions, what HBM holds, and how the records are made of them."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.kernels.program.program import HEADER_BYTES, Program
from neuroncore_rtl.kernels.text.assembly import parse_record, record_text
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import INT8
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.tb.stimulus.core_programs import CoreProgram, garbled_image
from neuroncore_rtl.tb.stimulus.nops import NopProgram
from neuroncore_rtl.tb.tests.soak.case import array_from, array_json, without

__all__ = ["Part", "covered", "instruction_of", "part_of", "smaller_instructions", "text_of"]

_FUNCTIONS = {function.code: name for name, function in FUNCTIONS.items()}


def text_of(instruction: isa.Instruction) -> str:
    """Return an instruction's line of assembly."""
    return record_text(isa.Record(instruction=instruction))


def instruction_of(text: str) -> isa.Instruction:
    """Return the instruction of a line of assembly."""
    return parse_record(text).instruction


def covered(instruction: isa.Instruction) -> Iterator[str]:
    """Yield what an instruction has, `dimension:value`."""
    yield f"engine:{instruction.engine.name.lower()}"
    name = instruction.name.lower()
    yield f"opcode:{name}"
    for field in ("format", "dtype"):
        if (found := getattr(instruction, field, None)) is not None:
            yield f"format:{found.name.lower()}"
    for place in ("a", "b", "src", "dst"):
        access = getattr(instruction, place, None)
        if hasattr(access, "format"):
            yield f"format:{access.format.name.lower()}"
    if name == "activate":
        yield f"function:{_FUNCTIONS[instruction.function]}"
    for field in ("op0", "op1"):
        if isinstance(found := getattr(instruction, field, None), isa.AluOp):
            yield f"alu:{found.name.lower()}"
    if getattr(instruction, "stochastic", False):
        yield "rounding:stochastic"


def smaller_instructions(instruction: isa.Instruction) -> Iterator[isa.Instruction]:
    """Yield an instruction with one of its sizes made smaller, the smallest first; some may not be legal."""
    for name in ("n", "k", "m", "partitions"):
        size = getattr(instruction, name, None)
        for less in sorted({1, size // 2} - {0, size}) if isinstance(size, int) else ():
            yield replace(instruction, **{name: less})
    shape = getattr(instruction, "shape", ())
    for d, size in enumerate(shape):
        for less in sorted({1, size // 2} - {0, size}):
            yield replace(instruction, shape=(*shape[:d], less, *shape[d + 1 :]))


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one core executes from one image.

    Arguments:
        base: HBM address of the image.
        order: of its instructions, see :class:`kernels.program.Program`.
        nops: share of the records that have NOPs before them. seed: of those NOPs.
        garble: seed of what is random where a record's bits mean nothing; None: they are as they are.
        steps: instructions, and the queue of each; None: it is not chosen.
        memory: uint8 [bytes], what HBM holds behind the image's header.
    """

    base: int
    order: str
    nops: float
    seed: int
    garble: int | None
    steps: tuple[tuple[isa.Instruction, int | None], ...]
    memory: np.ndarray

    def image(self, config: Config, core: int = 0) -> Image:
        """Return its image; core: the number of the one that executes it.

        Raises:
            ValueError: if it has an instruction that is not legal there, or too many of them.
        """
        made = {"order": self.order, "share": self.nops, "seed": self.seed, "core": core}
        program = NopProgram(config, self.base, **made)
        memory = program.space.hbm("memory", INT8, self.memory.shape)
        for instruction, queue in self.steps:
            program.append(instruction, queue)
        image = build_image(program, [(memory, self.memory)])
        return image if self.garble is None else garbled_image(np.random.default_rng(self.garble), image)

    def without(self, numbers: Collection[int]) -> Self:
        """Return it without some of its instructions."""
        return replace(self, steps=without(self.steps, numbers))

    def smaller(self, number: int) -> Iterator[Self]:
        """Yield it with one of its instructions made smaller."""
        instruction, queue = self.steps[number]
        for less in smaller_instructions(instruction):
            yield replace(self, steps=(*self.steps[:number], (less, queue), *self.steps[number + 1 :]))

    def calmer(self) -> Iterator[Self]:
        """Yield it with records that are plain, and in the order of the program."""
        for usual in ({"nops": 0.0}, {"garble": None}, {"order": Program.order}):
            if any(getattr(self, name) != value for name, value in usual.items()):
                yield replace(self, **usual)

    def covers(self) -> Counter[str]:
        """Return what its instructions have."""
        found = Counter(label for instruction, _ in self.steps for label in covered(instruction))
        return found + Counter({f"order:{self.order}": 1, "nops:some" if self.nops else "nops:none": 1})

    def lines(self) -> list[str]:
        """Return its instructions, a line each."""
        return [text_of(one) + ("" if queue is None else f"  # queue {queue}") for one, queue in self.steps]

    def as_json(self) -> dict[str, object]:
        """Return it as JSON."""
        own = {name: getattr(self, name) for name in ("base", "order", "nops", "seed", "garble")}
        return own | {"steps": [[text_of(one), queue] for one, queue in self.steps], "memory": array_json(self.memory)}

    @classmethod
    def from_json(cls, found: Mapping) -> Self:
        """Return the part of :meth:`as_json`."""
        steps = tuple((instruction_of(text), queue) for text, queue in found["steps"])
        return cls(**{**found, "steps": steps, "memory": array_from(found["memory"])})


def part_of(made: CoreProgram, garble: int | None) -> Part:
    """Return the part of a random program; arguments as of :class:`Part`."""
    program, image = made.program, made.image()
    first = program.base + HEADER_BYTES
    size = max(tensor.address + tensor.size * tensor.format.bits // 8 for tensor in program.space.hbm_tensors) - first
    start = first - image.base
    memory = np.frombuffer(image.data[start : start + size], np.uint8).copy()
    steps = tuple((step.instruction, step.queue) for step in program.steps)
    shared = {"base": program.base, "order": program.order, "nops": program.share, "seed": program.seed}
    return Part(**shared, garble=garble, steps=steps, memory=memory)
