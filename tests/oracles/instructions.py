"""Random legal instructions of the vector and the scalar engine, and memories with suitable operands."""

from dataclasses import replace

import numpy as np

from neuroncore_rtl.spec.config import Config
from neuroncore_rtl.spec.formats import FP32, Format
from neuroncore_rtl.spec.isa import Access, Context, Elementwise, Opcode, Pointer, Storage, access, elementwise
from neuroncore_rtl.tb.stimulus import elementwise_programs, operands

__all__ = ["random_access", "random_instruction", "random_memories"]


def random_instruction(
    rng: np.random.Generator, opcode: Opcode, config: Config, sizes: tuple[int, int], most: int = 48
) -> Elementwise:
    """Return a random legal instruction in `sizes` of SBUF and PSUM; operands may overlap, unused flags be set."""
    for _ in range(100):
        choices = elementwise_programs.Choices(opcodes=(opcode,), elements=int(rng.integers(1, most + 1)), related=0.6)
        writer = _writer(rng, config, choices, sizes)
        try:
            writer.add()
        except ValueError:  # no memory for so many elements
            continue
        [instruction] = writer.instructions
        unused = instruction.unused(instruction.fields(config))
        options = {name: bool(rng.integers(2)) for name in ("reverse0", "reverse1", "negate", "keep") if name in unused}
        options |= {"alpha": int(operands.random_codes(rng, FP32, 1)[0]), "sum_continue": bool(rng.integers(2))}
        instruction = replace(instruction, **options)
        instruction.check(Context(config))
        return instruction
    raise AssertionError(f"no place found for a {opcode.name}")


def random_memories(
    rng: np.random.Generator, config: Config, sizes: tuple[int, int], instruction: Elementwise
) -> tuple[np.ndarray, np.ndarray]:
    writer = _writer(rng, config, elementwise_programs.Choices(), sizes)
    values = instruction.fields(config)
    for name in sorted(elementwise.uses(values) & {"a", "b", "s0", "s1"}):
        place = getattr(instruction, name)
        if isinstance(place, Access):
            counts = tuple(reversed(elementwise.counts_of(values, name)[: len(place.steps)]))
            writer.places.fill(place, counts, instruction.opcode, name, instruction.a)
        elif isinstance(place, Pointer):
            writer.places.fill(Access(format=place.format, address=place.address), (1,))
    return tuple(writer.places.memories.values())


def random_access(
    rng: np.random.Generator, config: Config, fmt: Format, lanes: int, shape: tuple[int, ...], sizes: tuple[int, int]
) -> Access | None:
    storage = Storage(int(rng.integers(2)))
    starts = range(0, access.storage_partitions(storage, config) - lanes + 1, config.quadrant)
    steps = rng.integers(-3, 4, len(shape))
    if rng.random() < 0.8:
        steps = _writer(rng, config, elementwise_programs.Choices(), sizes).places.steps(shape, source=True)
    spans = [(count - 1) * int(step) for count, step in zip(shape, steps, strict=True)]
    low, high = (sum(pick(span, 0) for span in spans) for pick in (min, max))
    size = fmt.bits // 8
    room = sizes[storage] // size - (high - low)
    if room < 1 or not starts:
        return None
    place = {"address": size * (int(rng.integers(room)) - low), "partition": int(rng.choice(starts))}
    return Access(format=fmt, storage=storage, steps=tuple(steps.tolist()), **place)


def _writer(rng, config, choices, sizes) -> elementwise_programs.Writer:
    memories = {
        storage: rng.integers(256, size=(access.storage_partitions(storage, config), size), dtype=np.uint8)
        for storage, size in zip((Storage.SBUF, Storage.PSUM), sizes, strict=True)
    }
    writer = elementwise_programs.Writer(rng, config, choices, memories, lambda instruction: instruction)
    writer.places.filled = {storage: int(rng.integers(memory.shape[1])) for storage, memory in memories.items()}
    return writer
