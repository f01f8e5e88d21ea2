"""Part of a case that belongs to one core: instructions, contents of HBM, and the encoding of the records."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from neuroncore_rtl.kernels.program.image import Image, build_image
from neuroncore_rtl.kernels.program.program import HEADER_BYTES, Program
from neuroncore_rtl.spec import isa
from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import INT8
from neuroncore_rtl.spec.functions import FUNCTIONS
from neuroncore_rtl.tb.stimulus.core_programs import CoreProgram, NopProgram, garbled_image
from neuroncore_rtl.tb.tests.soak.case import Stored, smaller_sizes, text_of, without

__all__ = ["Part", "instruction_labels", "part_of", "smaller_instructions"]

_FUNCTIONS = {function.code: name for name, function in FUNCTIONS.items()}


def instruction_labels(instruction: isa.Instruction) -> Iterator[str]:
    """Yield the labels of an instruction's features."""
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
    """Yield an instruction with one size reduced, the smallest first; some may not be legal."""
    for name in ("n", "k", "m", "partitions"):
        size = getattr(instruction, name, None)
        for less in smaller_sizes(size) if isinstance(size, int) else ():
            yield replace(instruction, **{name: less})
    shape = getattr(instruction, "shape", ())
    for d, size in enumerate(shape):
        for less in smaller_sizes(size):
            yield replace(instruction, shape=(*shape[:d], less, *shape[d + 1 :]))


@dataclass(frozen=True, kw_only=True)
class Part(Stored):
    """Program of one core, an image at the HBM address `base`.

    `seed` draws NOPs before a share `nops` of the records. A step is an instruction and its queue; None: any queue.
    The memory, uint8 [bytes], follows the image's header in HBM.
    """

    base: int
    order: str
    nops: float
    seed: int
    garble: int | None
    steps: tuple[tuple[isa.Instruction, int | None], ...]
    memory: np.ndarray

    def image(self, config: Config, core: int = 0) -> Image:
        program = NopProgram(config, self.base, order=self.order, share=self.nops, seed=self.seed, core=core)
        memory = program.space.hbm("memory", INT8, self.memory.shape)
        for instruction, queue in self.steps:
            program.append(instruction, queue)
        image = build_image(program, [(memory, self.memory)])
        return image if self.garble is None else garbled_image(np.random.default_rng(self.garble), image)

    def without(self, numbers: Collection[int]) -> Self:
        return replace(self, steps=without(self.steps, numbers))

    def smaller(self, number: int) -> Iterator[Self]:
        instruction, queue = self.steps[number]
        for less in smaller_instructions(instruction):
            yield self.with_item("steps", number, (less, queue))

    def calmer(self) -> Iterator[Self]:
        return self.variants(nops=0.0, garble=None, order=Program.order)

    def covers(self) -> Counter[str]:
        found = Counter(label for instruction, _ in self.steps for label in instruction_labels(instruction))
        return found + Counter({f"order:{self.order}": 1, "nops:some" if self.nops else "nops:none": 1})

    def lines(self) -> list[str]:
        return [text_of(one) + ("" if queue is None else f"  # queue {queue}") for one, queue in self.steps]


def part_of(made: CoreProgram, garble: int | None) -> Part:
    """Return a random program as a part."""
    program, image = made.program, made.image()
    first = program.base + HEADER_BYTES
    size = max(tensor.address + tensor.size * tensor.format.bits // 8 for tensor in program.space.hbm_tensors) - first
    start = first - image.base
    memory = np.frombuffer(image.data[start : start + size], np.uint8).copy()
    steps = tuple((step.instruction, step.queue) for step in program.steps)
    shared = {"base": program.base, "order": program.order, "nops": program.share, "seed": program.seed}
    return Part(**shared, garble=garble, steps=steps, memory=memory)
